"""One session of Codex: a prompt goes in, and its file is read beside the program that writes it.

The file says sooner and more than the events do, so a thread reads it, and ends the program where a bound is reached.
"""

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from relay.backends import codex_faults, engine
from relay.backends.base import Lane
from relay.backends.codex_faults import Fault
from relay.backends.codex_rollout import Session
from relay.backends.purse import Over
from relay.host import proc
from relay.terms import Ask, Process, Told

_LOOK: Final = 0.2
"""Seconds between two looks at the file."""
_GRACE: Final = 5.0
"""Seconds that the program has to end after SIGINT, before it is made to."""


class Answer:
    """How a turn of a session went: `text` is the answer where it went well and there is one."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.usage: dict[str, Any] | None = None
        self.completed = False
        self.failure: str | None = None
        self.complaint: str | None = None

    def heard(self, event: dict[str, Any]) -> None:
        """Take an event of the program."""
        kind = event.get("type")
        item = event.get("item")
        if kind == "turn.completed":
            self.completed, self.usage = True, event.get("usage")
        elif kind == "turn.failed":
            error = event.get("error")
            self.failure = str(error.get("message") if isinstance(error, dict) else error)
        elif kind == "error":
            self.complaint = str(event.get("message"))
        elif isinstance(item, dict):
            said = item.get("type") == "agent_message"
            self.text = str(item.get("text")) if said else self.text if item.get("type") == "reasoning" else None


def in_turn(told: Callable[[Told], None]) -> Callable[[Told], None]:
    """Return what tells the same, one thing after the other: two threads do."""
    lock = threading.Lock()

    def tell(what: Told) -> None:
        with lock:
            told(what)

    return tell


class Talker:
    """Runs the turns of one session, one after the other."""

    def __init__(self, ask: Ask, lane: Lane, session: Session, sessions: Path) -> None:
        self.thread = ""
        self._ask, self._session, self._sessions = ask, session, sessions
        self._lane, self._known = dataclasses.replace(lane, spawned=self._spawned), lane.spawned
        self._process: Process | None = None
        self._name = ""
        self._fault: Exception | None = None

    def say(
        self, command: list[str], words: str, env: Mapping[str, str], seconds: float
    ) -> Answer | Over | Fault | engine.Ended:
        """Say something and wait for what comes of it: an answer, a bound, a failure, or how Relay ended it."""
        answer = Answer()
        resumed = ["resume", self.thread] if self.thread else []

        def heard(event: dict[str, Any]) -> None:
            if event.get("type") == "thread.started":
                self.thread = str(event.get("thread_id") or "")
            answer.heard(event)

        self._process, self._name = None, command[0]
        self._session.failure, done = None, threading.Event()
        reader = threading.Thread(target=self._follow, args=(done,), daemon=True)
        reader.start()
        try:
            ended = engine.run(
                self._ask, self._lane, [*command, *resumed, "-"], stdin=words, env=env, heard=heard, seconds=seconds
            )
        finally:
            done.set()
            reader.join()
        if self._fault is not None:
            raise self._fault
        self._session.read(self._sessions, self.thread)
        over, whole = self._session.over, answer.completed and ended.code == 0
        if over is not None and (over.ended_by == "setup" or not whole):  # an answer without hands is worth nothing
            return over
        if ended.cut is not None:
            return ended
        if not whole:
            return self._failed(answer, ended)
        answer.text = self._session.message if self._session.begun else answer.text
        return answer

    def _failed(self, answer: Answer, ended: engine.Ended) -> Fault:
        """Name what a turn failed of: by its session file, its last event, or its plain output."""
        message, kind = self._session.failure or (answer.failure or "", None)
        if not message:
            return codex_faults.stopped(ended.code, ended.said or answer.complaint or "")
        return codex_faults.fault(message, kind, resets_at=self._session.resets_at)

    def _spawned(self, process: Process) -> None:
        self._process = process
        self._known(process)

    def _follow(self, done: threading.Event) -> None:
        """Read the file until the program has ended, and end it where its leg is over, or cannot be told any more."""
        while not done.wait(_LOOK):
            try:
                self._session.read(self._sessions, self.thread)
            except Exception as error:  # noqa: BLE001  raised by `say` once the program has been ended
                self._fault = error
            if (self._fault or self._session.over) is not None and self._process is not None:
                self._end(self._process, done)
                return

    def _end(self, process: Process, done: threading.Event) -> None:
        """End the program by the ladder, wherever it is; what it leaves is ended by who waits for it."""
        for pid in proc.survivors(self._ask.env.get("RELAY_NONCE", "")):
            if _program(pid) == self._name:  # in a jail what Relay started is not Codex, but what holds it
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGINT)
        if not done.wait(_GRACE) and proc.alive(process):
            proc.end([process.pid])


def _program(pid: int) -> str:
    """Return the first word of the command line of a process."""
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0])
    except OSError:
        return ""

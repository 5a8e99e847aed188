"""The same steps for every backend: as turns of a model, as lines of a shell program, as a script.

A backend is tried through its Protocol alone, by a leg in a real worktree, in the open or in a jail.
"""

import json
import os
import secrets
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import tomli_w

from relay.backends import named
from relay.backends.base import Needs
from relay.errors import Interrupted
from relay.host import jail, repository, worktree
from relay.host.jail.cell import Cell
from relay.record import reply
from relay.terms import Agent, Ask, JudgeReply, Kind, Limits, Process, Taken, Told, WorkReply
from tests.backends import programs
from tests.backends.lanes import lane
from tests.host.jail.cell import rung_of
from tests.service import Act, Fault, Service, Turn
from tests.service.script import Entry, settled
from tests.world import BROKEN, SAFETY, World

KEY: Final = f"sk-test-{secrets.token_hex(16)}"
_SILENCE: Final = "sleep 300"
"""What a program does where a service would say nothing."""


@dataclass(frozen=True)
class Sort:
    """A sort of agent; one with a `model` asks a service turn by turn, one with a `program` through its vendor's own.

    `begun` are the seconds after which it surely works, if nothing is in its way.
    """

    name: str
    backend: str
    model: str = ""
    path: str = ""
    api: str | None = None
    program: str = ""
    begun: float = 0.7

    @property
    def turns(self) -> bool:
        """Tell whether it has turns."""
        return bool(self.model)


SORTS: Final = {
    sort.name: sort
    for sort in (
        Sort("scripted", "scripted"),
        Sort("command", "command"),
        Sort("anthropic", "anthropic", "claude-opus-5-5"),
        Sort("responses", "openai", "gpt-6-sol", "/v1"),
        Sort("chat", "openai", "qwen3-coder", "/v1", "chat"),
        Sort("claude-code", "claude-code", "claude-sonnet-4-5", program="claude", begun=3),
        Sort("codex", "codex", "gpt-5.5", "/v1", program="codex", begun=3),
    )
}


@dataclass
class Leg:
    """A leg of one sort that does some steps; whatever is told of it is kept."""

    root: Path
    sort: Sort
    steps: Sequence[Entry]
    kind: Kind
    told: list[Told] = field(default_factory=list)
    said: bytearray = field(default_factory=bytearray)
    spawned: list[Process] = field(default_factory=list)
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        self._world = World(self.root, {"calc.py": BROKEN})
        self.tree, self.io = self.root / "trees" / "01-leg", self.root / "trees" / "01-leg.io"
        self._repo = repository.discover(self._world.root)
        self._lease = worktree.lease(self._repo, self.tree, self._world.git("rev-parse", "HEAD"), "run=x")
        self.io.mkdir()
        self.service = Service({"": self.steps})

    def ask(self, limits: Limits | None = None) -> Ask:
        """Return what the leg is asked."""
        path = str(self.io / "reply.json")
        return Ask(
            run="261129-0230-fix-login",
            leg="01-leg",
            phase=_phase(self.kind),
            kind=self.kind,
            boundary="implement" if self.kind == "work" else "verify-only",
            round=1,
            turn=1,
            nonce=self.nonce,
            prompt=self._prompt(),
            folder=str(self.tree),
            reply_path=path,
            limits=limits or Limits(seconds=SAFETY),
            agent=self._agent(),
            schema=reply.schema(self.kind),
            env={"RELAY_NONCE": self.nonce, "RELAY_KIND": self.kind, "RELAY_REPLY": path},
        )

    def take(self, limits: Limits | None = None, *, jailed: bool = False) -> Taken:
        """Have the backend take it to its end; nothing that no step foresaw was asked of the service."""
        asked = self.ask(limits)
        backend = named(self.sort.backend)
        needs = backend.needs(asked)  # asked in the open as well: it makes folders
        cell = self._cell(needs) if jailed else None
        heard = lane(asked, sink=self.said.extend, told=self.told.append, spawned=self.spawned.append, cell=cell)
        taken = backend.take(asked, heard)
        assert self.service.problems == []
        return taken

    def replied(self, taken: Taken) -> WorkReply | JudgeReply | None:
        """Return the reply as Relay reads it, None where it would not count."""
        return reply.decode(taken.reply, self.kind, self.nonce)[0] if taken.ended_by == "reply" else None

    def changed(self) -> list[str]:
        """Return the paths that are not as they were in the worktree."""
        lines = self._world.git("status", "--porcelain", folder=self.tree).splitlines()
        return [line[3:] for line in lines]

    def of(self, type_: str) -> list[Told]:
        """Return what was told of one type."""
        return [one for one in self.told if one.type == type_]

    def heard(self) -> str:
        """Return all that its commands said, as far as it was told."""
        return self.said.decode(errors="replace") + "\n".join(one.text for one in self.of("result"))

    def _prompt(self) -> str:
        return f"Please make it so, naïvely. The nonce must be `{self.nonce}`."

    def _cell(self, needs: Needs) -> Cell:
        """Return a jail as a run has one; the test is skipped aloud where none holds."""
        access = jail.Access.WRITE if self.kind == "work" else jail.Access.SCRATCH
        home = Path.home().resolve()
        shown = tuple(Path(os.path.realpath(path)) for path in needs.readable)
        readable = (*jail.readable(os.environ["PATH"], home), *shown)
        mounts = jail.around(self._repo, self._lease, access, home=home, readable=readable, writable=needs.writable)
        return Cell(rung=rung_of(os.geteuid()), mounts=mounts, nests=needs.nests, loopback=needs.hosts)

    def _agent(self) -> Agent:
        """Return the agent, with its program or script outside of the worktree."""
        line: dict[str, Any] = {"name": self.sort.name, "backend": self.sort.backend, "vendor": "any"}
        if self.sort.model:
            line |= {"model": self.sort.model, "base_url": self.service.url + self.sort.path, "api": self.sort.api}
        elif self.sort.backend == "command":
            path = self.root / "agent.sh"
            path.write_text("\n".join(["#!/bin/sh", "cat > /dev/null", *self._lines()]) + "\n")
            path.chmod(0o755)
            line["command"] = (str(path),)
        else:
            path = self.root / "agent.toml"
            path.write_text(tomli_w.dumps({_phase(self.kind): [self._turn()]}))
            line["script"] = str(path)
        return Agent(**line)

    def _acts(self) -> Iterator[Act]:
        for step in self.steps:
            if isinstance(step, Turn):
                yield from step.acts
            elif isinstance(step, Fault):
                yield Act("run", {"command": _SILENCE})

    def _lines(self) -> Iterator[str]:
        """Yield the steps as lines of shell."""
        for act in self._acts():
            values = {name: settled(value, self._prompt) for name, value in act.values.items()}
            if act.action == "run":
                yield f"(\n{values['command']}\n)"
            elif act.action == "write":
                yield f"printf %s {shlex.quote(values['text'])} > {shlex.quote(values['path'])}"
            elif act.action == "reply":
                yield f'printf %s {shlex.quote(json.dumps(values["value"]))} > "$RELAY_REPLY"'

    def _turn(self) -> dict[str, Any]:
        """Return the steps as one turn of a script."""
        turn: dict[str, Any] = {"write": {}, "run": []}
        for act in self._acts():
            values = {name: settled(value, self._prompt) for name, value in act.values.items()}
            if act.action == "run":
                turn["run"].append(values["command"])
            elif act.action == "write":
                turn["write"][values["path"]] = values["text"]
            elif act.action == "reply":
                turn["reply"] = values["value"]
        return turn


def _phase(kind: Kind) -> str:
    return "implement" if kind == "work" else "review"


@contextmanager
def opened(root: Path, patch: pytest.MonkeyPatch) -> Iterator[Callable[..., Leg]]:
    """Yield what makes a leg of a sort; the test is skipped aloud where a program it needs is not there."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        patch.setenv(name, KEY)
    patch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with ExitStack() as stack:

        def make(name: str, *steps: Entry, kind: Kind = "work") -> Leg:
            sort = SORTS[name]
            if sort.program:
                patch.setenv("PATH", f"{programs.folder(sort.program)}:/usr/local/bin:/usr/bin:/bin")
            leg = Leg(root.resolve(), sort, steps, kind)
            stack.enter_context(leg.service)
            return leg

        yield make


class Sleepers:
    """Children that leave their session and would sleep for years; nobody else sleeps as long.

    Without a jail they keep their environment: one that empties it as well is found by a jail alone.
    """

    def __init__(self, *, jailed: bool) -> None:
        self._seconds = f"9{secrets.randbelow(10**8):08}"
        sleep = f"sleep {self._seconds} > /dev/null 2>&1 &"
        begun = [sleep, f"setsid {sleep}", f"env -i setsid {sleep}" if jailed else ""]
        self.begin = " ".join(begun)
        """The command that starts them and does not wait."""
        self._count = 2 + jailed

    def alive(self) -> list[int]:
        """Return those that live."""
        wanted, found = f"sleep\0{self._seconds}\0".encode(), []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes() == wanted:
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def wait(self, running: Callable[[], bool] = lambda: True) -> None:
        """Wait until all of them sleep; fail after the safety bound, or where nothing is running any more."""
        over = time.monotonic() + SAFETY
        while len(self.alive()) < self._count:
            assert running(), "it ended before they slept"
            assert time.monotonic() < over, "they never slept"
            time.sleep(0.02)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Interrupt the main thread, as a signal to Relay does, as soon as all of them sleep."""

        def interrupt(signum: int, _: object) -> None:
            raise Interrupted(signum)

        def watch() -> None:
            with suppress(AssertionError):  # the signal ends what would else go on for ever
                self.wait()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        before = signal.signal(signal.SIGINT, interrupt)
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            watcher.join()
            signal.signal(signal.SIGINT, before)

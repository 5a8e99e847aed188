"""What Codex writes into its session file while it works: every call and what came of it, and what each turn used.

The events on its standard output leave out commands that its sandbox denied, and all figures of a turn that was cut
(clis.md 3.2). So the session file is what counts. It may be written by whom it is about: it is read with care.
"""

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from relay.backends import lines, prices, stuck
from relay.backends.purse import Over, Purse
from relay.backends.talk import Turn
from relay.host import files
from relay.terms import Agent, Told, Usage

PROVIDER: Final = "openai"
"""Whose list of prices counts."""
WINDOW: Final = 272_000
"""Tokens of a model's window where neither the person nor Codex says (clis.md 5: gpt-5.5)."""
TOLD: Final = 1 << 20
"""Characters of a result that go into the transcript."""
CLOSING: Final = 6
"""Turns that a session has for its note, which should take one."""
CALM: Final = 25
"""After so many turns without a circle one that was seen is forgotten."""
_CHUNK: Final = 1 << 20
_PIECES: Final = 64
"""So many of these are read in one look: a bound is looked at in between, however fast somebody writes."""
_KEPT: Final = 64 << 20
_EXIT: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_BROKEN: Final = re.compile(
    r"\s*(?:bwrap: (?:execvp codex-linux-sandbox|creating new namespace failed|no permissions to create"
    r"|setting up uid map|can't (?:mount|mkdir|find source path))|error building bubblewrap command:)[^\n]*\s*",
    re.IGNORECASE,
)
_POLLS: Final = frozenset({"write_stdin", "wait"})
"""Tools that are called again and again with the same words, to see what came since."""

Json = dict[str, Any]


def billed(agent: Agent) -> Callable[[Turn], int | None]:
    """Return what says the price of a turn; the model is the one asked for, where the turn names none."""
    return lambda turn: prices.cost(PROVIDER, turn.model or agent.model or "", turn, agent.price)


def settle(purse: Purse, total: Json) -> None:
    """Count what the last event of a session has and its file has not: the event's figures are of the whole session."""
    known = {
        "input_tokens": purse.usage.input,
        "cached_input_tokens": purse.usage.cached,
        "output_tokens": purse.usage.output,
        "reasoning_output_tokens": purse.usage.reasoning,
    }
    missed = {name: _whole(total.get(name)) - counted for name, counted in known.items()}
    if missed["input_tokens"] > 0 or missed["output_tokens"] > 0:
        purse.add(_turn(missed, "", calls=False))


def _turn(used: Json, model: str, *, calls: bool) -> Turn:
    """Return an answer of the model as far as it has a price."""
    usage = Usage(
        input=_whole(used.get("input_tokens")),
        cached=_whole(used.get("cached_input_tokens")),
        output=_whole(used.get("output_tokens")),
        reasoning=_whole(used.get("reasoning_output_tokens")),
    )
    written = _whole(used.get("cache_write_input_tokens"))
    stop: Literal["calls", "done"] = "calls" if calls else "done"
    return Turn(stop=stop, model=model, usage=usage, context=usage.input, written=written)


class Session:
    """Follows the file of one session. `over` is why its leg should end: a bound is reached, or no good can come of it.

    As long as it is `closing` nothing is bounded but the turns of that: it writes its note.
    """

    def __init__(self, told: Callable[[Told], None], purse: Purse, window: int | None, share: float | None) -> None:
        self.model: str | None = None
        self.message: str | None = None
        """The last thing that was said, unless something was called since."""
        self.failure: tuple[str, Any] | None = None
        """The last error: its message and kind."""
        self.resets_at: float | None = None
        self.over: Over | None = None
        self.begun = False
        self._told, self._purse, self._share = told, purse, share
        self._window, self._given = window or WINDOW, window
        self._records = self._rewritten = False
        self._closing: int | None = None
        self._path: Path | None = None
        self._offset = 0
        self._lines = lines.Lines(self._line)
        self._calls: dict[str, tuple[str, str]] = {}
        self._pending = self._worked = self._edited = False
        self._watch, self._circle = stuck.Watch(), -CALM
        self._total: Json = {}

    def read(self, sessions: Path, thread: str) -> None:
        """Read what was added to the file of that thread, if there is one yet."""
        if self._path is None:
            found = sorted(sessions.glob(f"*/*/*/rollout-*-{thread}.jsonl")) if thread else []
            self._path = found[0] if found else None
        if self._path is not None:
            for _ in range(_PIECES):
                piece = _piece(self._path, self._offset)
                self._offset += len(piece)
                self._lines.feed(piece)
                if not piece:
                    break

    def keep(self, place: Path) -> None:
        """Move the file to `place`, where no other session of the program finds it."""
        if self._path is not None:
            with suppress(OSError):
                files.write(place, _piece(self._path, 0, _KEPT))
                self._path.unlink()

    def close(self) -> None:
        """From here on it only writes its note."""
        self.over, self._closing = None, self._purse.usage.turns

    def _line(self, line: bytes) -> None:
        found = lines.event(line)
        payload = found.get("payload") if found else None
        if found is None or not isinstance(payload, dict):
            return
        kind = str(found.get("type"))
        if kind == "event_msg":
            self._event(str(payload.get("type")), payload)
        elif kind == "response_item":
            self._item(str(payload.get("type")), payload)
        elif kind == "token_usage_record":
            self._records = True
            self._used(_dict(payload.get("usage")))
        elif kind == "compacted":
            self._rewritten = True
        elif kind == "turn_context":
            self.model = str(payload.get("model") or "") or self.model

    def _event(self, kind: str, payload: Json) -> None:
        if kind == "task_started":
            self.begun = True
            self._sized(payload.get("model_context_window"))
        elif kind == "token_count":
            self._counted(payload)
        elif kind in {"task_complete", "turn_complete", "error", "stream_error"}:
            error = payload if kind == "error" else _dict(payload.get("error"))
            if error.get("message") and kind != "stream_error":
                self.failure = str(error["message"]), error.get("codex_error_info")
        elif kind in {"item_completed", "patch_apply_end", "exec_command_end"}:
            self._done(_dict(payload.get("item")) or {**payload, "type": kind})

    def _sized(self, window: object) -> None:
        if isinstance(window, int) and window > 0 and self._given is None:
            self._window = window

    def _counted(self, payload: Json) -> None:
        """Take what older versions say of a turn, after the next one began, and the limits of the account."""
        info, limits = _dict(payload.get("info")), _dict(payload.get("rate_limits"))
        self._sized(info.get("model_context_window"))
        total = _dict(info.get("total_token_usage"))
        if not self._records and total and total != self._total:
            self._used(_dict(info.get("last_token_usage")))
        self._total = total
        full = [_dict(limits.get(name)) for name in ("primary", "secondary")]
        ends = [limit.get("resets_at") for limit in full if (limit.get("used_percent") or 0) >= 100]  # noqa: PLR2004
        self.resets_at = max((end for end in ends if isinstance(end, int | float)), default=self.resets_at)

    def _used(self, used: Json) -> None:
        """Count a turn, and end the leg where it was the last it may have."""
        turn = _turn(used, self.model or "", calls=self._pending)
        self._purse.add(turn)
        self._told(
            Told(type="usage", turn=self._purse.usage.turns, usage=self._purse.usage, cost_microusd=self._purse.cost)
        )
        circle = self._watch.circle()
        if self._pending:  # a turn that calls nothing is the last one anyway
            self._bound(turn.context + turn.usage.output, circle)

    def _bound(self, context: int, circle: str) -> None:
        """Say that the leg is over where another turn would be one too many."""
        turns = self._purse.usage.turns
        if self._closing is not None:
            if turns >= self._closing + CLOSING:
                self._end(Over("no-reply", f"did not write its note within {CLOSING} turns"))
            return
        if circle and turns <= self._circle + CALM:
            self._end(Over("stuck", f"it goes in a circle: {circle}"))
        self._circle = turns if circle else self._circle
        try:
            self._purse.check()
        except Over as over:
            self._end(over)
        if self._share is not None and (self._rewritten or context >= self._share * self._window):
            self._end(Over("handover", f"its context holds {context} of {self._window} tokens"))

    def _end(self, over: Over) -> None:
        self.over = self.over or over

    def _item(self, kind: str, payload: Json) -> None:
        turn = self._purse.usage.turns + 1
        if kind == "message" and payload.get("role") == "assistant":
            self.message, self._pending = _text(payload.get("content")), False
            self._told(Told(type="text", turn=turn, text=self.message))
        elif kind == "reasoning":
            if thought := _text(payload.get("summary")):
                self._told(Told(type="thought", turn=turn, text=thought))
        elif kind.endswith("_call"):
            self._call(kind, payload, turn)
        elif kind.endswith("_call_output"):
            self._result(payload)

    def _call(self, kind: str, payload: Json, turn: int) -> None:
        tool = str(payload.get("name") or kind.removesuffix("_call"))
        given = next((payload[name] for name in ("arguments", "input", "action") if name in payload), "")
        arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        call = str(payload.get("call_id") or payload.get("id") or "")
        self._calls[call] = tool, arguments
        self.message, self._pending = None, True
        self._told(Told(type="call", turn=turn, id=call, tool=tool, text=arguments[:TOLD]))

    def _result(self, payload: Json) -> None:
        call = str(payload.get("call_id") or "")
        tool, arguments = self._calls.pop(call, ("", ""))
        text = _text(payload.get("output"))
        code = _EXIT.search(text)
        ok = (
            int(code[1]) == 0
            if code
            else not re.match(r"(?i)\s*(?:script failed|.*\brejected\b|error\b|failed\b)", text)
        )
        said = text.rpartition("Output:\n")[2]
        self._told(Told(type="result", turn=self._purse.usage.turns, id=call, tool=tool, text=text[:TOLD], ok=ok))
        if not self._worked and _BROKEN.fullmatch(said):
            self._end(Over("setup", f"its sandbox does not start: {said.strip()}"))
        self._worked = self._worked or ok
        if tool not in _POLLS:
            wrong = "" if ok else said.strip().partition("\n")[0][:200] or f"exit {code[1] if code else '?'}"
            self._watch.saw(tool, arguments, wrong, changed=self._edited)
            self._edited = False

    def _done(self, item: Json) -> None:
        """Note what was read and what was changed."""
        kind = item.get("type")
        if kind in {"FileChange", "patch_apply_end"} and item.get("status", "completed") == "completed":
            self._edited = True
            self._purse.edited()
        elif kind in {"CommandExecution", "exec_command_end"}:
            for step in item.get("parsed_cmd") or ():
                if _dict(step).get("type") == "read":
                    self._purse.read(str(step.get("path") or step.get("name")))


def _piece(path: Path, offset: int, size: int = _CHUNK) -> bytes:
    """Return a part of a regular file, nothing where there is none: never through a link, never waiting."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, size, offset) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    finally:
        os.close(descriptor)


def _text(content: object) -> str:
    """Return the words of an item: a text, or parts with one."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(_dict(part).get("text") or "") for part in parts)


def _dict(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0

"""What Claude Code's lines say: each as it is told, what was used so far, and the result (clis.md 2.2).

Unknown kinds of lines and missing fields are passed over: the program is released often, and keeps no promise here.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from relay.backends import claude_usage
from relay.backends.claude_usage import SYNTHETIC, Json
from relay.backends.stuck import Watch
from relay.backends.talk import Turn
from relay.terms import Told, Usage

EDITS: Final = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
REPLY: Final = "StructuredOutput"
"""The tool by which the program has a model answer to a schema."""
_MISTAKE: Final = 100
"""Characters of an error that tell one mistake from another."""
TOLD: Final = 1 << 20
"""Characters of one thing told."""


class Heard:
    """Hears the lines of a session, over all runs of the program; `after` is asked at each point where it may end.

    `spent` is what each turn used, as far as its lines tell. `context` is what the newest request held, in tokens.
    `payer` is where the program found a key. `replying` says that the newest turn gave a reply, `circle` what went in
    a circle until it.
    """

    def __init__(self, told: Callable[[Told], None], after: Callable[["Heard"], None]) -> None:
        self._told, self._after = told, after
        self.model = ""
        self.payer = ""
        self.result: Json | None = None
        self.fault = ""
        self.until: float | None = None
        self.context = 0
        self.replying = self.edited = False
        self.turns = self.before_edit = self.repeated = 0
        self.refused_key = 0
        self._message = ""
        self.spent: list[Turn] = []
        self.circle = ""
        self._watch = Watch()
        self._calls: dict[str, tuple[str, str]] = {}
        self._read: set[str] = set()

    def again(self) -> None:
        """Begin to hear another run of the same session."""
        self.result, self.fault, self.replying = None, "", False

    def hear(self, event: Json) -> None:
        """Take one line."""
        kind = event.get("type")
        if event.get("parent_tool_use_id"):
            return
        if kind == "assistant":
            self._answer(event)
        elif kind == "user":
            self._results(event)
            self._after(self)
        elif kind == "result":
            self.result = event
        elif kind == "rate_limit_event":
            self._limit(_mapping(event.get("rate_limit_info")))
        elif kind == "system":
            self._system(event)

    @property
    def usage(self) -> Usage:
        """Return what was counted line by line, which is a lower bound: lines do not tell all that came out."""
        used = claude_usage.total(turn.usage for turn in self.spent)
        return msgspec.structs.replace(used, turns_before_first_edit=self.before_edit, repeated_reads=self.repeated)

    def _answer(self, event: Json) -> None:
        message = _mapping(event.get("message"))
        if message.get("model") == SYNTHETIC:
            self.fault = str(event.get("error") or "unknown")
            return
        self.model = str(message.get("model") or self.model)
        if message.get("id") != self._message:  # one line for each part of it
            self._message, self.replying = str(message.get("id")), False
            self.turns += 1
            self.before_edit += not self.edited
            self.spent.append(claude_usage.turn(message))
            self.context = self.spent[-1].context
            self.circle = self._watch.circle() if self.turns > 1 else ""
            self._told(Told(type="usage", turn=self.turns, usage=self.usage))
        for part in _parts(message):
            self._part(part)

    def _part(self, part: Json) -> None:
        kind = part.get("type")
        if kind == "text":
            self._told(Told(type="text", turn=self.turns, text=_text(part.get("text"))))
        elif kind == "thinking":
            self._told(Told(type="thought", turn=self.turns, text=_text(part.get("thinking"))))
        elif kind == "tool_use":
            name, given = str(part.get("name")), _mapping(part.get("input"))
            self.replying = self.replying or name == REPLY
            if name in EDITS and not self.edited:
                self.edited = True
                self.before_edit -= 1
            if name == "Read":
                path = str(given.get("file_path")) + str(given.get("offset", ""))
                self.repeated += path in self._read
                self._read.add(path)
            arguments = msgspec.json.encode(given).decode()
            self._calls[str(part.get("id"))] = name, arguments
            self._told(Told(type="call", turn=self.turns, tool=name, id=str(part.get("id")), text=arguments[:TOLD]))

    def _results(self, event: Json) -> None:
        for part in _parts(_mapping(event.get("message"))):
            if part.get("type") == "tool_result":
                wrong, text, of = part.get("is_error") is True, _text(part.get("content")), str(part.get("tool_use_id"))
                self._told(Told(type="result", turn=self.turns, id=of, ok=not wrong, text=text))
                self.replying = self.replying and not wrong
                tool, arguments = self._calls.pop(of, ("", ""))
                mistake = text[:_MISTAKE] if wrong else ""
                self._watch.saw(tool, arguments, mistake, changed=tool in EDITS and not wrong)

    def _limit(self, info: Json) -> None:
        """Note until when a limit of the login's holds; seconds since 1970."""
        resets = info.get("resetsAt")
        if info.get("status") == "rejected" and isinstance(resets, int | float):
            self.until = float(resets)

    def _system(self, event: Json) -> None:
        kind = event.get("subtype")
        if kind == "init":
            self.model = str(event.get("model") or self.model)
            self.payer = str(event.get("apiKeySource") or "")
            self._after(self)
        elif kind == "api_retry":
            delay = event.get("retry_delay_ms")
            wait = f"{delay / 1000:.1f} s: " if isinstance(delay, int | float) else ""
            why = f"the service says {event.get('error_status') or 'nothing'}, {event.get('error')}"
            self._told(Told(type="wait", turn=self.turns + 1, text=f"{wait}{why}"))
            self.refused_key += event.get("error") == "authentication_failed"
            self._after(self)
        elif kind == "compact_boundary":
            self._told(Told(type="wait", turn=self.turns, text="the program shortened its own context"))


def _parts(message: Json) -> Iterator[Json]:
    content = message.get("content")
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, dict))
    elif isinstance(content, str):
        yield {"type": "text", "text": content}


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(_text(_mapping(part).get("text") or f"[{_mapping(part).get('type')}]") for part in content)
    return str(content or "")[:TOLD]


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}

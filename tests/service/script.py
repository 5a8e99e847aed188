"""What the service plays: turns of a model, faults that come before them, and the actions both are made of."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

Words = str | Callable[[str], str]
"""A text, or what makes it from the text of the request."""

Value = Mapping[str, Any] | str | Callable[[str], Any]
"""Arguments: a mapping (callables anywhere inside are asked too), a raw string, or what makes either."""

Action = Literal["say", "read", "write", "edit", "search", "run", "reply", "call"]

Kind = Literal[
    "rate_limit",  # 429, with `retry_after`
    "quota",  # 429 until `resets_at`; for OpenAI insufficient_quota, or usage_limit_reached where `resets_at` is given
    "credit",  # no money left
    "spend",  # the limit that the customer set is reached; it says in words when that ends
    "auth",  # 401
    "forbidden",  # 403
    "not_found",  # 404, no such model
    "overloaded",  # 529, or 503
    "server",  # 500
    "context",  # 400, in the vendor's words
    "bad_request",  # 400
    "status",  # `status` and `message` as given
    "refusal",  # an answer; a turn of its own
    "max_tokens",  # an answer that is cut off; a turn of its own
    "drop",  # the connection ends after `after` events
    "refuse",  # the connection ends before anything is sent
    "hang",  # `seconds` before the headers, then goes on
    "stall",  # `seconds` after `after` events, then goes on
    "slow",  # `seconds` between pieces
    "malformed",  # the data of event number `after` is cut-off JSON
    "stream_error",  # an error event in place of event number `after`
]


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that a model does in a turn, in words that fit every client."""

    action: Action
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts to report; what is None is derived from the request and the answer.

    `input` is all that went in, whether `cached` (read), `written` (to the cache) or neither; `output` is all that came
    out, `reasoning` included.
    """

    input: int | None = None
    cached: int | None = None
    written: int | None = None
    output: int | None = None
    reasoning: int | None = None


class Entry:
    """What a script is made of: a turn or a fault."""

    __slots__ = ()


@dataclass(frozen=True, init=False)
class Turn(Entry):
    """One answer of the model: `Turn(say("I look."), do.read("a.py"), do.run("ls"), delay=0.1)`.

    `stop` is the reason to stop: `max_tokens`, `refusal`, or any word that goes to the client as it is. `model` is the
    id to report; None says the one asked for.
    """

    acts: tuple[Act, ...] = ()
    thinking: Words = ""
    usage: Usage = field(default_factory=Usage)
    stop: str | None = None
    delay: float = 0.0
    model: str | None = None

    def __init__(
        self,
        *parts: Self | Act | Words,
        thinking: Words = "",
        usage: Usage | None = None,
        stop: str | None = None,
        delay: float = 0.0,
        model: str | None = None,
    ) -> None:
        acts: list[Act] = []
        for part in parts:
            acts += part.acts if isinstance(part, Turn) else [part if isinstance(part, Act) else _say(part)]
        given = (tuple(acts), thinking, usage or Usage(), stop, delay, model)
        for name, value in zip(self.__dataclass_fields__, given, strict=True):
            object.__setattr__(self, name, value)

    def __add__(self, other: "Turn") -> "Turn":
        """Return this turn with the acts of another one after its own."""
        return self.but(parts=(self, other))

    def but(self, *, parts: Sequence["Turn"] | None = None, **changes: Any) -> "Turn":  # noqa: ANN401 - any field
        """Return this turn with other values: `do.run("ls").but(delay=1)`."""
        kept = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "acts"}
        return Turn(*(parts if parts is not None else (self,)), **(kept | changes))


@dataclass(frozen=True, slots=True)
class Fault(Entry):
    """Something that goes wrong at the turn which follows it in the sequence, `times` times (None: every time).

    After that the next entry is played for the same turn. Two kinds are turns of their own, since the client gets an
    answer: `refusal` and `max_tokens`, which say `text`.
    """

    kind: Kind
    times: int | None = None
    retry_after: float | None = field(default=None, kw_only=True)
    resets_at: float | None = field(default=None, kw_only=True)
    """Seconds since 1970; where the format needs it and none is given, an hour from now."""
    seconds: float | None = field(default=None, kw_only=True)
    """How long to wait: by itself a minute, or 50 ms between the pieces of `slow`."""
    after: int = field(default=3, kw_only=True)
    """So many events are sent before."""
    status: int | None = field(default=None, kw_only=True)
    type: str | None = field(default=None, kw_only=True)
    """Another word than the usual one in the error's `type` (Anthropic) or `code` (OpenAI)."""
    message: str | None = field(default=None, kw_only=True)
    text: Words = field(default="I began, and", kw_only=True)
    headers: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def pause(self) -> float:
        """Return how long to wait, in seconds."""
        usual = 0.05 if self.kind == "slow" else 60.0
        return usual if self.seconds is None else self.seconds

    @property
    def answers(self) -> bool:
        """Tell whether the client gets an answer of the model, so that this is a turn of its own."""
        return self.kind in {"refusal", "max_tokens"}

    @property
    def fails(self) -> bool:
        """Tell whether the client gets no whole answer."""
        return not self.answers and self.kind not in {"hang", "stall", "slow"}

    def turn(self) -> Turn:
        """Return the answer that a fault with one gives."""
        return Turn(self.text, stop=self.kind)


class Hits(tuple[Entry, ...]):
    """A sequence whose place is counted on the server: for clients that rewrite their history.

    Elsewhere the place is the number of answers that stand in the request after the text which the pattern hit.
    """

    __slots__ = ()


Script = Mapping[str, Sequence[Entry]]


def _say(text: Words) -> Act:
    return Act("say", {"text": text})


def say(text: Words) -> Turn:
    """Return a turn that says something."""
    return Turn(_say(text))


class do:  # noqa: N801 - it reads as a verb: do.run("ls")
    """Actions; each is a turn, and `Turn(...)` or `+` joins several into one. They become whatever tool is offered."""

    @staticmethod
    def read(path: Words) -> Turn:
        """Read a file."""
        return Turn(Act("read", {"path": path}))

    @staticmethod
    def write(path: Words, text: Words) -> Turn:
        """Write a whole file."""
        return Turn(Act("write", {"path": path, "text": text}))

    @staticmethod
    def edit(path: Words, old: Words, new: Words) -> Turn:
        """Replace `old`, which should be whole lines: some clients take patches only."""
        return Turn(Act("edit", {"path": path, "old": old, "new": new}))

    @staticmethod
    def search(pattern: Words) -> Turn:
        """Search all files."""
        return Turn(Act("search", {"pattern": pattern}))

    @staticmethod
    def run(command: Words) -> Turn:
        """Run a shell command."""
        return Turn(Act("run", {"command": command}))

    @staticmethod
    def reply(value: Value) -> Turn:
        """Give the structured answer: by the tool that is there for it, else as JSON in the last message."""
        return Turn(Act("reply", {"value": value}))

    @staticmethod
    def call(name: str, arguments: Value, *, kind: str = "function") -> Turn:
        """Call a tool by its name, offered or not; a string goes out raw, JSON or not. `kind="custom"`: free-form."""
        return Turn(Act("call", {"name": name, "value": arguments, "kind": kind}))


_NONCE: Final = (re.compile(r"^<<<task (\S+)$", re.MULTILINE), re.compile(r"[Nn]once`? must be `(\S+?)`"))


def nonce(prompt: str) -> str:
    """Return the nonce of the leg from its prompt, or an empty text; `do.reply({"nonce": nonce})` asks it by itself."""
    found = next(filter(None, (pattern.search(prompt) for pattern in _NONCE)), None)
    return found[1] if found else ""


def settled(value: Any, prompt: Callable[[], str]) -> Any:  # noqa: ANN401 - JSON
    """Return a value with every callable in it replaced by what it makes of the prompt."""
    if callable(value):
        return settled(value(prompt()), prompt)
    if isinstance(value, Mapping):
        return {key: settled(inner, prompt) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [settled(inner, prompt) for inner in value]
    return value

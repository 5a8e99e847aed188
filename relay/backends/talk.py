"""What the loop knows of a vendor: a conversation that grows, is sent, and comes back as a turn or as a fault."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from relay.terms import Struct, Usage

FaultKind = Literal["auth", "quota", "rate", "overload", "context", "refusal", "bug"]


class Call(Struct, frozen=True, kw_only=True):
    """One call of a tool; `arguments` is JSON as the model wrote it, which may be no JSON at all."""

    id: str
    tool: str
    arguments: str


class Result(Struct, frozen=True, kw_only=True):
    """What came of a call."""

    id: str
    text: str
    ok: bool = True


class Turn(Struct, frozen=True, kw_only=True):
    """What the model said in one answer, and why it stopped; `usage` is of this turn, `context` all that it read.

    `written` is what of the input went into the service's cache, in tokens, where that has a price of its own. `id` is
    the service's name for the answer.
    """

    texts: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    stop: Literal["done", "calls", "cut", "refusal"]
    model: str
    usage: Usage
    context: int
    written: int = 0
    id: str = ""


class Tool(Struct, frozen=True, kw_only=True):
    """What a model is told of a tool; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class Fault(Exception):  # noqa: N818 - the vendors' word for what comes back instead of an answer is error; ours is this
    """What came back instead of a turn. `after` is in seconds, `until` a UTC stamp, where the service named one."""

    def __init__(self, kind: FaultKind, problem: str, *, after: float | None = None, until: str | None = None) -> None:
        super().__init__(problem)
        self.kind, self.problem, self.after, self.until = kind, problem, after, until


class Talk(Protocol):
    """One conversation with one model; it keeps the vendor's own messages, in the order in which they are sent."""

    def say(self, text: str) -> None:
        """Add words of Relay's."""

    def answer(self, results: tuple[Result, ...]) -> None:
        """Add what came of all calls of the last turn."""

    def trim(self, id: str, text: str) -> None:  # noqa: A002 - the vendors' own name
        """Put `text` in the place of the result of an old call."""

    def send(self, heard: Callable[[str], None], seconds: float) -> Turn:
        """Send the conversation and return the answer, which is then part of it; raises `Fault`.

        `heard` is told each piece of text as it comes, and `""` for whatever else comes: what it raises ends the
        stream and passes through. After `seconds` without a byte the fault is `overload`. Nothing stays of an answer
        that broke off.
        """

    def hang_up(self) -> None:
        """Break off, from another thread, what `send` waits for, which is a fault there; nothing where it does not."""

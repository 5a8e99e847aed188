"""What the three protocols have in common: an answer before it is written down, and how it is cut into pieces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from tests.service.conversation import Asked, Ids, Json
from tests.service.script import Fault
from tests.service.tools import Call

Event = tuple[str | None, Json | str]
"""The name of an event in a stream, where it has one, and its data."""

CREATED: Final = 1_790_000_000
"""When all answers and models were made, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Token counts; `input` holds `cached` and `written`, `output` holds `reasoning`."""

    input: int
    cached: int
    written: int
    output: int
    reasoning: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model answers, in no protocol yet."""

    ids: Ids
    model: str
    parts: tuple[str | Call, ...]
    thinking: str
    stop: str | None
    counts: Counts

    @property
    def texts(self) -> list[str]:
        """Return what is said."""
        return [part for part in self.parts if isinstance(part, str)]

    @property
    def calls(self) -> list[Call]:
        """Return the tools that are called."""
        return [part for part in self.parts if isinstance(part, Call)]


class Wire(Protocol):
    """One protocol: how a request is read and how an answer is written."""

    vendor: Literal["anthropic", "openai"]

    def asked(self, body: Json) -> Asked:
        """Read a request."""

    def refused(self, body: Json) -> str | None:
        """Return what the real service would refuse in a request."""

    def whole(self, answer: Answer) -> Json:
        """Write an answer as one document."""

    def events(self, whole: Json, body: Json) -> Iterator[Event]:
        """Write the same answer as the events of a stream."""

    def broken(self, fault: Fault, whole: Json, count: int) -> Event:
        """Return the event that says, after `count` others, that something went wrong with an answer."""


def pieces(text: str, count: int = 6, least: int = 24) -> Iterator[str]:
    """Cut a text into a handful of pieces."""
    size = max(least, -(-len(text) // count))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def properties(schema: Any) -> Mapping[str, Any]:  # noqa: ANN401 - JSON
    """Return a schema where there is one."""
    return schema if isinstance(schema, Mapping) else {}

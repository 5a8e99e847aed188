"""What a request says, whichever protocol it is in; and which turn of the script comes next in its conversation."""

import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tests.service.script import Entry, Fault, Hits, Script, Turn

Json = dict[str, Any]


class Said(NamedTuple):
    """One thing in a conversation; `answer` is the number of the answer that it was part of, as far as its id tells."""

    by: Literal["user", "model", "tool", "system"]
    text: str
    answer: int | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a request offers."""

    name: str
    type: str
    schema: Mapping[str, Any]
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, read."""

    model: str
    stream: bool
    system: str
    said: Sequence[Said]
    tools: Mapping[str, Tool]
    structured: bool
    """Whether the last message is to be JSON by a schema."""

    def prompt(self) -> str:
        """Return all that the model is told, from the system's text to the newest output of a tool."""
        return "\n".join([self.system, *(said.text for said in self.said if said.by != "model")])


@dataclass(frozen=True, slots=True)
class Play:
    """What to do about a request: a turn, and what goes wrong with it."""

    pattern: str
    index: int
    turn: Turn
    fault: Fault | None = None


class Slot(NamedTuple):
    """One turn, and the faults that come before it."""

    faults: tuple[Fault, ...]
    turn: Turn | Fault


class Unscripted(Exception):  # noqa: N818 - it is what happened
    """No pattern of the script is found in the request."""


class Player:
    """Chooses the turn for each request; it remembers nothing but how often which turn was played."""

    def __init__(self, script: Script, by: Literal["turns", "hits"] = "turns") -> None:
        self._entries = {pattern: _slots(entries) for pattern, entries in script.items()}
        self._patterns = [(pattern, re.compile(pattern)) for pattern in script if pattern]
        self._counted = {pattern for pattern, entries in script.items() if by == "hits" or isinstance(entries, Hits)}
        self._plays: Counter[tuple[str, int, int]] = Counter()
        self._served: Counter[str] = Counter()
        self._lock = threading.Lock()

    def play(self, asked: Asked) -> Play:
        """Return what comes next; a retry of the client is the same turn again."""
        pattern, start = self._find(asked)
        slots = self._entries[pattern]
        with self._lock:
            index = self._served[pattern] if pattern in self._counted else _answers(asked.said[start + 1 :])
            at = min(index, len(slots) - 1)
            fault = self._due(pattern, at)
            turn = slots[at].turn
            if isinstance(turn, Fault):
                if fault is None and self._spent(pattern, at, turn):
                    later = (slot.turn for slot in slots[at + 1 :] if isinstance(slot.turn, Turn))
                    turn = next(later, turn.turn())
                else:
                    fault = fault or turn
                    turn = turn.turn()
            if fault is None or not fault.fails:
                self._served[pattern] += 1
        return Play(pattern, index, turn, fault)

    def _find(self, asked: Asked) -> tuple[str, int]:
        """Return the pattern for a request, and where in the conversation its text stands (-1: before all of it)."""
        for at in range(len(asked.said) - 1, -1, -1):
            if asked.said[at].by == "user":
                for pattern, regex in self._patterns:
                    if regex.search(asked.said[at].text):
                        return pattern, at
        for pattern, regex in self._patterns:
            if regex.search(asked.system):
                return pattern, -1
        if "" in self._entries:
            return "", -1
        raise Unscripted(asked.prompt()[-500:])

    def _due(self, pattern: str, at: int) -> Fault | None:
        """Return the first fault before a turn that has not yet happened as often as it should."""
        for number, fault in enumerate(self._entries[pattern][at].faults):
            if not self._over(fault, (pattern, at, number)):
                return fault
        return None

    def _spent(self, pattern: str, at: int, fault: Fault) -> bool:
        return self._over(fault, (pattern, at, -1))

    def _over(self, fault: Fault, key: tuple[str, int, int]) -> bool:
        """Count one more of a fault, unless it has happened often enough."""
        if fault.times is not None and self._plays[key] >= fault.times:
            return True
        self._plays[key] += 1
        return False


def _slots(entries: Sequence[Entry]) -> list[Slot]:
    slots: list[Slot] = []
    before: list[Fault] = []
    for entry in entries:
        if isinstance(entry, Fault) and not entry.answers:
            before.append(entry)
        elif isinstance(entry, Turn | Fault):
            slots.append(Slot(tuple(before), entry))
            before = []
    if before or not slots:
        slots.append(Slot(tuple(before), Turn("This is the answer of a model that has nothing else to say. " * 4)))
    return slots


def _answers(said: Sequence[Said]) -> int:
    """Count the answers of the model: one may be several things in a row, or calls with their outputs in between."""
    count, inside, last = 0, False, None
    for one in said:
        if one.by != "model":
            inside = False
            continue
        known = one.answer is not None and one.answer == last
        if not inside and not known:
            count += 1
        inside, last = True, one.answer if one.answer is not None else last
    return count


def plain(content: Any) -> str:  # noqa: ANN401 - JSON
    """Return the text of a message's content, a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text") or "") for block in content or () if isinstance(block, dict))


def number(identity: object) -> int | None:
    """Return the number of the answer that an id of this service belongs to."""
    found = _ID.search(identity) if isinstance(identity, str) else None
    return int(found[1]) if found else None


_ID = re.compile(r"_(\d{6})x\d+$")


class Ids:
    """Makes the ids of one answer: `call_000012x3` is the third of answer 12."""

    def __init__(self, answer: int) -> None:
        self.answer = answer
        self._count = 0

    def __call__(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self.answer:06d}x{self._count}"

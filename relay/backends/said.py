"""What a service says of itself and of its answer, taken with care: a receipt holds what it claims to hold.

Structs are not checked when they are made, only when they are read: what enters unchecked is sealed, and unreadable.
"""

from typing import Any, Final

import msgspec

MOST: Final = 10**12
"""The greatest count that is believed."""
LONGEST: Final = 200
"""Characters of the longest name that is believed."""


def count(value: object) -> int | None:
    """Return how many a service says; None where that is no count: half of one, below zero, beyond all sense."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= MOST else None  # type: ignore[operator,return-value]


def name(value: object) -> str:
    """Return what a service calls something, of a model, an answer, a call; nothing where that is no name."""
    return value if isinstance(value, str) and len(value) <= LONGEST and value.isprintable() else ""


def letters(text: str) -> str:
    """Return pieces that were put together as one text: a letter may be cut in two, and half a letter is none."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def sound(value: object) -> None:
    """Raise a `ValueError` where JSON that came cannot go out again: half a letter in it, or depth beyond all sense."""
    try:
        msgspec.json.encode(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class Counts:
    """Reads the counts of one answer; what is missing is 0. `odd` once one of them was no count."""

    def __init__(self, said: object) -> None:
        self._said = said
        self.odd = False

    def __call__(self, *path: str) -> int:
        """Return the count that stands there."""
        value: Any = self._said
        for step in path:
            if value is not None and not isinstance(value, dict):
                self.odd = True
                return 0
            value = value.get(step) if value else None
        found = 0 if value is None else count(value)
        self.odd = self.odd or found is None
        return found or 0

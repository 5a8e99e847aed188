"""JSON lines as a program writes them: in pieces, of any length, between whatever else it says."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

LINE: Final = 16 << 20
"""Bytes of the longest line that is read: one with a picture in it has some megabytes."""


class Lines:
    """Splits what comes in pieces into lines; of one that is too long nothing but its length is kept."""

    def __init__(self, line: Callable[[bytes], None], limit: int = LINE) -> None:
        self._line, self._limit = line, limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Take a piece, and give out each line that is whole now, without its end."""
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._add(part)
            self.end()
        self._add(rest)

    def end(self) -> None:
        """Give out what is left, if anything is."""
        data, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        if size > self._limit:
            self._line(b"[a line of %d bytes]" % size)
        elif data.strip():
            self._line(data)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts = []
        elif part:
            self._parts.append(part)


def event(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, None where it has none; a warning without an end of line may stand before."""
    for begin in (0, line.find(b'{"')):
        if begin >= 0:
            try:
                found = msgspec.json.decode(line[begin:])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            if isinstance(found, dict):
                return found
    return None

"""A stream of any length in bounded memory: its first bytes, its last bytes, a count and a hash of all of it."""

from typing import Final

_SLACK: Final = 64 << 10


class Kept:
    """What is kept of a stream: `room` bytes in all, half from its start and half from its end."""

    def __init__(self, room: int) -> None:
        import hashlib  # 3 ms that a command which runs nothing does not need

        self._first, self._last = room // 2, room - room // 2
        self._head, self._tail = bytearray(), bytearray()
        self._hash = hashlib.sha256()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        self._hash.update(data)
        room = self._first - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._last + _SLACK:  # trimmed now and then, not at every byte
            del self._tail[: len(self._tail) - self._last]

    @property
    def head(self) -> bytes:
        """The first bytes; together with `tail` the whole stream where nothing was dropped."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes that are not part of `head`."""
        return bytes(self._tail[max(0, len(self._tail) - self._last) :])

    @property
    def dropped(self) -> int:
        """How many bytes between `head` and `tail` are gone."""
        return self.total - len(self._head) - min(len(self._tail), self._last)

    @property
    def sha256(self) -> str:
        """The hash over the whole stream, in hexadecimal."""
        return self._hash.hexdigest()

"""transcript.jsonl: what an agent said while it worked, bounded, as JSON lines."""

import json
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from relay.host import clock, redact

HEAD: Final = 4 << 20
"""Bytes kept from the beginning; an agent that floods its output must not fill the disk."""

TAIL: Final = 1 << 20
"""Bytes kept from the end."""


class Transcript:
    """Writes each piece of output as a line with its time; past `HEAD` bytes only the last `TAIL` are kept."""

    def __init__(self, path: Path, redactor: redact.Redactor) -> None:
        self._path = path
        self._stream = redact.Stream(redactor)
        self._written = 0
        self._dropped = 0
        self._kept = 0
        self._tail: deque[bytes] = deque()

    def __enter__(self) -> Self:
        self._file = self._path.open("a", encoding="utf-8")
        self._path.chmod(0o600)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._put(self._stream.end())
        if self._dropped:
            self._line({"type": "gap", "dropped": self._dropped})
        for piece in self._tail:
            self._line(self._said(piece))
        self._file.close()

    def write(self, piece: bytes) -> None:
        """Append one piece of output without the secrets in it; what may begin one waits for the rest."""
        self._put(self._stream.feed(piece))

    def _put(self, piece: bytes) -> None:
        if not piece:
            return
        if self._written < HEAD:
            self._written += len(piece)
            self._line(self._said(piece))
            self._file.flush()
            return
        self._tail.append(piece)
        self._kept += len(piece)
        while self._kept > TAIL and len(self._tail) > 1:
            gone = len(self._tail.popleft())
            self._kept -= gone
            self._dropped += gone

    @staticmethod
    def _said(piece: bytes) -> dict[str, object]:
        return {"type": "output", "at": clock.stamp(), "text": piece.decode("utf-8", "replace")}

    def _line(self, value: dict[str, object]) -> None:
        self._file.write(json.dumps(value, ensure_ascii=False) + "\n")

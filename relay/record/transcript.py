"""transcript.jsonl: what an agent said while it worked, bounded, as JSON lines."""

import json
import os
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from relay.host import clock, redact
from relay.terms import Told, Usage

HEAD: Final = 4 << 20
"""Bytes kept from the beginning; an agent that floods its output must not fill the disk."""

TAIL: Final = 1 << 20
"""Bytes kept from the end."""


def used(path: Path) -> tuple[Usage, int | None]:
    """Return what a leg that was cut short is known to have used, and its cost; nothing was told: nothing was used.

    It is a lower bound: what was under way was not told yet.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            lines = file.read().splitlines()
    except OSError:
        return Usage(), 0
    for line in reversed(lines):
        if b'"usage"' in line:
            with suppress(msgspec.MsgspecError):
                told = msgspec.json.decode(line, type=_Counted)
                if told.type == "usage":
                    return msgspec.structs.replace(told.usage, complete=False), told.cost_microusd
    return Usage(), 0


class _Counted(msgspec.Struct):
    type: str
    usage: Usage = Usage()
    cost_microusd: int | None = None


def carry(source: Path, target: Path, redactor: redact.Redactor) -> None:
    """Move what a program wrote down of its session into the ledger, without the secrets in it.

    Nothing happens where there is no such file, or something else in its place.
    """
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            stream = redact.Stream(redactor)
            made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(made, "wb") as out:
                while piece := file.read(TAIL):
                    out.write(stream.feed(piece))
                out.write(stream.end())
    source.unlink(missing_ok=True)


class Transcript:
    """Writes what is told and put out as lines with their time; past `HEAD` bytes only the last `TAIL` are kept."""

    def __init__(self, path: Path, redactor: redact.Redactor) -> None:
        self._path = path
        self._redactor, self._stream = redactor, redact.Stream(redactor)
        self._written = 0
        self._dropped = 0
        self._kept = 0
        self._tail: deque[str] = deque()

    def __enter__(self) -> Self:
        self._file = self._path.open("a", encoding="utf-8")
        self._path.chmod(0o600)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._put(self._stream.end())
        if self._dropped:
            self._line(self._said({"type": "gap", "dropped": self._dropped}))
        for line in self._tail:
            self._line(line)
        self._file.close()

    def write(self, piece: bytes) -> None:
        """Append one piece of output without the secrets in it; what may begin one waits for the rest."""
        self._put(self._stream.feed(piece))

    def tell(self, told: Told) -> None:
        """Append one thing that happened, without the secrets in it."""
        line = json.dumps({"type": told.type, "at": clock.stamp()} | msgspec.to_builtins(told), ensure_ascii=False)
        self._keep(self._redactor.text(line))

    def _put(self, piece: bytes) -> None:
        if piece:
            self._keep(self._said({"type": "output", "at": clock.stamp(), "text": piece.decode("utf-8", "replace")}))

    def _keep(self, line: str) -> None:
        """Write a line; past `HEAD` bytes the last ones wait, as no one knows yet which those are."""
        size = len(line)
        if self._written < HEAD:
            self._written += size
            self._line(line)
            self._file.flush()
            return
        self._tail.append(line)
        self._kept += size
        while self._kept > TAIL and len(self._tail) > 1:
            gone = len(self._tail.popleft())
            self._kept -= gone
            self._dropped += gone

    @staticmethod
    def _said(value: dict[str, object]) -> str:
        return json.dumps(value, ensure_ascii=False)

    def _line(self, line: str) -> None:
        self._file.write(line + "\n")

"""What git prints about changes, read into words: no git is run here."""

import os
import re
from itertools import pairwise
from typing import Final

from relay.terms import Change, Struct

_HUNK: Final = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEAD: Final = re.compile(rb"(?m)^diff --git ")
_RENAMED: Final = re.compile(rb"(?m)^rename to (.+)$")


class Piece(Struct, frozen=True, kw_only=True):
    """The part of a patch that is about one file: the new name of a renamed one, its bytes, and all its text."""

    path: str
    size: int
    text: str


def pieces(out: bytes) -> list[Piece]:
    """Take a patch apart, file by file; a line of a file cannot look like a header, since each has a mark before it."""
    at = [found.start() for found in _HEAD.finditer(out)]
    whole = [out[begin:end] for begin, end in pairwise([*at, len(out)])]
    return [Piece(path=_about(piece), size=len(piece), text=piece.decode("utf-8", "replace")) for piece in whole]


def _about(piece: bytes) -> str:
    """Return the label of the path that a piece is about.

    `diff --git a/P b/P` says it twice, so its middle is known whatever stands in P; a rename has lines of its own.
    """
    head, _, rest = piece.partition(b"\n")
    renamed = _RENAMED.search(rest.partition(b"\n@@")[0])
    both = head.removeprefix(b"diff --git ")
    return label(unquoted(renamed[1]) if renamed else unquoted(both[len(both) // 2 + 1 :]).removeprefix("b/"))


def label(path: bytes | str) -> str:
    """Return a path as it stands in JSON and on a terminal: a byte that is not UTF-8 becomes its escape (row 100)."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def counts(out: bytes) -> tuple[Change, ...]:
    """Read `--numstat -z` without renames; paths become labels, a binary file counts -1."""
    rows = (row.split(b"\t", 2) for row in out.split(b"\0") if row)
    return tuple(
        Change(path=label(path), added=_count(added), removed=_count(removed)) for added, removed, path in rows
    )


def _count(text: bytes) -> int:
    return -1 if text == b"-" else int(text)


def ranges(out: bytes) -> dict[str, tuple[tuple[int, int], ...]]:
    """Read `-p -U0` without renames: the new side's path, and the first and last line of each added range."""
    found: dict[str, list[tuple[int, int]]] = {}
    path = ""
    skip = 0
    for line in out.split(b"\n"):
        if skip and not line.startswith(b"\\"):
            skip -= 1
        elif line.startswith(b"+++ "):
            path = unquoted(line[4:])
            if path.startswith("b/"):
                found[path[2:]] = []
        elif hunk := _HUNK.match(line):
            removed, first, added = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
            skip = removed + added
            if added:
                found[path[2:]].append((first, first + added - 1))
    return {name: tuple(ranges) for name, ranges in found.items()}


def unquoted(name: bytes) -> str:
    """Return a path as git writes it in a patch: quoted in C's way where it must be, with a tab after a blank."""
    if not name.startswith(b'"'):
        return os.fsdecode(name.rstrip(b"\t"))
    return os.fsdecode(re.sub(rb"\\([0-7]{3}|.)", _escape, name.rstrip(b"\t")[1:-1]))


def _escape(found: "re.Match[bytes]") -> bytes:
    letter = found[1]
    if len(letter) > 1:
        return bytes([int(letter, 8)])
    return {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}.get(
        letter, letter
    )

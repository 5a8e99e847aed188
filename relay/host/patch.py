"""What git prints about changes, read into words: no git is run here."""

import os
import re
from typing import Final

from relay.terms import Change

_HUNK: Final = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


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
            path = _unquoted(line[4:])
            if path.startswith("b/"):
                found[path[2:]] = []
        elif hunk := _HUNK.match(line):
            removed, first, added = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
            skip = removed + added
            if added:
                found[path[2:]].append((first, first + added - 1))
    return {name: tuple(ranges) for name, ranges in found.items()}


def _unquoted(name: bytes) -> str:
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

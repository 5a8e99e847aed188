"""A patch as lines to look at: each with its sort and its numbers on both sides, and bounded, with a cut that shows."""

import re
from typing import Final, Literal

from relay.host import patch
from relay.terms import Struct

LINES: Final = 1200
"""Lines of a whole patch that are shown."""

OF_FILE: Final = 300
"""Lines of one file that are shown."""

LETTERS: Final = 400
"""Characters of a line that are shown."""

OPEN: Final = 160
"""Lines up to which a file is shown unfolded."""

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

Sort = Literal["hunk", "added", "removed", "same", "note"]
_SORTS: Final[dict[str, Sort]] = {"+": "added", "-": "removed", " ": "same", "\\": "note"}


class Line(Struct, frozen=True, kw_only=True):
    """One line; the numbers are those of the old and of the new file, empty where it is not in one."""

    sort: Sort
    text: str
    old: str = ""
    new: str = ""


class File(Struct, frozen=True, kw_only=True):
    """What changed in one file; `more` lines of it are not shown, `facts` says what git says beside the lines."""

    path: str
    added: int
    removed: int
    lines: tuple[Line, ...]
    more: int = 0
    facts: str = ""

    @property
    def unfolded(self) -> bool:
        """Tell whether it is short enough to be shown at once."""
        return len(self.lines) <= OPEN


def read(diff: bytes) -> tuple[File, ...]:
    """Take a patch apart; files past the bound are named with their counts, and no line of theirs is shown."""
    found, left = [], LINES
    for piece in patch.pieces(diff):
        one = _file(piece, min(OF_FILE, left))
        left -= len(one.lines)
        found.append(one)
    return tuple(found)


def _file(piece: patch.Piece, limit: int) -> File:
    """Read the part of a patch that is about one file."""
    head, _, body = piece.text.partition("\n@@")
    rows = f"@@{body}".removesuffix("\n").split("\n") if body else []
    lines: list[Line] = []
    old = new = added = removed = 0
    for row in rows:
        sort = _SORTS.get(row[:1], "hunk")
        added += sort == "added"
        removed += sort == "removed"
        if len(lines) >= limit:
            continue
        if sort == "hunk":
            begins = _HUNK.match(row)
            old, new = (int(begins[1]), int(begins[2])) if begins else (old, new)
            lines.append(Line(sort=sort, text=_cut(row)))
            continue
        here, there = sort in {"same", "removed"}, sort in {"same", "added"}
        text = _cut(row if sort == "note" else row[1:])
        lines.append(Line(sort=sort, text=text, old=str(old) * here, new=str(new) * there))
        old, new = old + here, new + there
    said = [line for line in head.split("\n")[1:] if not line.startswith(("index ", "--- ", "+++ "))]
    return File(
        path=piece.path,
        added=added,
        removed=removed,
        lines=tuple(lines),
        more=len(rows) - len(lines),
        facts=_cut("; ".join(filter(None, said))),
    )


def _cut(text: str) -> str:
    left = len(text) - LETTERS
    return text if left <= 0 else f"{text[:LETTERS]} [cut: {left} more characters]"

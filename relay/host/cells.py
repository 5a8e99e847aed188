"""What stands in columns: cells with colours, as wide as a terminal shows them, and rows as lines that fit.

Unicode noncharacters, which no text may contain, stand for a colour until a stream is known. An agent can write them
all the same, so only those count that are followed by this process's own word, which nobody can know before.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal

Colour = Literal["bold", "dim", "red", "green", "yellow", "blue", "cyan"]

_WORD: Final = "".join(chr(0xFDE0 + int(digit, 16)) for digit in os.urandom(8).hex())
_MARKS: Final[dict[Colour, str]] = {
    "bold": f"\ufdd1{_WORD}",
    "dim": f"\ufdd2{_WORD}",
    "red": f"\ufdd3{_WORD}",
    "green": f"\ufdd4{_WORD}",
    "yellow": f"\ufdd5{_WORD}",
    "blue": f"\ufdd6{_WORD}",
    "cyan": f"\ufdd7{_WORD}",
}
_END: Final = f"\ufdd0{_WORD}"
_CODES: Final = dict(
    zip("\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufdd5\ufdd6\ufdd7", (0, 1, 2, 31, 32, 33, 34, 36), strict=True)
)
_MARK: Final = re.compile(f"([\ufdd0-\ufdd7]){_WORD}|[\ufdd0-\ufdef]")

GAP: Final = 2
"""Blanks between two columns."""

LEAST: Final = 12
"""Columns of a terminal below which a cell is left out rather than cut."""


def marked(text: str, colour: Colour) -> str:
    """Return a text, which has no marks itself, between those of a colour."""
    return f"{_MARKS[colour]}{text}{_END}"


def ours(text: str) -> str:
    """Return `text` without marks that are not this process's own."""
    return _MARK.sub(lambda found: found[0] if found[1] else "", text)


def bare(text: str) -> str:
    """Return `text` without marks, of ours and of anybody's."""
    return _MARK.sub("", text)


def coloured(text: str) -> str:
    """Return `text` with its colours as a terminal takes them, and without marks that are not ours."""
    return _MARK.sub(lambda found: f"\x1b[{_CODES[found[1]]}m" if found[1] else "", text)


def wide(text: str) -> int:
    """Return how many columns `text` takes: wide letters two, marks and what joins the letter before it none."""
    shown = bare(text)
    if shown.isascii():
        return len(shown)
    from rich.cells import cell_len  # 14 ms, and only other letters than these need its tables

    return cell_len(shown)


def widths(lines: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column is."""
    return [max(wide(line[at]) for line in lines if at < len(line)) for at in range(max(map(len, lines)))]


def laid(lines: Sequence[Sequence[str]], names: Sequence[str], room: int | None) -> Iterator[str]:
    """Yield rows as aligned lines; what has no room stands below its row, indented, after the name of its column.

    `names` are the headers, of which `lines` has the first one where there are any; with `room` None all has room.
    """
    found = widths(lines)
    fitting = (at for at in range(len(found), 1, -1) if room is None or sum(found[:at]) + GAP * (at - 1) <= room)
    beside = next(fitting, 1)
    for at, (line, text) in enumerate(zip(lines, _aligned(lines, found[:beside]), strict=True)):
        yield text
        if room is not None and (at or not names):
            yield from _below(zip_longest(names[beside : len(line)], line[beside:], fillvalue=""), room)


def _below(left: Iterable[tuple[str, str]], room: int) -> Iterator[str]:
    """Yield the lines of the cells that have no room in their row: short ones side by side, a command whole and alone.

    Whoever copies a command copies a line.
    """
    found: list[tuple[str, bool]] = []
    for name, cell in left:
        said = f"{name}: {cell}" if name and not cell.startswith(f"{name} ") else cell
        command = cell.startswith("relay ")
        beside = f"{found[-1][0]}{' ' * GAP}{said}" if found and not found[-1][1] and not command else ""
        if bare(cell) in {"", "-"}:
            continue
        if beside and wide(beside) <= room - 4:
            found[-1] = beside, False
        else:
            found.append((said, command))
    for said, command in found:
        yield from (f"    {line}" for line in ([said] if command else _wrapped(said, max(room - 4, LEAST))))


def _wrapped(text: str, room: int) -> list[str]:
    """Break a text into lines of so many columns, at blanks; a long word of letters that need none, anywhere."""
    lines = [""]
    for word in re.findall(r"\s*\S+", text):
        pieces = [word]
        if wide(word) > room - GAP and not word.isascii() and bare(word) == word:
            from rich.cells import chop_cells

            pieces = chop_cells(word, room - GAP)
        for piece in pieces:
            if not lines[-1] or wide(lines[-1] + piece) <= room:
                lines[-1] += piece
            else:
                lines.append(" " * GAP + piece.lstrip())
    return lines


def fitted(lines: Sequence[Sequence[str]], room: int) -> list[str]:
    """Lay rows out in lines of `room` columns: the widest cells are cut, then columns are left out, the last one first.

    The first column says which row it is, so it is cut only where it has no room alone.
    """
    found = widths(lines)
    while len(found) > 1:
        first, *others = found
        left, widest = room - first - GAP * len(others), max(others)
        level = next((at for at in range(widest, 0, -1) if sum(min(width, at) for width in others) <= left), 0)
        if level >= min(LEAST, widest):
            return [*_aligned(lines, [first, *(min(width, level) for width in others)])]
        found.pop()
    return [*_aligned(lines, [min(found[0], room)])]


def _aligned(lines: Iterable[Sequence[str]], found: Sequence[int]) -> Iterator[str]:
    """Yield rows as lines; a cell that is wider than its column is cut, and one without a column is left out."""
    for line in lines:
        cells = ((_cut(cell, width), width) for cell, width in zip(line, found, strict=False))
        yield (" " * GAP).join(cell + " " * (width - wide(cell)) for cell, width in cells).rstrip()


def _cut(cell: str, width: int) -> str:
    """Shorten a cell to so many columns; its colours end there."""
    if wide(cell) <= width:
        return cell
    kept, left = "", width - 1
    for found in re.finditer(f"{_MARK.pattern}|.", cell):
        left -= wide(found[0])
        if left < 0:
            break
        kept += found[0]
    return f"{kept}\u2026" + _END * (bare(cell) != cell)

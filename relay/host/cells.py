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

_PIECE: Final = re.compile(rf"\s*(?:(?:{_MARK.pattern}|[(\"])*(?:`[^`]*`|relay(?: [^\s;,]+)+)\S*|\S+)")
"""What is not broken: a word, what stands in backticks, a command of Relay's to the next comma, semicolon or gap."""

_TYPED: Final = re.compile(
    rf"(?:(?<=:)|\s*(?=(?:export|git|gh|glab|apt|apt-get|mkdir|rm|kill|loginctl) )) ?[^\s;,]+(?: [^\s;,]+)*[;,]?"
    rf"|{_PIECE.pattern}"
)
"""What is not broken in a hint: as above, and what follows a colon, or the name of a program that Relay hints at."""

GAP: Final = 2
"""Blanks between two columns."""

LEAST: Final = 12
"""Columns that a text below its row has at least."""


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


def laid(lines: Sequence[Sequence[str]], names: Sequence[str], room: int | None) -> Iterator[list[str]]:
    """Yield the lines of each row, aligned; what has no room stands below it, indented, after the name of its column.

    `names` are the headers, of which `lines` has the first one where there are any; with `room` None all has room.
    """
    found = widths(lines)
    fitting = (at for at in range(len(found), 1, -1) if room is None or sum(found[:at]) + GAP * (at - 1) <= room)
    beside = next(fitting, 1)
    for at, line in enumerate(lines):
        cells = (cell + " " * (width - wide(cell)) for cell, width in zip(line, found[:beside], strict=False))
        left = zip_longest(names[beside : len(line)], line[beside:], fillvalue="")
        below = _below(left, room) if room is not None and (at or not names) else ()
        yield [(" " * GAP).join(cells).rstrip(), *below]


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
        yield from (f"    {line}" for line in ([said] if command else folded(said, max(room - 4, LEAST))))


def folded(text: str, room: int) -> list[str]:
    """Break a line into lines of so many columns, at blanks; a long word of letters that need none, anywhere.

    What is typed stays whole, and a terminal may break it: what `_PIECE` knows for a command, and in a hint whatever
    follows a colon. Further lines are indented by two more than the first.
    """
    if wide(text) <= room:
        return [text]
    lines, indent = [""], " " * (len(text) - len(text.lstrip()) + GAP)
    for found in (_TYPED if bare(text).lstrip().startswith("hint:") else _PIECE).finditer(text):
        pieces, word = [found[0]], found[0]
        if wide(word) > room - len(indent) and not word.isascii() and bare(word) == word:
            from rich.cells import chop_cells

            pieces = chop_cells(word, max(room - len(indent), GAP))
        for piece in pieces:
            if not lines[-1] or wide(lines[-1] + piece) <= room:
                lines[-1] += piece
            else:
                lines.append(indent + piece.lstrip())
    return lines

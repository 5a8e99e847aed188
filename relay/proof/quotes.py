"""Where a quote stands in a text, found in one pass each way, however long both are and however often it does."""

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import Final

from relay.rules.findings import folded

SUBSTANCE: Final = 8
"""The fewest characters, blanks aside, of a quote that shows something; a whole line may be shorter."""


class Text:
    """A text with its whitespace folded, so that a quote may be indented otherwise or broken over lines."""

    def __init__(self, text: str) -> None:
        self.raw = text
        self.starts: list[int] = []
        """Where each line that is not blank begins in the folded text."""
        self.numbers: list[int] = []
        """The numbers of those lines, from 1."""
        words, at = [], 0
        for number, line in enumerate(text.split("\n"), 1):
            if part := folded(line):
                self.starts.append(at)
                self.numbers.append(number)
                words.append(part)
                at += len(part) + 1
        self.whole = " ".join(words)

    @cached_property
    def _backwards(self) -> str:
        """Searching backwards in a text takes the product of both lengths at worst; forwards in this one, their sum."""
        return self.whole[::-1]

    def place(self, quote: str, near: int) -> tuple[int, int] | None:
        """Return the first and last line where a quote stands, the nearest to line `near`; None if nowhere."""
        wanted = folded(quote)
        if not wanted:
            return None
        index = bisect_left(self.numbers, near)
        edge = self.starts[index] if index < len(self.starts) else len(self.whole)
        after = self.whole.find(wanted, edge)
        before = self._last(wanted, edge)
        lines = [self._lines(at, len(wanted)) for at in (before, after) if at >= 0]
        return min(lines, key=lambda found: (abs(found[0] - near), found), default=None)

    def _last(self, wanted: str, edge: int) -> int:
        """Return where the last line before `edge` has it for the first time; -1 where none has it."""
        length = len(self.whole)
        mirrored = self._backwards.find(wanted[::-1], max(0, length - (edge + len(wanted) - 1)))
        if mirrored < 0:
            return -1
        line = bisect_right(self.starts, length - mirrored - len(wanted)) - 1
        return self.whole.find(wanted, self.starts[line])

    def _lines(self, at: int, length: int) -> tuple[int, int]:
        """Return the numbers of the lines on which a stretch of the folded text begins and ends."""
        first, last = (self.numbers[bisect_right(self.starts, end) - 1] for end in (at, at + length - 1))
        return first, last

    def substantial(self, quote: str, lines: tuple[int, int]) -> bool:
        """Tell whether a quote that stands on these lines is more than a scrap: of some length, or all there is."""
        wanted = folded(quote)
        if len(wanted.replace(" ", "")) >= SUBSTANCE:
            return True
        begin, end = bisect_left(self.numbers, lines[0]), bisect_right(self.numbers, lines[1])
        stop = self.starts[end] - 1 if end < len(self.starts) else len(self.whole)
        return self.whole[self.starts[begin] : stop] == wanted

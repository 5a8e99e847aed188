"""Where quotes stand: however they are broken, the nearest counts; and a scrap of a line is no evidence."""

import itertools

import pytest

from relay.proof.quotes import Text
from relay.rules.findings import folded
from tests import calls

TEXT = "def sub(a, b):\n\treturn  a -\n\tb\n\n\ndef add(a, b):\n    return a +  b\n    return a - b\n"


@pytest.mark.parametrize(
    ("quote", "near", "lines"),
    [
        ("return a - b", 1, (2, 3)),
        ("return a - b", 8, (8, 8)),
        ("return a - b", 5, (2, 3)),
        ("return a - b", 6, (8, 8)),
        ("return a - b", -5, (2, 3)),
        ("return a - b", 10**30, (8, 8)),
        ("  def add(a,  b):\n return", 1, (6, 7)),
        ("n a +", 1, (7, 7)),
        ("return", 7, (7, 7)),
        ("return a * b", 2, None),
        ("return a - b\nreturn a - b", 2, None),
        ("return\x07 a - b", 2, (2, 3)),
        (" \n", 2, None),
        ("", 2, None),
    ],
)
def test_a_quote_is_found_however_it_is_broken_and_the_nearest_counts(
    quote: str, near: int, lines: tuple[int, int] | None
) -> None:
    assert Text(TEXT).place(quote, near) == lines
    assert Text("").place(quote, near) is None


def _by_trying(quote: str, text: str, near: int) -> tuple[int, int] | None:
    """Find the nearest place by looking at every stretch of lines, beginning and ending within them."""
    lines, found = text.split("\n"), []
    for first, last in itertools.combinations_with_replacement(range(len(lines)), 2):
        inner = folded("\n".join(lines[first + 1 : last]))
        for cut in range(len(folded(lines[first]))):
            head = folded(lines[first])[cut:]
            for end in range(1, len(folded(lines[last])) + 1):
                tail = folded(lines[last])[:end]
                one = " ".join(part for part in (head, inner, tail) if part)
                if folded(quote) == (folded(lines[first])[cut:end] if first == last else one):
                    found.append((first + 1, last + 1))
    return min(found, key=lambda one: (abs(one[0] - near), one), default=None)


def test_the_place_is_the_one_that_trying_them_all_would_find() -> None:
    texts = ["".join(text) for text in itertools.product(("a", "b ", "\n", "\n a"), repeat=5)]
    for number, text in enumerate(texts):
        for quote in ("a", "a a", "ab", "b a", "a\nb"):
            assert Text(text).place(quote, number % 5) == _by_trying(quote, text, number % 5), (text, quote)


def test_a_quote_that_stands_a_hundred_thousand_times_is_looked_for_no_more_than_thrice() -> None:
    text = Text("a b a\n" * 50_000)
    with calls.counted() as count:
        assert text.place("a", 40_000) == (40_000, 40_000)
    assert count["find"] == 3
    assert count.total() < 100


@pytest.mark.parametrize(
    ("quote", "enough"),
    [("return a +  b", True), ("return a", False), ("turn  a +", False), ("}", True), ("x", False), ("x =\n 1", True)],
)
def test_a_quote_shows_something_if_it_has_some_length_or_is_all_that_stands_there(quote: str, *, enough: bool) -> None:
    text = Text(f"{TEXT}  }}\nx =\n1\n")
    lines = text.place(quote, 1)
    assert lines is not None
    assert text.substantial(quote, lines) is enough

"""Reading any note: each fault is found, and named."""

import datetime as dt
from collections.abc import Iterator

import pytest

from relay.host import clock
from relay.record import note_lint

GOOD = """\
+++
schema = 1
run = "261129-0230-fix-login"
leg = "01-implement"
from = "implement (Ada)"
to = "review"
boundary = "verify-only"
written_at = 2026-11-29T02:41:07Z
about = "the change"
code_version = "<pending: git rev-parse HEAD>"
spec_sha256 = "5bec"
round = 1
ended_by = "reply"
+++
## Boundary

verify only

## Recovery steps

- `git diff --stat 0123456789012345678901234567890123456789`

## Completed

the sum

## Decisions

none

## Must

- keep 0123456789012345678901234567890123456789 reachable

## Risks

none

## To do

none
"""


@pytest.fixture(autouse=True)
def _night() -> Iterator[None]:
    with clock.fix(dt.datetime(2026, 11, 29, 3, tzinfo=dt.UTC)):
        yield


def test_a_good_note_has_no_fault_hand_written_or_not() -> None:
    assert note_lint.lint(GOOD) == []


def test_the_front_matter_is_read() -> None:
    assert note_lint.front(GOOD)["from"] == "implement (Ada)"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("+++\nschema", "schema", "the note does not begin with a line `+++`"),
        ("+++\n## Boundary", "## Boundary", "the front matter is not closed by a line `+++`"),
        ("schema = 1", "schema = 2", "`schema` is `2`, and this version reads 1"),
        ("schema = 1\n", "", "`schema` is `None`, and this version reads 1"),
        ('run = "261129-0230-fix-login"\n', "", "`run` is missing or not a text"),
        ('to = "review"', "to = 7", "`to` is missing or not a text"),
        ("round = 1", 'round = "1"', "`round` is missing or not a number"),
        ("round = 1", "round = true", "`round` is missing or not a number"),
        ("round = 1", "round = 1\nmood = 'good'", "unknown key `mood`"),
        ("2026-11-29T02:41:07Z", "2026-11-29T02:41:07", "`written_at` is missing or not a time with an offset"),
        ("2026-11-29T02:41:07Z", "2026-11-29", "`written_at` is missing or not a time with an offset"),
        ("2026-11-29T02:41:07Z", "2026-11-29T04:41:07Z", "`written_at` lies in the future"),
        ('"verify-only"', '"anything"', "`boundary` is `anything`: it is `implement` or `verify-only`"),
        ("<pending: git rev-parse HEAD>", "0123abc", "`code_version` carries a value that can drift"),
        ("## Risks\n", "", "section `## Risks` is missing"),
        ("## Risks", "## Riscs", "section `## Risks` is missing"),
        ("## Risks\n\nnone\n\n## To do", "## To do\n\nnone\n\n## Risks", "the sections stand in another order"),
        ("## Risks", "## Must\n\n- another\n\n## Risks", "the sections stand in another order"),
        ("the sum", "x" * 10_000, "and the budget is 10000"),
        ("the sum", "at 0123456789012345678901234567890123456789", "a full commit id, which can drift"),
        ("the sum", f"at {'0123abcd' * 8}.", "a full commit id, which can drift"),
    ],
)
def test_each_fault_is_named_and_is_the_only_one(old: str, new: str, fault: str) -> None:
    assert old in GOOD
    [found] = note_lint.lint(GOOD.replace(old, new, 1))
    assert fault in found


def test_front_matter_that_is_no_toml_says_where() -> None:
    [found] = note_lint.lint(GOOD.replace("round = 1", "round = = 1"))
    assert "line 11" in found


def test_all_faults_are_told_at_once() -> None:
    found = note_lint.lint("+++\n+++\nhello\n")
    assert len(found) == len(note_lint.TEXTS) + 3 + 7


@pytest.mark.parametrize("text", ["", "+++", "+++\n", "+++\n+++", "\ufeff+++\n", "## Must\n"])
def test_a_note_without_front_matter_is_one_fault(text: str) -> None:
    assert len(note_lint.lint(text)) == 1

"""Specs: plain Markdown works, front matter is read strictly, and what is no spec is refused by name."""

import hashlib
import os
from pathlib import Path

import pytest

from relay.errors import Exit, RelayError
from relay.record import spec
from relay.terms import Budget, Criterion, Must, Ship, Spec

PLAIN = """# Login accepts capitals

It does not.

## Acceptance

- both spellings log in: `pytest -q tests/test_login.py`
* the page reads well
1. [ ] `ruff check .`
- [x] a long one
  that is wrapped: `make
  test`

More words, `not a criterion`.

## Later

- `nor this`
"""


def _parse(text: str) -> Spec:
    return spec.parse(text, "task.md")


def _refusal(text: str) -> RelayError:
    with pytest.raises(RelayError) as caught:
        _parse(text)
    assert caught.value.exit_code is Exit.USAGE
    assert caught.value.message.startswith("`task.md`")
    assert caught.value.hint
    return caught.value


def _checks(items: str) -> list[str | None]:
    return [one.check for one in _parse(f"# t\n\n## Criteria\n\n{items}\n").criteria]


def test_plain_markdown_gives_a_title_and_criteria_in_order() -> None:
    parsed = _parse(PLAIN)
    assert parsed.title == "Login accepts capitals"
    assert parsed.text == PLAIN
    assert parsed.sha256 == hashlib.sha256(PLAIN.encode()).hexdigest()
    assert parsed.criteria == (
        Criterion(
            id="c1",
            text="both spellings log in: `pytest -q tests/test_login.py`",
            check="pytest -q tests/test_login.py",
        ),
        Criterion(id="c2", text="the page reads well"),
        Criterion(id="c3", text="`ruff check .`", check="ruff check ."),
        Criterion(id="c4", text="a long one that is wrapped: `make test`", check="make test"),
    )


@pytest.mark.parametrize(
    "heading",
    ["## Acceptance", "### criteria", "###### ACCEPTANCE CRITERIA", "## Acceptance criteria:", "## Criteria ##"],
)
def test_the_heading_of_the_list_may_be_written_in_several_ways(heading: str) -> None:
    assert [one.check for one in _parse(f"# t\n{heading}\n- `true`\n").criteria] == ["true"]


@pytest.mark.parametrize("heading", ["# Acceptance", "## Acceptance of terms", "##Acceptance", "    ## Acceptance"])
def test_another_heading_starts_no_list(heading: str) -> None:
    assert _parse(f"# t\n{heading}\n- `true`\n").criteria == ()


def test_the_list_ends_at_a_heading_of_its_level_and_goes_on_below_deeper_ones() -> None:
    parsed = _parse(
        "# t\n## Acceptance\n- `a 1`\n### Backend\n- `b 1`\n### Criteria\n- `c 1`\n#### x\n## Else\n- `d 1`\n"
    )
    assert [one.check for one in parsed.criteria] == ["a 1", "b 1", "c 1"]


def test_fenced_code_and_comments_are_not_looked_into() -> None:
    text = (
        "```\n# no title\n```\n# t\n## Acceptance\n- `a 1`\n\n~~~sh\n- `b 1`\n```\n~~~\n<!--\n- `c 1`\n-->\n- `d 1`\n"
    )
    parsed = _parse(text)
    assert parsed.title == "t"
    assert [one.check for one in parsed.criteria] == ["a 1", "d 1"]


@pytest.mark.parametrize(
    ("items", "checks"),
    [
        ("- `true`", ["true"]),
        ("- ``echo `date` ``", ["echo `date`"]),
        ('- `grep "a  b" x`', ['grep "a  b" x']),
        ("- `login()` works: `pytest -q`", ["pytest -q"]),
        ("- `! grep -q TODO x.py`", ["! grep -q TODO x.py"]),
        ("- `A=1 B=2 make check`", ["A=1 B=2 make check"]),
        ("- `x = 1` gives `y = 2`", ["x = 1"]),
        ("- no closing ` tick", [None]),
        ("- one\n  - `two 2`\n- three", [None, "two 2", None]),
        ("- one\n\n  more `of it 1`\n\nno `longer 1`", ["of it 1"]),
        ("- one\n- \n- two", [None, None]),
        ("- one\n***\n- two\nwrapped without indent `x 1`", [None, "x 1"]),
        ("**bold** `x 1`\n-no item `x 1`", []),
    ],
)
def test_the_first_code_span_that_looks_like_a_command_is_the_check(items: str, checks: list[str | None]) -> None:
    assert _checks(items) == checks


def test_without_a_heading_the_first_line_is_the_title() -> None:
    assert _parse("\n\nmake add add\n\nIt subtracts.\n").title == "make add add"


def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "task.md"
    path.write_bytes(b"\xef\xbb\xbf" + f"+++\nbase = 'main'\n+++\n{PLAIN}".replace("\n", "\r\n").encode())
    parsed = spec.read(path)
    assert parsed.base == "main"
    assert parsed.title == "Login accepts capitals"
    assert parsed.criteria == _parse(PLAIN).criteria


def test_front_matter_says_what_it_may_say() -> None:
    text = """+++
title = "Another title"
base = "develop"
phases = ["plan", "implement", "review"]
files = ["shop/**"]
may_change_tests = true
criteria = [{text = "it is quick", check = "python bench.py", id = "speed"}, {text = "it reads well"}]
must = ["keep the API", {must = "no downtime", prerequisite = "p", authority = "a", fallback = "f", consequence = "c"}]

[budget]
usd = 5
minutes = 90

[ship]
method = "fast-forward"
+++
# t

## Criteria
- `make`
"""
    parsed = _parse(text)
    assert (parsed.title, parsed.base, parsed.phases) == ("Another title", "develop", ("plan", "implement", "review"))
    assert (parsed.files, parsed.may_change_tests) == (("shop/**",), True)
    assert parsed.budget == Budget(usd=5.0, minutes=90.0)
    assert parsed.ship == Ship(method="fast-forward")
    assert parsed.must[0] == Must(must="keep the API")
    assert parsed.must[1].fallback == "f"
    assert [(one.id, one.check) for one in parsed.criteria] == [
        ("speed", "python bench.py"),
        ("c1", None),
        ("c2", "make"),
    ]


def test_a_spec_may_be_front_matter_alone() -> None:
    assert _parse('+++\ntitle = "t"\ncriteria = [{text = "x"}]\n+++\n').criteria == (Criterion(id="c1", text="x"),)


def test_a_given_id_is_left_out_of_the_numbering() -> None:
    parsed = _parse('+++\ncriteria = [{text = "a"}, {text = "b", id = "c1"}]\n+++\n# t\n## Criteria\n- c\n')
    assert [one.id for one in parsed.criteria] == ["c2", "c1", "c3"]


@pytest.mark.parametrize(
    ("front", "words"),
    [
        ("phasse = ['plan']", "`phasse` is not a known key, did you mean `phases`?"),
        ("[budget]\nusdd = 1", "`budget.usdd` is not a known key, did you mean `usd`?"),
        ("criteria = [{text = 'a', chek = 'b'}]", "`criteria[0].chek` is not a known key, did you mean `check`?"),
        ("must = ['a', {mist = 'b'}]", "`must[1].mist` is not a known key, did you mean `must`?"),
        ("must = ['a', 3]", "`must[1]`"),
        ("must = [' ']", "`must[0]` is empty"),
        ("criteria = [{check = 'a'}]", "`criteria[0].text` is missing"),
        ("criteria = [{text = ''}]", "`criteria[0].text` is empty"),
        ("criteria = [{text = 'a', check = ' '}]", "`criteria[0].check` is empty"),
        ("criteria = [{text = 'a', id = 'a b'}]", "`criteria[0].id` is `a b`"),
        ("criteria = [{text = 'a', id = 'x'}, {text = 'b', id = 'x'}]", "two criteria have the id `x`"),
        ("base = 3", "`base`: expected `str`, got `int`"),
        ("phases = []", "`phases` is empty"),
        ("title = ''", "`title` must be one line"),
        ("files = ['/etc/passwd']", "`files` has `/etc/passwd`"),
        ("files = ['../x']", "`files` has `../x`"),
        ("budget = {usd = 0}", "`budget.usd` is 0.0"),
        ("budget = {minutes = nan}", "`budget.minutes` is nan"),
        ("budget = {usd = inf}", "`budget.usd` is inf"),
        ("budget = {reserve = 1.5}", "`budget.reserve` is 1.5"),
        ("ship = {method = 'merg'}", "`ship.method`: `merg` is not one of merge,"),
        ("may_change_tests = 'yes'", "`may_change_tests`: expected `bool`, got `str`"),
        ("schema = 2", "schema `2` is unknown"),
        ("base = ", "it is not TOML"),
        ("base = 'a'\nbase = 'b'", "it is not TOML"),
    ],
)
def test_front_matter_is_read_strictly(front: str, words: str) -> None:
    assert words in _refusal(f"+++\n{front}\n+++\n# t\n").message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the spec is empty"),
        (" \n\t\n", "the spec is empty"),
        ("# t\0", "NUL character at offset 3"),
        ("+++\nbase = 'main'\n# t\n", "never closed"),
        ("+++\n+++\n", "no title"),
        ("```\nall code\n```\n", "no title"),
        ("x" * ((1 << 20) + 1), "the limit is 1048576"),
        ("# \ud800", "not UTF-8"),
    ],
)
def test_what_is_no_spec_is_refused(text: str, words: str) -> None:
    assert words in _refusal(text).message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the spec is empty"),
        (b"# t\n\xff\n", "not UTF-8, see byte 4"),
        (b"# t\0\n", "NUL"),
        (b"x" * (5 << 20), "has 5242880 bytes, the limit is 1048576"),
    ],
)
def test_a_file_that_is_no_spec_is_refused_with_its_path(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "task.md"
    path.write_bytes(content)
    with pytest.raises(RelayError) as caught:
        spec.read(path)
    assert words in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.exit_code is Exit.USAGE


def test_a_missing_spec_a_folder_and_a_pipe_are_refused_with_the_path(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "loop.md").symlink_to("loop.md")
    for name, words in {
        "gone.md": "there is no spec",
        "pipe.md/x": "there is no spec",
        ".": "is a folder",
        "pipe.md": "not a plain file",
        "loop.md": "cannot be read",
        "a\0b": "cannot be read",
    }.items():
        with pytest.raises(RelayError, match=words) as caught:
            spec.read(tmp_path / name)
        assert str(tmp_path) in caught.value.message


def test_a_spec_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text(PLAIN)
    (tmp_path / "link.md").symlink_to("real.md")
    assert spec.read(tmp_path / "link.md").title == "Login accepts capitals"


def test_a_line_of_a_million_spaces_is_read_at_once() -> None:
    assert _parse("# t\n## Criteria\n- " + " " * 500_000 + "x\n# " + " #" * 200_000 + "y\n").criteria[0].text == "x"


@pytest.mark.parametrize("item", ["``", "` `", "[ ] ` `", "`"])
def test_an_item_without_a_word_is_no_criterion(item: str) -> None:
    assert spec.parse(f"# Title\n\n## Acceptance\n\n- {item}\n- It works\n", "t.md").criteria[0].text == "It works"

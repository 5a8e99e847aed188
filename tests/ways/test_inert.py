"""Agents' words as they leave act on no forge, whatever stands in them, and can be read."""

import re
import subprocess
from pathlib import Path

import pytest

from relay.host import redact
from relay.ways import inert

HOSTILE = [
    "Fixes #1, closes GH-2 and resolves: acme/shop#3",
    "Closes SHOP-12; implements https://forge.example.org/acme/shop/-/issues/4",
    "fixes\u200b #\u200b1, closes #\u20602 \u202egnp.exe",
    "Ask @team, @acme/admins, &#64;ada, &commat;ada, \\@ada",
    "[skip ci] [ci skip] ***NO_CI*** [no ci] [skip actions]",
    "![](http://tracker.example.org/x.png) [click](javascript:alert(1)) ![a][b]\n\n[b]: http://x.example.org",
    "<!-- hidden\n<details><summary>x</summary> <img src=x onerror=y>",
    "/merge\n/approve\n /close\n> /merge\n```\n/merge\n```\n>>>\n/merge\n>>>",
    "fine\n---\nReviewed-by: Mallory <m@example.org>\nRelay-Run: 1\nSigned-off-by: Mallory <m@example.org>",
    "fine\n\nSigned-off-by: Mallory <m@example.org>\nCo-authored-by: Mallory <m@example.org>",
    "# a comment\n#another\n; a comment too",
    "BREAKING CHANGE: none\n\n\nskip-checks: true\nChange-Id: I1",
    "x\x0bRelay-Run: 1\x85Relay-Run: 2\u2028Relay-Run: 3\x1b[2J\x00 \r/merge\r\n/close",
    "~~~\nunclosed $`x`$ | a | b |\n|---|\n==x== :+1: {+ more +} [^1] [[_TOC_]]",
    "\\[skip ci\\] \\<!-- \\\\<b> \\`#1\\` \\",
    "www.example.org mailto:ada@example.org !12 acme/shop!3",
    "long " * 4000,
    "a" * 30_000,
]
ACTS = [
    r"@\S",
    r"#\w",
    r"!\d",
    r"(?i)\bgh-\d",
    r"\b[A-Z][A-Z0-9_]+-\d",
    r"://",
    r"(?i)\bwww\.",
    r"\*\*\*",
    r"(?i)\[[^\]\\]*(?:skip|no)\b[^\]\\]*\]",
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]",
    # GitLab's closing pattern, as its documentation prints it, and GitHub's words before a number
    r"(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?):? +\S*(?:#\d|://)",
]
BARE = [r"(?<!\\)(?:\\\\)*[<\[\]`|_*&~$#]"]
"""What Markdown or HTML would take for its own: a mark with no backslash before it."""


@pytest.mark.parametrize("text", HOSTILE)
def test_in_a_message_nothing_acts_and_every_line_is_quoted(text: str) -> None:
    lines = inert.message(text, 4000).splitlines()
    assert all(line == ">" or line.startswith("> ") for line in lines)
    assert max(map(len, lines)) <= inert.WIDE + 2
    assert not [(sign, line) for sign in ACTS for line in lines if re.search(sign, line)]
    assert "[" not in "".join(lines)


@pytest.mark.parametrize("text", HOSTILE)
def test_git_finds_relays_trailers_in_a_message_and_no_other(tmp_path: Path, text: str) -> None:
    own = "Relay-Run: 261129-0230-task\nReviewed-by: reader (scripted)\n"
    whole = f"Make add add\n\n{inert.message(text, 4000)}\n\n{own}"
    for also in ([], ["--no-divider"]):
        parse = ["git", "interpret-trailers", "--parse", *also]
        ran = subprocess.run(parse, input=whole.encode(), capture_output=True, check=True, cwd=tmp_path)
        assert ran.stdout.decode() == own
    strip = ["git", "stripspace", "--strip-comments"]
    kept = subprocess.run(strip, input=whole.encode(), capture_output=True, check=True, cwd=tmp_path).stdout
    assert kept.decode().split() == whole.split(), "a later `git commit --amend` drops nothing of it"


@pytest.mark.parametrize("text", HOSTILE)
def test_on_a_page_nothing_acts_and_no_mark_is_bare(text: str) -> None:
    quoted = inert.page(text, 4000)
    lines = quoted.splitlines()
    assert all(line == ">" or line.startswith("> ") for line in lines)
    for part in (*(line.removeprefix(">") for line in lines), inert.inline(text, 300)):
        assert not [sign for sign in (*ACTS, *BARE) if re.search(sign, part)], part
    assert "\n" not in inert.inline(text, 300)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_command_or_a_path_is_code_only_where_nothing_in_it_can_end_it(text: str) -> None:
    code = inert.code(text, 300)
    inner = code[1:-1] if code.startswith("`") else code
    assert not [sign for sign in ACTS if re.search(sign, inner)], code
    if code.startswith("`"):
        assert not re.search(r"[\\`\[<|\n]", inner)
    else:
        assert not [mark for mark in BARE if re.search(mark, code)], code


def test_plain_words_stay_as_they_are() -> None:
    said = "The zero is gone (see calc.py, line 2).\n\n- a list\n- stays a list"
    quoted = "> The zero is gone (see calc.py, line 2).\n>\n> - a list\n> - stays a list"
    assert inert.message(said, 4000) == inert.page(said, 4000) == quoted
    assert inert.code("grep -q 'return a + b' calc.py", 300) == "`grep -q 'return a + b' calc.py`"


def test_what_is_too_long_is_cut_where_everybody_sees_it() -> None:
    assert inert.message("x" * 50 + "y" * 7, 50) == f"> {'x' * 50}\n> (cut here: 7 more characters)"


def test_a_person_is_quoted_word_by_word() -> None:
    assert (
        inert.quoted("Fixes #1.\n<!-- note -->\n/merge, says @ada")
        == "> Fixes #1.\n> <!-- note -->\n> /merge, says @ada"
    )


def test_a_secret_is_taken_out_before_a_sign_in_it_is_set_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKEN", "ghp_" + "aB3_" * 9)
    redact.forget()
    for made in (inert.page, inert.message, inert.inline, inert.code):
        assert "aB3" not in made("the token is ghp_\u200b" + "aB3_" * 9, 300)


def test_what_looks_like_an_issue_and_is_a_standard_stays_as_it_is() -> None:
    assert inert.message("reads UTF-8, hashes by SHA-256", 100) == "> reads UTF-8, hashes by SHA-256"

"""What stands in columns: marks of colour that only Relay can set, and rows that fit their terminal."""

import os
import pty
import subprocess
import sys

import pytest

from relay.host import cells, term
from tests.world import CHECKOUT, SAFETY

FORGED = "\ufdd4all is well\ufdd0 and \ufdd3FAIL\ufdd0"

_PAINTS = f"""
from relay.host import term
term.data({FORGED!r})
term.data(term.style({FORGED!r}, "bold") + " " + {FORGED!r})
term.table([[{FORGED!r}, term.style("ok", "green")]])
term.live({FORGED!r})
"""


def test_marks_that_an_agent_wrote_never_become_a_colour() -> None:
    master, slave = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", _PAINTS],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TERM": "xterm", "NO_COLOR": ""},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        check=False,
        timeout=SAFETY,
    )
    os.close(slave)
    text = os.read(master, 1 << 16).decode().replace("\r\n", "\n")
    os.close(master)
    assert done.returncode == 0, text
    said = "all is well and FAIL"
    plain, styled, row, live = text.removesuffix("\n").split("\n")
    assert plain == said
    assert styled == f"\x1b[1m{said}\x1b[0m {said}"
    assert row == f"{said}  \x1b[32mok\x1b[0m"
    assert live == f"\r\x1b[2K{said}"


def test_marks_of_another_process_are_those_of_a_stranger() -> None:
    code = "from relay.host import term; import sys; sys.stdout.write(ascii(term.style('ok', 'green')))"
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            check=True,
            text=True,
            timeout=SAFETY,
        ).stdout
        for _ in range(2)
    ]
    assert told[0] != told[1]
    assert ascii(term.style("ok", "green")) not in told


RAISED = "2 alerts, of which the oldest: `main` has moved on; relay reap -v"
AGAIN = "after `tasks/salt.md`, (`261130-1228-salt` is red) or relay resume 261130-1228-salt --rounds 1, once more"


@pytest.mark.parametrize("room", [200, 80, 60, 40, 30, 21])
@pytest.mark.parametrize(
    "text",
    [RAISED, f"    {AGAIN}", term.style(RAISED, "yellow"), term.style(AGAIN, "red")],
    ids=["raised", "indented", "yellow", "red"],  # a colour stands for another secret in each process
)
def test_sentences_are_broken_between_words_and_what_is_typed_or_named_nowhere(text: str, room: int) -> None:
    lines = cells.folded(text, room)
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    whole = {
        "relay reap -v",
        "`main`",
        "`tasks/salt.md`",
        "`261130-1228-salt`",
        "relay resume 261130-1228-salt --rounds 1",
    }
    for part in whole:
        assert sum(part in line for line in lines) == (part in text)
    long = [line for line in lines if cells.wide(line) > room]
    assert all(any(part in line for part in whole) for line in long), long
    assert len(lines) == 1 if room == 200 else all(line.startswith("  ") for line in lines[1:])


def test_what_follows_a_colon_in_what_is_to_be_typed_is_whole_and_the_words_before_it_are_not() -> None:
    text = "hint: look at it, then move it away: ls -ld /some/folder; or keep it"
    assert cells.folded(text, 36) == [
        "hint: look at it, then move it away:",
        "  ls -ld /some/folder; or keep it",
    ]
    assert "  ls -ld /some/folder;" in cells.folded(text, 20)
    told = f"      {term.style('hint:', 'cyan')} git add a-file && git commit, or leave it as it is"
    assert cells.folded(told, 24)[1:] == [
        "        git add a-file && git commit,",
        "        or leave it as",
        "        it is",
    ]


def test_columns_that_have_no_room_stand_below_their_row_by_name_and_a_command_stays_whole() -> None:
    rows = [
        ["run", "needs", "next"],
        ["a", "a word and another one, and many more", "relay answer a TEXT --and more of it"],
    ]
    assert [*cells.laid(rows, rows[0], 24)] == [
        ["run"],
        [
            "a",
            "    needs: a word and",
            "      another one, and",
            "      many more",
            "    next: relay answer a TEXT --and more of it",
        ],
    ]
    assert len([*cells.laid(rows, rows[0], None)]) == 2, "without a terminal a row is a line"


def test_short_cells_without_room_share_a_line_and_empty_ones_have_none() -> None:
    rows = [["run", "leg", "score", "needs", "next"], ["a" * 20, "02-review", "-", "you", "relay resume"]]
    assert [*cells.laid(rows, rows[0], 30)][1] == [
        "a" * 20,
        "    leg: 02-review  needs: you",
        "    next: relay resume",
    ]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("relay", 5),
        ("漢字", 4),
        ("e\u0301", 1),
        ("\u200bx", 1),
        ("हिन्दी", 3),
        ("\u1100\u1161\u11a8", 2),
        ("👩\u200d👧", 2),
    ],
)
def test_a_text_is_as_wide_as_a_terminal_shows_it(text: str, columns: int) -> None:
    assert cells.wide(text) == columns


@pytest.mark.parametrize("room", [20, 33, 55])
def test_a_text_without_blanks_between_its_words_keeps_to_the_room_below_its_row(room: int) -> None:
    rows = [["run", "outcome", "needs"], ["261130-0417-task", "needs-human", "漢字" * 60]]
    [_, [_, *below]] = cells.laid(rows, rows[0], room)
    assert len(below) > 1
    assert [line for line in below if cells.wide(line) > room] == []
    assert "".join("".join(line.split()) for line in below).count("漢字") == 60

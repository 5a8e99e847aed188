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


ROWS = [
    ["run", "outcome", "leg", "needs"],
    ["261129-0230-fix-login", term.style("needs-human", "red"), "02-review", "3 of 3 rounds of `review` are used up"],
    ["261129-0231-speed", "open", "01-implement", ""],
]


@pytest.mark.parametrize("room", [200, 80, 60, 50, 40, 21, 8, 1])
def test_a_row_of_the_board_takes_one_line_of_any_width(room: int) -> None:
    lines = cells.fitted(ROWS, room)
    assert len(lines) == len(ROWS)
    assert all(cells.wide(line) <= room for line in lines), lines
    assert all(line.startswith(row[0][: room - 1]) for line, row in zip(lines, ROWS, strict=True)), lines


def test_the_last_column_is_cut_first_and_left_out_before_the_others_say_nothing() -> None:
    assert cells.bare(cells.fitted(ROWS, 200)[1]).endswith("`review` are used up")
    assert (
        cells.bare(cells.fitted(ROWS, 66)[1])
        == "261129-0230-fix-login  needs-human  02-review     3 of 3 rounds o\u2026"
    )
    assert cells.bare(cells.fitted(ROWS, 60)[1]) == "261129-0230-fix-login  needs-human  02-review"


def test_a_cell_that_is_cut_keeps_its_colour_to_itself() -> None:
    [line] = cells.fitted([[term.style("needs-human", "red")]], 6)
    assert cells.coloured(line) == "\x1b[31mneeds\u2026\x1b[0m"


def test_columns_that_have_no_room_stand_below_their_row_by_name_and_a_command_stays_whole() -> None:
    rows = [
        ["run", "needs", "next"],
        ["a", "a word and another one, and many more", "relay answer a TEXT --and more of it"],
    ]
    assert [*cells.laid(rows, rows[0], 24)] == [
        "run",
        "a",
        "    needs: a word and",
        "      another one, and",
        "      many more",
        "    next: relay answer a TEXT --and more of it",
    ]
    assert len([*cells.laid(rows, rows[0], None)]) == 2, "without a terminal a row is a line"


def test_short_cells_without_room_share_a_line_and_empty_ones_have_none() -> None:
    rows = [["run", "leg", "score", "needs", "next"], ["a" * 20, "02-review", "-", "you", "relay resume"]]
    assert [*cells.laid(rows, rows[0], 30)][1:] == [
        "a" * 20,
        "    leg: 02-review  needs: you",
        "    next: relay resume",
    ]


def test_wide_letters_are_cut_where_they_end() -> None:
    assert cells.fitted([["\u65e5\u672c\u8a9e"]], 4) == ["\u65e5\u2026"]


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
    below = list(cells.laid(rows, rows[0], room))[2:]
    assert len(below) > 1
    assert [line for line in below if cells.wide(line) > room] == []
    assert "".join("".join(line.split()) for line in below).count("漢字") == 60

"""The terminal: data and talk apart, nothing that obeys an agent, and no failure of its own."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from relay.errors import Exit, RelayError
from relay.host import redact, term
from tests.world import CHECKOUT, SAFETY


@pytest.fixture(autouse=True)
def _normal_voice() -> Iterator[None]:
    term.configure(quiet=False, verbose=False, json=False)
    yield
    term.configure(quiet=False, verbose=False, json=False)


class Screen(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def isatty(self) -> bool:
        return True

    def data(self, text: str) -> str:
        """Print `text` on this terminal, and return all that it was sent."""
        with contextlib.redirect_stdout(self):
            term.data(text)
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Return a terminal that shows colours."""
    monkeypatch.setenv("TERM", "xterm")
    return Screen()


def test_data_goes_to_stdout_and_talk_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    term.data("data")
    term.say("talk")
    term.hint("relay resume")
    assert capsys.readouterr() == ("data\n", "talk\nhint: relay resume\n")


def test_a_text_that_ends_its_line_gets_no_second_end(capsys: pytest.CaptureFixture[str]) -> None:
    term.data("one\ntwo\n")
    term.data("")
    assert capsys.readouterr().out == "one\ntwo\n\n"


def test_quiet_leaves_the_data_the_hints_and_the_errors(capsys: pytest.CaptureFixture[str]) -> None:
    term.configure(quiet=True, verbose=False, json=False)
    term.say("talk")
    term.detail("detail")
    term.data("data")
    term.error(RelayError("it broke", hint="relay resume"))
    assert capsys.readouterr() == ("data\n", "error: it broke\nhint: relay resume\n")


def test_details_are_for_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    term.detail("unasked")
    term.configure(quiet=False, verbose=True, json=False)
    term.detail("asked")
    assert capsys.readouterr().err == "asked\n"


def test_an_event_is_a_line_of_json_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    term.event("run", run="unasked")
    term.configure(quiet=False, verbose=False, json=True)
    term.event("run", run="fix-\u00e9\x1b[31m\n", score=None)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"type": "run", "run": "fix-\u00e9\x1b[31m\n", "score": None}
    assert "\x1b" not in out


def test_an_error_is_an_event_too(capsys: pytest.CaptureFixture[str]) -> None:
    term.configure(quiet=False, verbose=False, json=True)
    term.error(RelayError("note is missing", hint="relay verify R\nrelay note rebuild R", exit_code=Exit.GATE))
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "type": "error",
        "message": "note is missing",
        "hint": "relay verify R\nrelay note rebuild R",
        "exit": 6,
    }
    assert err == "error: note is missing\nhint: relay verify R\n      relay note rebuild R\n"


CONTROLS = {
    "a colour": ("\x1b[31mred\x1b[0m", "red"),
    "a colour in eight bits": ("\x9b31mred", "red"),
    "a title": ("\x1b]0;owned\x07text", "text"),
    "a title with another end": ("\x1b]0;owned\x1b\\text", "text"),
    "a title without an end": ("\x1b]0;owned\ntext", "\ntext"),
    "a clipboard": ("\x1b]52;c;cm0gLXJm\x07ok", "ok"),
    "a device string": ("\x1bPq#0\x1b\\ok", "ok"),
    "a cleared screen": ("\x1b[2J\x1b[Hok", "ok"),
    "a reset": ("\x1bcok", "ok"),
    "a character set": ("\x1b(0ok", "ok"),
    "a lone escape": ("ok\x1b", "ok"),
    "a rewritten line": ("all is lost\rall is well", "all is lost\nall is well"),
    "a rubbed out word": ("ok\x08\x08no\x00\x7f", "okno"),
    "a turned direction": ("a\u202eb\u2066c", "abc"),
    "half a character": ("a\udcffb", "a?b"),
    "a mark of ours": ("\ufdd3red\ufdd0", "red"),
    "lines and tabs": ("a\tb\r\nc", "a\tb\nc"),
    "other scripts": ("naïve \u65e5\u672c \U0001f600", "naïve \u65e5\u672c \U0001f600"),
}


@pytest.mark.parametrize(("text", "shown"), CONTROLS.values(), ids=CONTROLS.keys())
def test_no_text_moves_the_terminal(text: str, shown: str, screen: Screen) -> None:
    assert term.plain(text) == shown
    assert screen.data(term.plain(text)) == f"{shown}\n"


def test_even_text_that_nobody_cleaned_moves_nothing(screen: Screen) -> None:
    assert screen.data("\x1b[31mred\x1b[0m\x1b]0;owned\x07") == "red\n"


def test_cleaning_a_megabyte_of_openings_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for opening in ("\x1b]", "\x1b[", "\x1b", "\x1b[0;", "\x1bP"):
        assert "\x1b" not in term.plain(opening * (1 << 19))


def test_a_colour_is_shown_on_a_terminal(screen: Screen) -> None:
    assert (
        screen.data(term.style("ok", "green") + " " + term.style("evil\x1b[5m", "bold"))
        == "\x1b[32mok\x1b[0m \x1b[1mevil\x1b[0m\n"
    )


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_colour_is_left_out_where_it_is_unwanted(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert screen.data(term.style("ok", "green")) == "ok\n"


def test_a_colour_is_left_out_of_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    term.data(term.style("ok", "green"))
    assert capsys.readouterr().out == "ok\n"


def test_columns_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("a", term.style("long word", "red"), "x"), ("\u65e5\u672c", "b\nc", "y"), ("short row",)]
    term.table(rows, ("run", "state", "next"))
    assert capsys.readouterr().out.splitlines() == [
        "run        state      next",
        "a          long word  x",
        "\u65e5\u672c       b c        y",
        "short row",
    ]


def test_an_empty_table_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    term.table([])
    assert capsys.readouterr().out == ""


# --- streams that fail --------------------------------------------------------------------------------------------

_MANY = "from relay.host import term\nfor n in range(100_000): term.data(f'line {n} \u2713')\nterm.say('end')\n"


def shell(command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command, "bash", sys.executable, _MANY],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)} | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=SAFETY,
    )


def test_a_reader_that_goes_away_is_no_failure() -> None:
    done = shell('"$1" -c "$2" | head -1')
    assert (done.returncode, done.stdout, done.stderr) == (0, "line 0 \u2713\n", "end\n")


@pytest.mark.parametrize("where", ["/dev/full", "&-"])
def test_a_full_or_closed_stdout_is_no_failure(where: str) -> None:
    done = shell(f'"$1" -c "$2" >{where}')
    assert (done.returncode, done.stderr) == (0, "end\n")


def test_a_closed_stderr_is_no_failure() -> None:
    done = shell('"$1" -c "$2" 2>&- | tail -1')
    assert (done.returncode, done.stdout) == (0, "line 99999 \u2713\n")


def test_a_terminal_of_few_characters_gets_a_question_mark() -> None:
    done = shell('"$1" -c "$2" | tail -1', PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, "line 99999 ?\n")


SECRET = "pw-7Gk2mQ9xLr4Tz" + "8Vb"
"""What a variable holds in these tests; put together, so that it does not stand in the repository."""


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a secret of the person's environment."""
    monkeypatch.setenv("MY_TOKEN", SECRET)
    term.configure(quiet=False, verbose=True, json=False)
    return SECRET


def test_nothing_that_is_printed_shows_a_secret_of_the_environment(
    secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    term.data(f"data {secret}")
    term.say(f"said {secret}")
    term.detail(f"detail {secret}")
    term.hint(f"curl -H {secret}")
    term.error(RelayError(f"`{secret}` is wrong", hint=f"not {secret}"))
    out, err = capsys.readouterr()
    assert out == "data [redacted MY_TOKEN]\n"
    assert err.count("[redacted MY_TOKEN]") == 5
    assert secret not in out + err


def test_a_secret_in_a_cell_keeps_the_columns_in_line(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    term.table([[secret, "one"], ["b", term.style(secret, "red")]])
    assert capsys.readouterr().out == "[redacted MY_TOKEN]  one\nb                    [redacted MY_TOKEN]\n"


def test_an_event_without_its_secret_is_json_still(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    term.configure(quiet=False, verbose=False, json=True)
    term.event("leg", said=f'"{secret}"', quoted=json.dumps([secret]))
    said = json.loads(capsys.readouterr().out)
    assert said == {"type": "leg", "said": '"[redacted MY_TOKEN]"', "quoted": '["[redacted MY_TOKEN]"]'}


def test_controls_inside_a_secret_do_not_hide_it(secret: str, screen: Screen) -> None:
    said = f"{secret[:5]}\x1b[0m{secret[5:]} {secret[:5]}\ufdd4{secret[5:]}"
    assert screen.data(said) == "[redacted MY_TOKEN] [redacted MY_TOKEN]\n"


def test_a_variable_that_an_agents_line_names_is_a_secret_whatever_it_is_called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLAIN_NAME", SECRET)
    term.configure(quiet=False, verbose=False, json=False)
    term.data(SECRET)
    redact.name(["PLAIN_NAME"])
    term.data(SECRET)
    assert capsys.readouterr().out == f"{SECRET}\n[redacted PLAIN_NAME]\n"


def test_what_is_for_another_program_stays_as_it_is_and_a_terminal_shows_no_secret(
    secret: str, screen: Screen, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    patch = f"+key = {secret}\n".encode()
    term.raw(patch)
    assert capfdbinary.readouterr().out == patch
    with contextlib.redirect_stdout(screen):
        term.raw(patch)
    assert isinstance(screen.buffer, io.BytesIO)
    assert screen.buffer.getvalue() == b"+key = [redacted MY_TOKEN]\n"

"""The terminal: the only file that prints. Data goes to stdout, talk to stderr.

Whatever is printed loses terminal control sequences, since it may come from an agent (pitfalls row 102), and then the
secrets of this process; Relay's own colours are marks until the last moment. A closed or full stdout changes no result
(row 103), and a terminal that knows fewer characters gets `?` (row 104).
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, TextIO

from relay.errors import RelayError
from relay.host import cells, redact

Colour = cells.Colour

_CONTROL: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS: titles, clipboard
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"  # and direction overrides
)


class _Voice:
    """How loud Relay speaks; set once by `configure`."""

    quiet = False
    verbose = False
    json = False
    live = False


def configure(*, quiet: bool, verbose: bool, json: bool) -> None:
    """Set how loud Relay speaks, as `-q`, `-v` and `--json` say; a command begins here, and so do its secrets."""
    redact.forget()
    _Voice.quiet, _Voice.verbose, _Voice.json = quiet, verbose, json


def plain(text: str) -> str:
    """Return `text` without anything that a terminal would obey: only letters, tabs and line ends are left."""
    return cells.bare(_without_controls(text))


def _without_controls(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub(lambda found: "?" if "\ud800" <= found[0] <= "\udfff" else "", text)


def _safe(text: str) -> str:
    """Return what may be shown: first without controls and foreign marks, since one could stand inside a secret."""
    return redact.own().text(cells.ours(_without_controls(text)))


def style(text: str, colour: Colour) -> str:
    """Return `text` in a colour, for a stream that shows colours; elsewhere it is just the text."""
    return cells.marked(plain(text), colour)


def data(text: str) -> None:
    """Print what was asked for, on stdout."""
    _print(sys.stdout, text)


def raw(content: bytes) -> None:
    """Print bytes as they are, for another program to take, such as a diff; on a terminal they are text like any.

    What is kept has lost its secrets already, and a diff without some of its letters applies nowhere.
    """
    try:
        if sys.stdout.isatty():
            data(content.decode("utf-8", "replace"))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
    except (AttributeError, OSError, ValueError):
        _give_up(sys.stdout)


def told(text: str) -> None:
    """Print sentences that were asked for, on stdout; a terminal that is too narrow has them broken between words."""
    _print(sys.stdout, _folded(sys.stdout, text))


def say(text: str) -> None:
    """Tell what is going on, on stderr; not with `-q`."""
    if not _Voice.quiet:
        _print(sys.stderr, _folded(sys.stderr, text))


def detail(text: str) -> None:
    """Tell what only `-v` wants to know, on stderr."""
    if _Voice.verbose:
        _print(sys.stderr, _folded(sys.stderr, text))


def live(text: str) -> None:
    """Show a line that the next one takes the place of, on stderr; nothing where that is no terminal.

    With `-q`, `-v` or `--json` there is none, and an empty text takes it away.
    """
    stream = sys.stderr
    if _Voice.quiet or _Voice.verbose or _Voice.json or stream is None or not _shows_colours(stream):
        return
    if text or _Voice.live:
        width = shutil.get_terminal_size().columns - 1
        shown = re.sub(r"[\n\t]", " ", cells.bare(_safe(text)))[:width]
        while cells.wide(shown) > width:
            shown = shown[:-1]
        _Voice.live = bool(text)
        _write(stream, f"\r\x1b[2K{shown}")


def hint(text: str) -> None:
    """Say what to type next, on stderr; not with `-q`. Further lines stand below the first."""
    if not _Voice.quiet:
        _hint(text)


def _hint(text: str) -> None:
    for number, line in enumerate(text.splitlines()):
        said = f"{'     ' if number else style('hint:', 'cyan')} {line}"
        _print(sys.stderr, _folded(sys.stderr, said))


def event(kind: str, **fields: object) -> None:
    """Print a JSON line `{"type": kind, ...}` on stdout; only with `--json`. ASCII, so any program can read it."""
    if _Voice.json:
        import json as json_text

        _print(sys.stdout, json_text.dumps({"type": kind, **fields}))


def error(problem: RelayError) -> None:
    """Say what went wrong and what to type next, and with `--json` as an event as well."""
    event("error", message=problem.message, hint=problem.hint, exit=int(problem.exit_code))
    _print(sys.stderr, _folded(sys.stderr, f"{style('error:', 'red')} {problem.message}"))
    _hint(problem.hint)


def table(rows: Iterable[Sequence[str]], headers: Sequence[str] = ()) -> None:
    """Print rows as aligned columns on stdout; a cell may be styled and stays on one line.

    On a terminal that is too narrow the last columns stand below each row, indented, each after the name of its column.
    """
    for lines in laid(rows, headers, _room(sys.stdout)):
        data("\n".join(lines))


def laid(rows: Iterable[Sequence[str]], headers: Sequence[str], room: int | None) -> Iterator[list[str]]:
    """Yield the lines of the headers and of each row, as `table` prints them on a terminal of so many columns."""
    lines = [[_one_line(cell) for cell in row] for row in rows]
    if headers:
        lines.insert(0, [style(header, "bold") for header in headers])
    return cells.laid(lines, headers, room) if lines else iter(())


@contextmanager
def board() -> Iterator[Callable[[Iterable[str]], None]]:
    """Take the terminal, and give a function that shows lines there in place of the last ones, as many as have room.

    What is longer than a line the terminal breaks by itself, so that a command is copied from it whole.
    """
    stream = sys.stdout
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        raise RelayError("there is no terminal to draw on", hint="relay status")

    def show(lines: Iterable[str]) -> None:
        paint = cells.coloured if _shows_colours(stream) else cells.bare
        _write(stream, "\x1b[H\x1b[J" + "\n".join(paint(_safe(line)) for line in lines))

    _write(stream, "\x1b[?1049h\x1b[?25l")
    try:
        yield show
    finally:
        _write(stream, "\x1b[?25h\x1b[?1049l")


def _one_line(cell: str) -> str:
    return re.sub(r"\s+", " ", _safe(cell)).strip()


def _folded(stream: TextIO | None, text: str) -> str:
    """Break lines that a terminal would break within a word."""
    if (room := _room(stream)) is None:
        return text
    return "\n".join(line for whole in _safe(text).split("\n") for line in cells.folded(whole, room))


def _room(stream: TextIO | None) -> int | None:
    """Return how many columns a terminal has, None where there is none."""
    return shutil.get_terminal_size().columns if _is_terminal(stream) else None


def _print(stream: TextIO | None, text: str) -> None:
    """Write one piece of text and a line end. A stream that is closed or full is given up in silence."""
    if stream is None:  # closed before Relay started
        return
    live("")
    text = (cells.coloured if _shows_colours(stream) else cells.bare)(_safe(text))
    _write(stream, text if text.endswith("\n") else f"{text}\n")


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except (OSError, ValueError):
        _give_up(stream)


def _shows_colours(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return _is_terminal(stream)


def _is_terminal(stream: TextIO | None) -> bool:
    with suppress(ValueError):
        return stream is not None and stream.isatty()
    return False


def _give_up(stream: TextIO) -> None:
    """Lead the stream nowhere, so that neither later text nor the flush at exit fails again."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

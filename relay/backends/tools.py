"""The tools of an agent over an API: what a model is told of them, and what they do.

A command, a search, reading and changing files of the worktree. `reply` ends the leg, which is the loop's business.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from relay.backends import tree
from relay.backends.base import Lane
from relay.backends.purse import Over, Purse
from relay.backends.shell import LONG, SHOWN, Shell
from relay.backends.talk import Call, Tool
from relay.errors import RelayError
from relay.terms import Ask, Struct

SECONDS: Final = 120.0
"""Seconds of a command where the model says nothing."""
MOST_SECONDS: Final = 1200.0
"""Seconds that a model may give a command."""
LINES: Final = 2000
"""Lines of a file that are shown at once."""
WIDE: Final = 2000
"""Characters of a line that are shown."""

Path_ = Annotated[str, msgspec.Meta(description="relative to your folder")]


class Bash(Struct, frozen=True, kw_only=True):
    """Run a shell command in your folder. Each one has a shell of its own, and what it leaves running is ended."""

    command: Annotated[str, msgspec.Meta(min_length=1)]
    timeout: Annotated[float, msgspec.Meta(gt=0, le=MOST_SECONDS, description="seconds")] = SECONDS


class Search(Struct, frozen=True, kw_only=True):
    """Find lines by a regular expression in all files that git does not ignore."""

    pattern: Annotated[str, msgspec.Meta(min_length=1)]
    path: Annotated[str, msgspec.Meta(description="a file or folder to search in, relative to your folder")] = "."


class Read(Struct, frozen=True, kw_only=True):
    """Read a file, with the numbers of its lines, or list a folder."""

    path: Path_
    start: Annotated[int, msgspec.Meta(ge=1, description="the first line")] = 1
    lines: Annotated[int, msgspec.Meta(ge=1, le=LINES, description="how many lines")] = LINES


class Write(Struct, frozen=True, kw_only=True):
    """Write a whole file; folders are made. For a change of an existing file use `edit`."""

    path: Path_
    content: str


class Edit(Struct, frozen=True, kw_only=True):
    """Replace one place in a file: `old` must stand there exactly once, with its white space, without line numbers."""

    path: Path_
    old: Annotated[str, msgspec.Meta(min_length=1)]
    new: str


KINDS: Final[dict[str, type[Struct]]] = {"bash": Bash, "search": Search, "read": Read, "write": Write, "edit": Edit}
CHANGING: Final = frozenset({"write", "edit"})


class Done(Struct, frozen=True, kw_only=True):
    """What came of a call: what the model is shown, and the whole of it. `wrong` names the kind of a mistake."""

    text: str
    whole: str
    ok: bool = True
    wrong: str = ""
    changed: bool = False


def failed(text: str, wrong: str = "") -> Done:
    """Return what a call came to that was not done."""
    return Done(text=text, whole=text, ok=False, wrong=wrong)


def names(ask: Ask) -> tuple[str, ...]:
    """Return the names of the tools that do something in a leg: one that may change nothing has none that writes."""
    return tuple(name for name in KINDS if ask.boundary == "implement" or name not in CHANGING)


def offered(ask: Ask) -> tuple[Tool, ...]:
    """Return what a model is told of its tools, `reply` last."""
    made = [Tool(name=name, description=_said(KINDS[name]), schema=_schema(KINDS[name])) for name in names(ask)]
    return (*made, Tool(name="reply", description="End your leg with this reply.", schema=ask.schema))


def _said(kind: type[Struct]) -> str:
    return kind.__doc__ or ""


def _schema(kind: type[Struct]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments."""
    schema: dict[str, Any] = msgspec.json.schema(kind)["$defs"][kind.__name__]
    return {name: value for name, value in schema.items() if name not in {"title", "description"}}


class Hands:
    """Does what an agent calls for, in its leg's folder and cell."""

    def __init__(self, ask: Ask, lane: Lane) -> None:
        self.names = (*names(ask), "reply")
        self._root = Path(ask.folder)
        self._shell = Shell(ask, lane)

    def act(self, call: Call, purse: Purse) -> Done:
        """Do one call; whatever is wrong with it is told to the model."""
        kind = KINDS[call.tool]
        try:
            arguments = msgspec.json.decode(call.arguments or "{}", type=kind)
        except (ValueError, RecursionError) as error:  # of JSON, UTF-8 and msgspec: each is a ValueError
            return failed(f"The arguments of `{call.tool}` were not understood: {error}", "arguments")
        act: Callable[[Any, Purse], Done] = getattr(self, f"_{call.tool}")
        try:
            return act(arguments, purse)
        except RelayError as error:
            return failed(f"{error.message}.", error.message)
        except UnicodeError as error:
            return failed(f"This is no text that can be written as UTF-8: {error}.", "text")

    def _bash(self, asked: Bash, purse: Purse) -> Done:
        if "\0" in asked.command:
            return failed("No command can have a NUL in it.", "NUL")
        try:
            ended, text = self._shell.run(asked.command, min(asked.timeout, purse.left()))
        except RelayError as error:  # the jail, or the folder: no command will run
            raise Over("setup", error.message) from None
        end = {
            "exit": f"[exit {ended.code}]" if ended.code else "",
            "timeout": f"[ended after {ended.seconds:.0f} s: give `timeout`, up to {MOST_SECONDS:.0f} seconds]",
            "output": "[ended: too much output]",
        }.get(ended.ended, f"[ended: {ended.ended}]")
        said = [part for part in (text.rstrip("\n"), end) if part] or ["[exit 0, no output]"]
        whole = "\n".join(part for part in (ended.text.rstrip("\n"), end) if part)
        wrong = "" if ended.ended == "exit" else ended.ended
        return Done(text="\n".join(said), whole=whole, ok=ended.ended == "exit" and ended.code == 0, wrong=wrong)

    def _search(self, asked: Search, purse: Purse) -> Done:
        if "\0" in asked.pattern or len(asked.pattern.encode()) > LONG:
            return failed(f"No pattern can have a NUL in it, or be longer than {LONG} bytes.", "pattern")
        where = tree.inside(self._root, asked.path) or "."
        try:
            ran, text = self._shell.search(asked.pattern, where, min(SECONDS, purse.left()))
        except RelayError as error:
            raise Over("setup", error.message) from None
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}\n[... more lines match: narrow it down ...]"
        return Done(text=shown or "[no line matches]", whole=text, ok=ran, wrong="" if ran else "search")

    def _read(self, asked: Read, purse: Purse) -> Done:
        entries = tree.listed(self._root, asked.path)
        if entries is not None:
            shown = entries[: tree.ENTRIES]
            more = [f"[... {len(entries) - len(shown)} more ...]"] * (len(entries) > len(shown))
            return _done("\n".join([*shown, *more]) or "[an empty folder]")
        data = tree.read(self._root, asked.path)
        if b"\0" in data[:8000]:
            return failed(f"`{asked.path}` is not text: {len(data)} bytes with NUL in them.", "not text")
        purse.read(tree.inside(self._root, asked.path))
        return _done(_numbered(data.decode(errors="replace"), asked))

    def _write(self, asked: Write, purse: Purse) -> Done:
        data = asked.content.encode()
        new = tree.write(self._root, asked.path, data)
        purse.edited()
        return _done(f"{'made' if new else 'replaced'} `{asked.path}` ({len(data)} bytes)", changed=True)

    def _edit(self, asked: Edit, purse: Purse) -> Done:
        text = tree.read(self._root, asked.path).decode(errors="surrogateescape")
        old, new = asked.old, asked.new
        if old not in text and "\r\n" in text:  # a model writes `\n`, and the file's own line ends stay
            old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
        times = text.count(old)
        if times == 1 and text.find(old, text.index(old) + 1) >= 0:
            times = 2  # two places that overlap
        if times != 1:
            how = "`old` does not stand there: read the place again" if times == 0 else "make `old` longer"
            return failed(f"`old` stands {times} times in `{asked.path}`, not once. {how.capitalize()}.", "no match")
        if old == new:
            return failed("`old` and `new` are the same.", "no change")
        at = text.index(old)
        tree.write(self._root, asked.path, text.replace(old, new).encode(errors="surrogateescape"))
        purse.edited()
        return _done(f"edited `{asked.path}` at line {text.count(chr(10), 0, at) + 1}", changed=True)


def _done(text: str, *, changed: bool = False) -> Done:
    return Done(text=text, whole=text, changed=changed)


def _numbered(text: str, asked: Read) -> str:
    """Return lines of a text with their numbers, as far as is shown at once, and what is left."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return "[an empty file]"
    if asked.start > len(lines):
        return f"[the file has {len(lines)} lines]"
    shown, size, last = [], 0, asked.start - 1
    for last, line in enumerate(lines[asked.start - 1 : asked.start - 1 + asked.lines], asked.start):
        shown.append(f"{last:6}\t{line if len(line) <= WIDE else line[:WIDE] + '...'}")
        size += len(shown[-1]) + 1
        if size > SHOWN:
            break
    if last < len(lines):
        shown.append(f"[... lines {last + 1} to {len(lines)} are not shown ...]")
    return "\n".join(shown)

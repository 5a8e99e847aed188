"""Shell commands that come out the same whatever the code does: they show nothing of it.

Looking at a command tells what decides its exit: `cat a.py; exit 1` fails, and not because of a.py. What cannot be
told so is told by running it on other trees, and comparing what is left of an output without what differs every time.
"""

import itertools
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

import msgspec

from relay.terms import Repro


class Weight(IntEnum):
    """What a simple command's exit depends on: nothing; a file's being there; what stands in it; what code does."""

    CONSTANT = 0
    SHOWS = 1
    LOOKS = 2
    RUNS = 3


SAYS: Final = frozenset({":", "date", "echo", "hostname", "id", "printf", "pwd", "sleep", "uname", "whoami"})
"""What says something, or waits, and goes well."""
CONSTANT: Final = SAYS | {"exit", "false", "kill", "return", "set", "true"}
"""What comes out the same in every folder."""
SHOWS: Final = frozenset(
    {
        *("cat", "column", "cut", "file", "fmt", "fold", "head", "hexdump", "less", "ls", "more", "nl", "od", "paste"),
        *("rev", "sed", "sort", "stat", "strings", "tac", "tail", "tr", "uniq", "wc", "xxd"),
    }
)
"""What prints files, and fails only where there are none."""
LOOKS: Final = frozenset(
    {"[", "[[", "ag", "cmp", "comm", "diff", "egrep", "fgrep", "find", "git", "grep", "jq", "rg", "test", "tree"}
)
"""What tells by its exit what stands in files, and runs nothing of them."""
SHELLS: Final = frozenset({"bash", "command", "dash", "env", "exec", "nice", "sh", "time", "timeout", "zsh"})
"""What runs the command that follows it."""
ENDS: Final = frozenset({"exit", "kill", "return", "set"})
"""What can end a command before its last word is reached."""
JOINTS: Final = frozenset({"{", "}", "!", "if", "then", "else", "elif", "fi"})
TESTS: Final = frozenset({"[", "[[", "test"})
FILE_TEST: Final = re.compile(r"-[a-hkprstuwxGLNOS]|-nt|-ot|-ef")
"""How `test` looks at a file."""
RUNNING: Final = re.compile(r"^find .*-(?:exec|ok)|^git (?!blame|diff|grep|log|ls-files|show|status)")
"""What looks at files, and runs something all the same."""
INTERPRETER: Final = re.compile(r"(?:ba|da|z)?sh|python[\d.]*|node|deno|bun|ruby|perl|php|lua")
SILENCED: Final = re.compile(r"\d?>>?\s*(?:&\d|/dev/\w+)")
"""Output that is led elsewhere than into a file."""

Files = Mapping[str, str]
"""The files that a command brings, by path."""
CameTo = tuple[str, str, str]
"""How a command ended, with which exit, and what it said, without the folder it ran in."""


class Outcome(Protocol):
    """What a repro came to: whether it showed what it says, and why it did not run to its end, if so."""

    @property
    def came_to(self) -> CameTo: ...  # noqa: D102 - said above
    @property
    def showed(self) -> bool: ...  # noqa: D102
    @property
    def why(self) -> str: ...  # noqa: D102


Tries = Callable[[Repro], Outcome]
Piece = tuple[frozenset[str], tuple[str, ...]]
"""What joins a simple command to the one before it, and its words."""


def constant(command: str, files: Files | None = None) -> bool:
    """Tell whether a command is nothing but what comes out the same in every folder: `false`, `test 1 = 2`.

    One that calls a script which it brings, one of `files`, is looked at closer, or run.
    """
    pieces = _pieces(command)
    if pieces is None or any(PurePosixPath(word).as_posix() in (files or {}) for _, words in pieces for word in words):
        return False
    return all(_weight(words, {}) == Weight.CONSTANT for _, words in pieces)


def idle(repro: Repro, text: str | None, *, showed: bool = False) -> bool:
    """Tell whether what a repro is to show does not come from code: `cat a.py; exit 1`, `python3 a.py; false`.

    Its exit is fixed, and it expects no output but what stands in the file it is about anyway, whose `text` this is.
    Where it ran and `showed` what it says, no output of commands that only print files counts either. One that always
    goes well and is to say nothing does not do what it says, as will be seen when it runs.
    """
    pieces = _pieces(repro.command)
    if not pieces or (not repro.expect_output and _goes_well(pieces[-1])):
        return False
    weights = [_weight(words, repro.files) for _, words in pieces]
    prints = showed and max(weights) < Weight.LOOKS
    return _fixed(pieces, weights) and (prints or not wants(repro, text))


def _goes_well(piece: Piece) -> bool:
    """Tell whether a simple command always exits with 0."""
    joints, words = piece
    return "!" not in joints and Path((_called(words) or [":"])[0]).name in SAYS | {"true"}


def why(repro: Repro, path: str, text: str | None, *, here: Tries, nowhere: Tries) -> str:
    """Say why a repro that did what it says shows nothing all the same; an empty string where it shows something.

    `text` is that of the file at `path`, which it is about; `here` runs a repro in the tree, `nowhere` where there is
    none. With the file emptied it runs only if it prints it, once more only if its output alone tells the trees apart.
    """
    if idle(repro, text, showed=True):
        return "its exit is fixed, whatever the code does"
    ran, none, wanted = here(repro), nowhere(repro), wants(repro, text)
    if _same(ran, none, text, wanted=wanted):
        return "it comes to the same where there is no file at all"
    if text and path not in repro.files and prints(ran.came_to, text):
        empty = here(msgspec.structs.replace(repro, files={path: "", **repro.files}))
        if _same(ran, empty, text, wanted=wanted):
            return f"it prints `{path}`, and comes to the same where that is empty"
    if ran.came_to[:2] == none.came_to[:2]:
        again = here(msgspec.structs.replace(repro, command=f"{repro.command}\n"))
        if not again.why and not alike(ran.came_to, again.came_to, text):
            return "it comes out otherwise each time"
    return ""


def _same(ran: Outcome, there: Outcome, text: str | None, *, wanted: bool) -> bool:
    """Tell whether a repro comes to the same elsewhere, and shows there, too, what output is `wanted` of it."""
    return not there.why and (there.showed or not wanted) and alike(ran.came_to, there.came_to, text)


def wants(repro: Repro, text: str | None) -> bool:
    """Tell whether a repro expects an output that does not stand in the file or the command anyway."""
    wanted = " ".join((repro.expect_output or "").split())
    return wanted not in " ".join(f"{text or ''} {repro.command}".split())


def looking(command: str) -> bool:
    """Tell whether a command only looks at files: it runs no test, so that it does not matter which ones are there."""
    pieces = _pieces(command)
    return pieces is not None and all(_weight(words, {}) < Weight.RUNS for _, words in pieces)


def runs(command: str, paths: Collection[str]) -> bool:
    """Tell whether a command runs one of these files itself, as `sh tests/check.sh` does."""
    for _, words in _pieces(command) or ():
        called = [PurePosixPath(word).as_posix() for word in _called(words)]
        by = bool(called) and INTERPRETER.fullmatch(Path(called[0]).name) and "-m" not in called
        if any(one in paths for one in (called if by else called[:1])):
            return True
    return False


def alike(here: CameTo, there: CameTo, text: str | None) -> bool:
    """Tell whether a command came to the same on two trees, but for what differs every time, and for a file's text."""
    return here[:2] == there[:2] and essence(here[2], text) == essence(there[2], text)


def prints(here: CameTo, text: str) -> bool:
    """Tell whether a command printed lines of a file: it comes out otherwise with the file emptied, and for no more."""
    return essence(here[2], text) != essence(here[2], None)


def essence(output: str, text: str | None) -> str:
    """Return what is left of an output without what differs every time, and without the lines of a file.

    Numbers, addresses, times and temporary paths differ. A file that is only printed leaves nothing.
    """
    lines = {line.strip() for line in (text or "").splitlines()}
    kept = (line for line in output.splitlines() if not _stands(line, lines))
    shown = re.sub(r"(?:/tmp|/var/folders|/private|/dev/shm)/\S+", "", "\n".join(kept))
    return re.sub(r"0x[0-9a-fA-F]+|\d+(?:[.:,]\d+)*", "#", shown).strip()


def _stands(line: str, lines: Collection[str]) -> bool:
    """Tell whether a line of an output is one of a file, as it is or with its name and number before it."""
    bare = line.strip()
    return bare in lines or re.sub(r"^(?:\S+[:-])?\s*\d+[:\s-]*", "", bare).strip() in lines


def _pieces(command: str) -> list[Piece] | None:
    """Take a command apart into simple ones; None where a quote is not closed, or text follows as in a file."""
    words = shlex.shlex(SILENCED.sub("", command), posix=True, punctuation_chars="();<>|&\n")
    words.whitespace, words.whitespace_split, words.commenters = " \t\r", True, ""
    pieces: list[Piece] = []
    joints: set[str] = set()
    found: list[str] = []
    comment = False
    try:
        for word in words:
            joint = next((mark for mark in ("||", "&&", "|", ";") if mark in word), ";") if _punctuates(word) else ""
            comment = (comment and "\n" not in word) or (not joint and word.startswith("#"))
            if "<<" in word:
                return None
            if comment or not (joint or word in JOINTS):
                found += [] if comment else [word]
                continue
            pieces += [(frozenset(joints), tuple(found))] if found else []
            joints, found = set() if found else joints, []
            joints.add(joint or word)
    except ValueError:  # a quote that is not closed: the shell will say so
        return None
    return [*pieces, (frozenset(joints), tuple(found))] if found else pieces


def _punctuates(word: str) -> bool:
    return bool(word) and set(word) <= set(";&|()\n")


def _called(words: Sequence[str]) -> list[str]:
    """Return a simple command without the variables that are set for it."""
    return [*itertools.dropwhile(re.compile(r"\w+=").match, words)]


def _weight(words: Sequence[str], files: Files) -> Weight:
    """Tell what the exit of one simple command depends on."""
    words = _called(words) or [":"]
    name, text = Path(words[0]).name, " ".join(words)
    brought = files.get(PurePosixPath(words[0]).as_posix())
    if brought is not None:
        found = _inner(brought, files)
    elif "`" in text or "$(" in text or RUNNING.search(text):
        found = Weight.RUNS
    elif name in SHELLS:
        found = _led(words, files)
    elif name in CONSTANT or (name in TESTS and not any(FILE_TEST.fullmatch(word) for word in words[1:])):
        varies = "$" in text and name not in SAYS
        found = Weight.RUNS if varies else Weight.SHOWS if re.search(r"[<>*?]", text) else Weight.CONSTANT
    else:
        found = Weight.SHOWS if name in SHOWS else Weight.LOOKS if name in LOOKS else Weight.RUNS
    return found


def _led(words: Sequence[str], files: Files) -> Weight:
    """Tell what a shell, or what else runs the command that follows it, depends on."""
    rest = [word for word in words[1:] if not re.fullmatch(r"-\w+|[\d.]+[smh]?|\w+=.*", word)]
    if not rest:
        return Weight.RUNS
    if any(re.fullmatch(r"-\w*c", word) for word in words):
        return _inner(rest[0], files)
    brought = files.get(PurePosixPath(rest[0]).as_posix())
    return _inner(brought if brought is not None else shlex.join(rest), files)


def _inner(command: str, files: Files) -> Weight:
    """Tell what a command within a command depends on; scripts that call each other are followed once."""
    others = {name: text for name, text in files.items() if text != command}
    pieces = _pieces(command)
    if pieces is None:
        return Weight.RUNS
    weights = [_weight(words, others) for _, words in pieces]
    most = max(weights, default=Weight.CONSTANT)
    return Weight.CONSTANT if most < Weight.RUNS and _fixed(pieces, weights) else most


def _fixed(pieces: Sequence[Piece], weights: Sequence[Weight]) -> bool:
    """Tell whether the exit of a command is settled by a constant at its end, whatever comes before."""
    if all(weight == Weight.CONSTANT for weight in weights):
        return True
    if len(pieces) == 1:  # `! cat a.py` fails because the file is there
        return weights[0] == Weight.SHOWS and "!" in pieces[0][0]
    forks = any(joined & {"if", "then", "else", "elif"} for joined, _ in pieces)
    ends = any(Path(word).name in ENDS for _, words in pieces[:-1] for word in _called(words)[:1])
    return weights[-1] == Weight.CONSTANT and not forks and not ends and _led_to(pieces, weights)


def _led_to(pieces: Sequence[Piece], weights: Sequence[Weight]) -> bool:
    """Tell whether the last simple command is reached whatever those before it do, but for a file that is missing."""
    for weight, (joined, _) in zip(weights[-2::-1], pieces[:0:-1], strict=True):
        if "||" in joined or ("&&" in joined and weight > Weight.SHOWS):
            return False
        if joined & {";", "|"}:
            return True
    return True

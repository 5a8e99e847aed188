"""A vendor's own program takes the leg: what all of them share, from finding the program to the end of its tree.

The prompt goes in on stdin, which is closed then (an open one hangs some programs for ever, clis.md 0.6). JSON lines
come out, and are read while they come. Once Relay ended a program, that is how its leg ended, whatever it printed.
"""

import hashlib
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from relay.backends.base import Lane
from relay.backends.lines import Lines, event
from relay.errors import Exit, RelayError
from relay.host import proc, term
from relay.host.jail import cell as cells
from relay.host.jail.run import environment
from relay.terms import Ask, EndedBy, Limits, Process, Struct, Taken, Told

__all__ = ["Ended", "Found", "Lines", "Stop", "ask", "at", "event", "find", "passed", "readable", "run", "taken"]

FIRST: Final = 60.0
"""Seconds until a program must have said anything: the slowest cold start measured took 1.5 s (clis.md 5)."""
IDLE: Final = 600.0
"""Seconds without a line after which a leg is idle, where nobody says otherwise."""
RAW: Final = 64 << 10
"""Characters of a program's line that go into the transcript."""
GRACE: Final = 5.0
"""Seconds for a program that was interrupted to say what it used: the slowest measured took 1.4 s (clis.md 2.3)."""
_HANDING: Final = ("/bin/sh", "-c", 'IFS= read -r s; exec 8<<END\n$s\nEND\nunset s; exec "$@"', "sh")
"""Takes the first line of its input for itself, puts it into a pipe, and becomes the program."""
_SAID: Final = 4000
_LINES: Final = 40
_PROBE: Final = Limits(seconds=30)
_PASSED: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    "NODE_EXTRA_CA_CERTS",
)
"""How the person's machine reaches the network: a service behind a proxy is else not reached at all."""


class Stop(Exception):  # noqa: N818  nothing failed: whoever hears an event has heard enough
    """Raised by who hears an event: the program is ended by the ladder, and the leg as it says."""

    def __init__(self, ended_by: EndedBy, problem: str) -> None:
        super().__init__(problem)
        self.ended_by, self.problem = ended_by, problem


class Found(Struct, frozen=True, kw_only=True):
    """A program: its real path, what it says of its version, the first 12 digits of its sha256."""

    path: str
    version: str
    digest: str

    def __str__(self) -> str:
        return f"{self.version} ({self.digest})"


class Ended(Struct, frozen=True, kw_only=True):
    """How one run of a program ended: its exit code, the end of what it said that was no JSON, and who ended it.

    `cut` names the limit that Relay ended it for, or what `Stop` said; nothing else counts then.
    """

    code: int
    said: str
    cut: EndedBy | None = None
    problem: str = ""


def run(  # noqa: PLR0913  what a program is given, and who hears it
    ask: Ask,
    lane: Lane,
    command: Sequence[str],
    *,
    stdin: str,
    env: Mapping[str, str],
    heard: Callable[[dict[str, Any]], None],
    seconds: float,
    secret: str = "",
    first: float = FIRST,
) -> Ended:
    """Run a program in the leg's cell, or in the open, and let `heard` hear each event; `heard` may raise `Stop`.

    `env` is all that it gets besides an allow-list and `ask.env`. Each of its lines is told as it stands. `seconds`
    is what is left of the leg's time. `secret` is there for the program to read from descriptor 8, once: no environment
    and no file shows it to what the program runs. Nothing of the program's tree is left afterwards, whatever happened.
    """
    plain: list[str] = []
    watch = _Watch(command[0], ask.env.get("RELAY_NONCE", ""), first)

    def line(data: bytes) -> None:
        watch.heard()
        text = data.decode(errors="replace")
        lane.told(Told(type="line", text=text[:RAW]))
        found = event(data)
        if found is None:
            plain.append(text[-_SAID:])
            del plain[:-_LINES]
            return
        try:
            heard(found)
        except Stop as stop:
            watch.stop(stop)

    def spawned(process: Process) -> None:
        watch.begin(process)
        lane.spawned(process)

    if secret:
        command, stdin = [*_HANDING, *command], f"{secret}\n{stdin}"
    lines = Lines(line)
    limits = msgspec.structs.replace(ask.limits, seconds=seconds, idle=ask.limits.idle or IDLE, keep=1 << 16)
    try:
        ended = _run(ask, lane, command, stdin.encode(errors="replace"), env, limits, (lines.feed, spawned))
        lines.end()
    finally:
        watch.over()
    said = term.plain("\n".join(plain))[-_SAID:]
    if watch.why is not None:
        return Ended(code=ended.code, said=said, cut=watch.why.ended_by, problem=watch.why.problem)
    if ended.ended != "exit":
        return Ended(code=ended.code, said=said, cut=ended.ended, problem=_why(ended.ended, limits))
    return Ended(code=ended.code, said=said)


def _run(
    ask: Ask,
    lane: Lane,
    command: Sequence[str],
    stdin: bytes,
    env: Mapping[str, str],
    limits: Limits,
    hears: tuple[Callable[[bytes], None], Callable[[Process], None]],
) -> proc.Ended:
    sink, spawned = hears
    return cells.run(
        lane.cell,
        command,
        folder=Path(ask.folder),
        env=(passed() if lane.cell is None else {}) | {**ask.env, **env},
        stdin=stdin,
        limits=limits,
        sink=sink,
        spawned=spawned,
    )


class _Watch:
    """Ends a program that says nothing at all, and one that is to stop: gently at first, so that it says what it cost.

    It looks on from beside the thread that reads, so it only sends signals: that thread sees the end, and cleans up.
    """

    def __init__(self, program: str, nonce: str, first: float) -> None:
        self.why: Stop | None = None
        self._program, self._nonce, self._first = program, nonce, first
        self._process: Process | None = None
        self._timer: threading.Timer | None = None

    def begin(self, process: Process) -> None:
        """Give it time to say something."""
        self._process = process
        self._later(self._first, Stop("idle", f"said nothing within {self._first:g} s"))

    def heard(self) -> None:
        """Note that it said something."""
        if self.why is None:
            self.over()

    def stop(self, why: Stop) -> None:
        """Interrupt it, wherever it is, and end it if that does not help."""
        if self.why is None:
            self.why = why
            for pid in proc.survivors(self._nonce):
                if self._program.encode() in _words(pid)[:2]:  # behind its interpreter, if it has one
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGINT)
            self._later(GRACE, why)

    def over(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()

    def _later(self, seconds: float, why: Stop) -> None:
        self.over()
        self._timer = threading.Timer(seconds, self._end, (why,))
        self._timer.daemon = True
        self._timer.start()

    def _end(self, why: Stop) -> None:
        self.why = self.why or why
        if self._process is not None and proc.alive(self._process):
            proc.end([self._process.pid])


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def passed() -> dict[str, str]:
    """Return what of the person's environment leads a program through the network of this machine."""
    return {name: os.environ[name] for name in _PASSED if name in os.environ}


def taken(name: str, ended: Ended) -> Taken | None:
    """Say how the leg ended, where Relay ended it; None where the program ended by itself."""
    return None if ended.cut is None else Taken(ended_by=ended.cut, problem=f"`{name}` {ended.problem}")


def _why(how: str, limits: Limits) -> str:
    return {
        "timeout": "did not end within the time of its leg",
        "idle": f"said nothing for {limits.idle or 0:g} s",
        "output": f"wrote more than {limits.output or 0} bytes",
        "memory": "used more memory than it may",
        "disk": "filled the disk",
    }[how]


def find(name: str, agent: str) -> Found:
    """Return the program of that name on PATH, through absolute entries only, with its version.

    What was asked once is not asked again as long as the file stays the same. `RelayError` (exit 4) when it is not
    there or does not say its version.
    """
    entries = [entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry.startswith("/")]
    found = shutil.which(name, path=os.pathsep.join(entries))
    if found is None:
        hint = f"install it and log in, or give `[agents.{agent}]` another backend in relay.toml"
        raise RelayError(f"the program `{name}` is not on PATH", hint=hint, exit_code=Exit.HUMAN)
    return at(os.path.realpath(found))


def at(path: str) -> Found:
    """Return the program at a real path, as `find` does."""
    seen = Path(path).stat()
    return _known(path, (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns))


@cache
def _known(path: str, seen: tuple[int, ...]) -> Found:
    del seen
    with Path(path).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()[:12]
    return Found(path=path, version=_version(path, digest), digest=digest)


@cache
def _version(path: str, digest: str) -> str:
    del digest
    text = ask(path, "--version").text.strip()
    version = re.search(r"\d+\.\d+\.\d+[\w.+-]*", text)
    if version is None:
        problem = f"`{path}` does not say its version: {text[:200] or 'it says nothing'}"
        raise RelayError(problem, hint=f"try it: {path} --version", exit_code=Exit.HUMAN)
    return version[0]


def ask(path: str, *arguments: str, env: Mapping[str, str] = {}) -> proc.Ended:
    """Run the program for a moment, to ask something of it: its version, its help, its login."""
    open_env = environment(passed() | dict(env), Path.home())
    return proc.run([path, *arguments], cwd="/", env=open_env, limits=_PROBE)


def readable(found: Found) -> tuple[Path, ...]:
    """Return what of the disk the program itself is: its file, or the package that a script belongs to."""
    path = Path(found.path)
    with path.open("rb") as stream:
        if stream.read(2) != b"#!":
            return (path,)
    package = next((parent for parent in path.parents if (parent / "package.json").is_file()), None)
    return (package,) if package else (path,)

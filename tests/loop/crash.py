"""Runs the command line in child processes that end themselves, by a signal, at a chosen point.

A point is a call of one of the few functions through which Relay changes the disk; each has a number. Started as a
program, this file imports everything once and then forks a child for each request, so that a thousand deaths are cheap.
"""

import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

CHECKOUT: Final = Path(__file__).resolve().parent.parent.parent
WATCHED: Final = ("relay", "worktrees", "refs", "packed-refs", "HEAD", "index", "index.lock")
"""What a run changes in the folder `.git`: the state that two deaths are compared by."""

UNREAD: Final = (".tmp", "lock.json", ".lock", "/lock")
"""Ends of names that nobody reads after a death: half-written files, and records of locks whose holder is dead."""


class Point(NamedTuple):
    """One point as it was passed: what was called, and whether the disk is another one than at the point before."""

    name: str
    before: bool
    after: bool
    number: int


class Death(NamedTuple):
    """Where a child sends itself a signal: before or after the point with this number."""

    number: int
    when: str = "after"
    signum: int = signal.SIGKILL


class End(NamedTuple):
    """How a child ended: exit code or minus the signal, the points it passed, and what it said."""

    code: int
    points: list[Point]
    said: str


class Crasher:
    """The client: one server, with the environment that the test has."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "points"
        self._said = folder / "said"
        self._server = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve()), str(self._log), str(self._said)],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate(timeout=60)

    def relay(self, root: Path, *argv: str | Path, death: Death | None = None, watch: bool = False) -> End:
        """Run the command line in `root`; with `watch`, look at the disk at every point."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        order = {"cwd": str(root), "argv": [str(arg) for arg in argv], "death": death, "watch": watch}
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        code = int(self._server.stdout.readline())
        points = [Point(*json.loads(line)) for line in self._log.read_text(encoding="utf-8").splitlines()]
        return End(code, points, self._said.read_text(encoding="utf-8", errors="replace"))


class _Child:
    """What a forked child does: wrap the points, then be the command line."""

    def __init__(self, order: dict[str, Any], log: Path) -> None:
        self._root = Path(order["cwd"])
        self._death = Death(*order["death"]) if order["death"] else None
        self._watch = bool(order["watch"])
        self._log = log.open("w", encoding="utf-8", buffering=1)
        self._count = 0
        self._seen = self._disk()

    def wrap(self, owner: object, name: str, *, only: str = "") -> None:
        """Make a point of a function or method; with `only`, of those calls whose second argument is that word."""
        plain: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(plain)
        def point(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - stands for any function
            if only and only not in args[1:2]:
                return plain(*args, **named)
            self._count += 1
            number, before = self._count, self._changed()
            self._die(number, "before")
            result = plain(*args, **named)
            self._log.write(json.dumps([f"{name} {_about(args)}", before, self._changed(), number]) + "\n")
            self._die(number, "after")
            return result

        setattr(owner, name, point)

    def _die(self, number: int, when: str) -> None:
        if self._death and (self._death.number, self._death.when) == (number, when):
            os.kill(os.getpid(), self._death.signum)

    def _changed(self) -> bool:
        before, self._seen = self._seen, self._disk()
        return before != self._seen

    def _disk(self) -> frozenset[tuple[object, ...]]:
        """Note every file of the ledger, the worktrees, the refs and the checkout, by what a rewrite changes."""
        if not self._watch:
            return frozenset()
        tops = [self._root / ".git" / name for name in WATCHED] + [Path(os.environ["XDG_STATE_HOME"])]
        return frozenset(_noted(tops)) | frozenset(_noted(self._root.glob("*")))


def _noted(tops: Iterator[Path] | list[Path]) -> Iterator[tuple[object, ...]]:
    for top in tops:
        for path in (top, *top.rglob("*")):
            if str(path).endswith(UNREAD):
                continue
            with contextlib.suppress(OSError):
                found = path.lstat()
                plain = not path.is_dir()
                yield (str(path), found.st_ino, *((found.st_size, found.st_mtime_ns) if plain else ()))


def _about(args: tuple[Any, ...]) -> str:
    """Name what a call is about: the first path or text among its arguments."""
    return next((str(arg) for arg in args if isinstance(arg, str | Path)), "")


def _be_relay(order: dict[str, Any], log: Path, said: Path) -> int:
    """Become the command line, with all points wrapped."""
    from relay import cli
    from relay.host import files, git, worktree
    from relay.ways import deploy, landing, remote, transport

    os.setsid()
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.chdir(order["cwd"])
    child = _Child(order, log)
    for name in ("write", "sync_folder", "remove_tree"):
        child.wrap(files, name)
    for name in ("rename", "replace"):
        child.wrap(pathlib.Path, name)
    for name in ("commit_tree", "update_ref", "delete_ref"):
        child.wrap(git, name)
    child.wrap(git, "run", only="worktree")
    for name in ("lease", "release"):
        child.wrap(worktree, name)
    for name in ("land", "move"):
        child.wrap(landing, name)
    child.wrap(remote, "push")
    child.wrap(transport, "http")
    child.wrap(deploy, "send")
    return cli.main(order["argv"])


def _serve(log: Path, said: Path) -> None:
    """Fork a child for each line of stdin, and say how it ended."""
    import filelock  # noqa: F401 - imported here so that no child has to
    import git  # noqa: F401
    import jinja2  # noqa: F401
    import tomli_w  # noqa: F401

    from relay import bug, runner, salvage  # noqa: F401
    from relay.commands import approve, resume, run  # noqa: F401
    from relay.record import note, reply, spec  # noqa: F401

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite that runs in the background ignores both,
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and so would what it starts
    for line in sys.stdin:
        log.write_bytes(b"")
        said.write_bytes(b"")
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = _be_relay(json.loads(line), log, said)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), Path(sys.argv[2]))

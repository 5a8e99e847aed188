"""Run a program to its end, and leave nothing of it behind.

What a program says is kept in bounded memory, its input is always given, its session is its own and has no terminal
(pitfalls rows 43, 44, 73, 75, 102). The work is done in `program.py`, processes are told apart in `pids.py`.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from relay.errors import RelayError
from relay.host import clock, files, signals, term
from relay.host.pids import alive, end, orphans, survivors, this
from relay.host.program import Guard, How, Program
from relay.terms import Limits, Process, Struct

__all__ = ["Ended", "Guard", "How", "alive", "clean_env", "end", "orphans", "run", "survivors", "this"]

# As `git rev-parse --local-env-vars` prints them, so that no inherited name leads git to another repository.
_GIT_LOCAL: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "GIT_OBJECT_DIRECTORY",
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_REPLACE_REF_BASE",
        "GIT_PREFIX",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_COMMON_DIR",
        "GIT_LITERAL_PATHSPECS",
    }
)
_FOREIGN: Final = frozenset({"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "NODE_PATH"})
_PREFIXES: Final = ("GIT_TRACE", "GIT_CONFIG_", "RELAY_")


_count = [0]


class Ended(Struct, frozen=True, kw_only=True):
    """How a program ended: exit code (negative: the signal that killed it), by what, and what it said.

    `dropped` counts the bytes between `head` and `tail`; `sha256` is over all of them. 127 means that it was not
    found, 126 that it could not be started, as in a shell.
    """

    code: int
    ended: How
    seconds: float
    head: bytes
    tail: bytes
    dropped: int
    sha256: str

    @property
    def text(self) -> str:
        """What was said, as text without terminal controls, with the gap named where there is one."""
        if not self.dropped:
            return term.plain((self.head + self.tail).decode(errors="replace"))
        head, tail = (part.decode(errors="replace") for part in (self.head, self.tail))
        return term.plain(f"{head}\n[... {self.dropped} bytes left out ...]\n{tail}")


def clean_env(extra: Mapping[str, str] = {}) -> dict[str, str]:
    """Return the environment for a program that works in a worktree, with `extra` on top.

    Without what would lead git, Python or node to another checkout (pitfalls rows 7, 27), and without Relay's own
    names. PATH loses a leading `bin` of the active virtual environment only where that is the one Relay runs from.
    """
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in _GIT_LOCAL and name not in _FOREIGN and not name.startswith(_PREFIXES)
    }
    active = os.environ.get("VIRTUAL_ENV", "")
    if active and os.path.realpath(active) == os.path.realpath(sys.prefix):
        first, _, rest = env.get("PATH", "").partition(os.pathsep)
        if first == os.path.join(active, "bin"):
            env["PATH"] = rest
    return {**env, **extra}


def ran() -> int:
    """Return how many programs this process has run, but harmless ones: what was read before may have changed since."""
    return _count[0]


def run(
    command: Sequence[str] | str,
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes = b"",
    limits: Limits,
    sink: Callable[[bytes], None] | None = None,
    spawned: Callable[[Process], None] | None = None,
    guard: Guard | None = None,
) -> Ended:
    """Run `command` in the folder `cwd` until it ends or crosses a limit, and end everything it started.

    A string is given to `/bin/sh -c`. Standard error goes into the output. `sink` gets each piece of output as it
    comes, `spawned` the process once it runs; what they raise ends the program and is raised here, and so does an
    exception of a signal handler, such as `Interrupted`. `RelayError` when `cwd` is no folder.
    Without a `RELAY_NONCE` of its own in `env` the program gets a fresh one. `guard` looks at it and may end it.
    """
    if not os.path.isdir(cwd):
        raise RelayError(f"there is no folder `{cwd}` to run a command in")
    nonce = env.get("RELAY_NONCE", "")
    if nonce in {"", os.environ.get("RELAY_NONCE")}:  # an inherited one also marks programs that are not ours to end
        nonce = os.urandom(16).hex()
    program = Program(limits, sink, stdin, nonce, guard)
    _count[0] += guard is None or not guard.harmless
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    how: How = "exit"
    try:
        try:
            process = program.start(words, cwd, env)
        except (OSError, ValueError) as error:
            return _not_started(words[0], error)
        if spawned is not None:
            spawned(process)
        how = program.watch()
    finally:
        with signals.held():
            code = program.end()
    if program.fault is not None:
        raise program.fault
    said = program.said
    if how == "exit" and limits.output is not None and said.total > limits.output:
        how = "output"
    return Ended(
        code=code,
        ended=how,
        seconds=clock.monotonic() - program.began,
        head=said.head,
        tail=said.tail,
        dropped=said.dropped,
        sha256=said.sha256,
    )


def _not_started(name: str, error: OSError | ValueError) -> Ended:
    reason = error.strerror if isinstance(error, OSError) else None
    said = f"relay: cannot start `{name}`: {(reason or str(error)).lower()}\n".encode(errors="replace")
    missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    return Ended(
        code=127 if missing else 126,
        ended="exit",
        seconds=0.0,
        head=said,
        tail=b"",
        dropped=0,
        sha256=files.sha256(said),
    )

"""One command in a jail, to its end: built, run, watched and taken down by the same thread.

The same thread, because the jail dies with the thread that started it (sandbox.md 4.5): nothing of it survives
Relay, whatever ends Relay.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from relay.errors import Exit, RelayError
from relay.host import files, proc, term
from relay.host.jail import bwrap, cgroup, copies, rungs, tools
from relay.host.jail.limits import USUAL, Bounds, Watch
from relay.host.jail.mounts import Access, Mounts
from relay.host.jail.rungs import Rung
from relay.terms import Limits, Process

_PASSED: Final = frozenset(
    {"PATH", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "JAVA_HOME", "GOROOT", "LD_LIBRARY_PATH"}
)
_FIXED: Final = {"TERM": "dumb", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


class Network(Enum):
    """What a command reaches: itself, or all that this machine does."""

    OFF = "off"
    HOST = "host"


class Door(Protocol):
    """A way to some of the network and nothing else: what it needs inside, and what goes before the command."""

    @property
    def share(self) -> bool:
        """Whether it is no door at all, but the whole network."""

    @property
    def mounts(self) -> tuple[tuple[str, str], ...]:
        """What is shown inside, and where."""

    @property
    def env(self) -> dict[str, str]:
        """What a program must know to take this way."""

    def wrap(self, argv: Sequence[str]) -> Sequence[str]:
        """Return the command that opens the way inside and runs `argv`."""


def jailed(  # noqa: PLR0913  what `proc.run` takes, and what a jail adds
    rung: Rung,
    command: Sequence[str] | str,
    mounts: Mounts,
    *,
    env: Mapping[str, str],
    network: Network | Door = Network.OFF,
    nests: bool = False,
    limits: Limits,
    bounds: Bounds = USUAL,
    stdin: bytes = b"",
    sink: Callable[[bytes], None] | None = None,
    spawned: Callable[[Process], None] | None = None,
) -> proc.Ended:
    """Run `command` in its tree as `proc.run` does, confined by `rung`; `env` is all that it gets by name.

    In a jail the exit code is a shell's: 128 and the number of the signal that ended it. `memory` and `disk` are
    endings of their own. `RelayError` when the jail cannot be built, which is never the command's failure.
    """
    if not rung.holds:
        return proc.run(
            command,
            cwd=str(mounts.tree),
            env=environment(env, Path.home()),
            stdin=stdin,
            limits=limits,
            sink=sink,
            spawned=spawned,
            guard=proc.Guard(Watch(bounds, mounts.tree).look),
        )
    mounts.check()
    words, named, asked = _through(network, command, env)
    with (
        _scratch(rung, mounts) as made,
        bwrap.built(rung.program, mounts, bounds, asked._replace(copies=made, nests=nests)) as jail,
        cgroup.bounded(bounds.processes) as group,
    ):

        def begun(process: Process) -> None:
            if spawned is not None:
                spawned(process)
            jail.enter(process, group)

        ended = proc.run(
            [*jail.words, *words],
            cwd="/",
            env=environment(named, mounts.home, inside=True),
            stdin=stdin,
            limits=limits,
            sink=sink,
            spawned=begun,
            guard=proc.Guard(
                _watch(mounts, bounds, made, jail).look, jail.fds, jail.gone, harmless=mounts.access is Access.READ
            ),
        )
        if ended.ended == "exit" and ended.code >= 0 and not jail.ran:
            found = rungs.explain(ended.text)
            problem = f"the jail could not be built: {found.cause}"
            raise RelayError(problem, hint=found.remedy, exit_code=Exit.HUMAN)
    return ended


def _through(
    network: Network | Door, command: Sequence[str] | str, env: Mapping[str, str]
) -> tuple[list[str], dict[str, str], bwrap.Asked]:
    """Return command, environment and command line's share of a way to the network."""
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if isinstance(network, Network):
        asked = bwrap.Asked(network=network is Network.HOST)
    else:
        words, env = list(network.wrap(words)), {**network.env, **env}
        asked = bwrap.Asked(network=network.share, binds=network.mounts)
    if asked.network:
        _tell()
    return words, dict(env), asked


def _watch(mounts: Mounts, bounds: Bounds, made: Mapping[Path, Path], jail: bwrap.Built) -> Watch:
    """Return the watch over a jail and over where its writes go: the tree, its copy, or what is laid over it."""
    if mounts.access is Access.READ:
        return Watch(bounds, None)
    if mounts.access is Access.WRITE or made:
        return Watch(bounds, made.get(mounts.tree, mounts.tree), beside=(*mounts.writable, *made.values()))
    return Watch(bounds, None, lambda: Path(f"/proc/{jail.first}/root{mounts.tree}"))


def environment(named: Mapping[str, str], home: Path, *, inside: bool = False) -> dict[str, str]:
    """Return all that a command gets: how to find programs, the language, and what the caller names.

    An allow-list, so that no key which happens to be set goes along. `inside` has a home of its own.
    """
    passed = {name: value for name, value in proc.clean_env().items() if name in _PASSED or name.startswith("LC_")}
    passed["PATH"] = os.pathsep.join(
        entry for entry in passed.get("PATH", os.defpath).split(os.pathsep) if entry.startswith("/")
    )
    where = {"HOME": str(home), "TMPDIR": tempfile.gettempdir()}
    if inside:
        where = {**tools.variables(passed["PATH"], home), "HOME": bwrap.HOME, "TMPDIR": bwrap.TMP}
    return {**passed, **_FIXED, **where, **named}


@contextmanager
def _scratch(rung: Rung, mounts: Mounts) -> Iterator[Mapping[Path, Path]]:
    """Yield copies for writes that vanish, where bwrap cannot lay them over the tree; they lie beside it."""
    if mounts.access is not Access.SCRATCH or rung.overlay:
        yield {}
        return
    folder = Path(tempfile.mkdtemp(prefix=f".{mounts.tree.name}.scratch-", dir=mounts.tree.parent))
    try:
        made = {place: folder / str(number) for number, place in enumerate((mounts.tree, *mounts.fleeting))}
        for place, copy in made.items():
            copies.copy(place, copy)
        yield made
    finally:
        files.remove_tree(folder)


@cache
def _tell() -> None:
    term.say("network: host: the commands reach every service of this machine, those on 127.0.0.1 too")

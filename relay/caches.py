"""What set-up fetched, kept for the next worktree: the caches of uv, pip, npm and cargo, named to them by environment.

The home in a jail is empty and ends with its command, so every worktree would fetch all of it anew. Only set-up of the
base itself, which no agent of the run has touched, fills the caches of that base. Every worktree has a copy of its own,
which goes with it: what a worker leaves in a cache, its judge never meets. Without a jail the tools use the person's.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from relay import confine
from relay.errors import RelayError
from relay.host import files, jail, lock, provision, worktree
from relay.host.lease import CACHE, Lease
from relay.record.ledger import Ledger
from relay.terms import Plan

BLOCK: Final = 512
"""Bytes of the blocks that `st_blocks` counts (stat(2))."""
GIGABYTE: Final = 1_000_000_000
TAG: Final = "CACHEDIR.TAG"
"""By this name and its first line backups know what need not be kept (the Cache Directory Tagging Specification)."""
_TAGGED: Final = b"Signature: 8a477f597d28d172789f06886806bc55\n# What set-up fetched; `relay` makes it again.\n"
_PATIENCE: Final = 60
"""How long another set-up of the repository is waited for, in seconds; after that this one does without caches."""


def place(ledger: Ledger) -> Path:
    """Say where the caches of a repository lie: on the disk of its worktrees, so that a copy may be a clone."""
    worktrees = ledger.worktree("run", "leg").parents[1]
    return worktrees.parents[1] / "caches" / worktrees.name


def prepare(ledger: Ledger, plan: Plan, lease: Lease, commit: str, base: str, log: Path) -> str:
    """Make a fresh worktree of `commit` fit to work in, as `worktree.prepare` does; return what failed, or nothing.

    Caches that cannot be had are named in the log and stop nothing: set-up fetches what it needs.
    """

    def fit(cache: Path | None = None) -> str:
        def cell() -> jail.Cell | None:
            return confine.cell(ledger, plan, lease, jail.Access.WRITE, setup=True, cache=cache)

        return worktree.prepare(ledger.repo, lease, plan.worktree, log, cell, base)

    if not (plan.worktree.setup and plan.worktree.cache_gb and confine.rung(plan)[0].holds):
        return fit()
    if commit != base:
        _lend(ledger, plan, lease, log)
        return fit()
    with _filled(ledger, plan, log) as there:
        problem = fit(there)
    _lend(ledger, plan, lease, log)
    return problem


@contextmanager
def _filled(ledger: Ledger, plan: Plan, log: Path) -> Iterator[Path | None]:
    """Give the caches of the base to its set-up; where those of the repository grew too large, they begin anew."""
    with ExitStack() as held:
        there: Path | None = None
        try:
            whole = held.enter_context(_locked(ledger))
            if used(whole) > plan.worktree.cache_gb * GIGABYTE:
                provision.say(log, f"the caches hold more than {plan.worktree.cache_gb:g} GB, and begin anew")
                _clear(whole)
            there = whole / _base(plan)
            there.mkdir(0o700, exist_ok=True)
        except (OSError, RelayError) as error:
            provision.say(log, f"set-up has no caches: {error}")
            there = None
        yield there


def _base(plan: Plan) -> str:
    """Name the caches of a base: one that is work which nobody accepted yet feeds the runs that build on it alone."""
    return files.sha256((plan.base_ref or plan.base).encode())[:8]


def _lend(ledger: Ledger, plan: Plan, lease: Lease, log: Path) -> None:
    """Give a worktree its own copy of its base's caches, which may be empty as yet."""
    try:
        with _locked(ledger) as whole:
            there = whole / _base(plan)
            there.mkdir(0o700, exist_ok=True)
            lease.cache.mkdir(0o700)
            files.write(lease.cache / TAG, _TAGGED)  # first: by it the reaper knows half a copy, too
            for part in sorted(there.iterdir()):
                jail.copy(part, lease.cache / part.name)
    except (OSError, RelayError) as error:
        files.remove_tree(lease.cache)
        provision.say(log, f"the worktree has no caches: {error}")


def ours(path: Path) -> bool:
    """Tell whether a folder is the caches of a worktree, and not only called so."""
    return path.name.endswith(CACHE) and (path / TAG).is_file()


def empty(ledger: Ledger) -> int:
    """Empty the caches of a repository; returns the bytes that came free. `RelayError` (exit 75) while one fills them.

    Tools fetch again what they miss, so nothing is lost.
    """
    if not place(ledger).is_dir():
        return 0
    with _locked(ledger, wait=0) as there:
        before = used(there)
        _clear(there)
        return before - used(there)


@contextmanager
def _locked(ledger: Ledger, wait: float = _PATIENCE) -> Iterator[Path]:
    """Hold the caches of a repository, which are made if need be."""
    there = place(ledger)
    there.mkdir(0o700, parents=True, exist_ok=True)
    with lock.hold(there.with_name(f"{there.name}.lock"), "set-up", wait=wait):
        if not (there / TAG).exists():
            files.write(there / TAG, _TAGGED)
        yield there


def _clear(there: Path) -> None:
    for path in sorted(there.iterdir()):
        if path.name != TAG:
            files.remove_tree(path)


def used(path: Path) -> int:
    """Return the bytes that a folder takes on disk; links are not followed, and a second name costs nothing."""
    total, seen = 0, set[tuple[int, int]]()
    folders = [str(path)]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                state = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if (state.st_dev, state.st_ino) not in seen:
                total += state.st_blocks * BLOCK
                seen.add((state.st_dev, state.st_ino))
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return total

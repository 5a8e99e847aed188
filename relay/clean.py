"""Clean checkouts: an exact commit in a folder of its own, where Relay runs commands, and which then goes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from relay import caches, confine, loss
from relay.confine import Place
from relay.errors import Exit, RelayError
from relay.host import checks, git, provision, worktree
from relay.host.jail import Access
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.record.ledger import Ledger
from relay.terms import Check, Plan


class SetupError(RelayError):
    """A clean checkout could not be set up: no fault of an agent, and nothing was judged in it."""


@contextmanager
def checkout(
    ledger: Ledger,
    plan: Plan,
    leg: str,
    commit: str,
    name: str,
    access: Access = Access.WRITE,
    *,
    setup: bool = True,
    base: str | None = None,
) -> Iterator[Place]:
    """Give a clean checkout of an exact commit, set up like every worktree, and remove it afterwards.

    With `Access.SCRATCH` a jail lets whatever a command writes there vanish with it. `base` is the run's base where it
    moved: set-up fetches nothing from elsewhere than that says.
    """
    path = _place(plan, ledger.repo, ledger.worktree(plan.run, f"{leg}.{name}"))
    lease = worktree.lease(ledger.repo, path, commit, f"relay run={plan.run} leg={leg} for={name}")
    loss.beat.begin(lease.git_dir)
    log = ledger.leg(plan.run, leg) / f"setup-{name}.log"
    log.parent.mkdir(0o700, exist_ok=True)  # a shipment has no folder yet while its tree is looked at
    try:
        problem = setup and caches.prepare(ledger, plan, lease, commit, base or plan.base, log)
        if problem:
            raise SetupError(f"set-up failed in a clean checkout: {problem}", exit_code=Exit.HUMAN)
        yield Place(folder=lease.path, cell=confine.cell(ledger, plan, lease, access))
    finally:
        loss.beat.end(lease.git_dir)
        with suppress(RelayError):  # what its commands left, and nobody may remove, says nothing of them: it is raised
            worktree.release(ledger.repo, lease)


def _place(plan: Plan, repo: Repository, path: Path) -> Path:
    """Return where a checkout can be made; what a killed Relay left there goes, unless somebody worked in it."""
    first = path.parent.resolve() / path.name
    entries = {entry.path: entry for entry in worktree.own(repo)}

    def free(at: Path) -> bool:
        return not os.path.lexists(at) or (at in entries and not stays(plan, repo, entries[at]))

    place = next(filter(free, chain([first], (first.with_name(f"{first.name}.{number}") for number in count(2)))))
    worktree.clear(repo, place)
    return place


def stays(plan: Plan, repo: Repository, entry: worktree.Entry) -> str:
    """Say why a checkout that a killed Relay left may not go; nothing where it may."""
    found = Lease(path=entry.path, git_dir=entry.git_dir, pointer_sha256="")
    worked = entry.complete and found.path.is_dir() and loss.worked_in(repo, found, confine.rung(plan)[0])
    return loss.held(repo, found) or worked or ""


def nothing(ledger: Ledger) -> str:
    """Return a commit that holds no file."""
    tree = git.run(ledger.repo, "mktree", stdin=b"").strip().decode()
    return git.commit_tree(ledger.repo, tree, [], "nothing\n", git.NOBODY)


def run(plan: Plan, at: Place, command: str, *, by: str, seconds: float) -> tuple[Check, str]:
    """Run a command in a worktree as `checks.run` does, with the variables that `[worktree] env` names."""
    env = provision.named(plan.worktree)
    return checks.run(command, at.folder, by=by, env=env, seconds=seconds, cell=at.cell)

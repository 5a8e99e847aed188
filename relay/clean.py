"""Clean checkouts: an exact commit in a folder of its own, where Relay runs commands, and which then goes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from relay import caches, confine, loss
from relay.confine import Place
from relay.errors import Exit, RelayError
from relay.host import checks, git, provision, worktree
from relay.host.jail import Access
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
    path = ledger.worktree(plan.run, f"{leg}.{name}")
    worktree.clear(ledger.repo, path)
    lease = worktree.lease(ledger.repo, path, commit, f"relay run={plan.run} leg={leg} for={name}")
    log = ledger.leg(plan.run, leg) / f"setup-{name}.log"
    log.parent.mkdir(0o700, exist_ok=True)  # a shipment has no folder yet while its tree is looked at
    try:
        problem = setup and caches.prepare(ledger, plan, lease, commit, base or plan.base, log)
        if problem:
            raise SetupError(f"set-up failed in a clean checkout: {problem}", exit_code=Exit.HUMAN)
        made = plan.worktree
        ran = setup and bool(made.setup or made.submodules or made.lfs)
        loss.fresh(ledger.repo, lease, confine.rung(plan)[0], setup=ran)
        yield Place(folder=lease.path, cell=confine.cell(ledger, plan, lease, access))
    finally:
        with suppress(RelayError):  # what its commands left, and nobody may remove, says nothing of them: it is raised
            worktree.release(ledger.repo, lease)


def nothing(ledger: Ledger) -> str:
    """Return a commit that holds no file."""
    tree = git.run(ledger.repo, "mktree", stdin=b"").strip().decode()
    return git.commit_tree(ledger.repo, tree, [], "nothing\n", git.NOBODY)


def run(plan: Plan, at: Place, command: str, *, by: str, seconds: float) -> tuple[Check, str]:
    """Run a command in a worktree as `checks.run` does, with the variables that `[worktree] env` names."""
    env = provision.named(plan.worktree)
    return checks.run(command, at.folder, by=by, env=env, seconds=seconds, cell=at.cell)

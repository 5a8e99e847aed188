"""A branch of this repository: `merge`, `fast-forward` and `merge-commit`, which differ in the commit alone."""

from relay.errors import RelayError
from relay.host import git
from relay.host.repository import Repository
from relay.record.ledger import Ledger
from relay.terms import Plan, Ship
from relay.ways import branches, landing
from relay.ways.base import Out, Parcel, RefusedError, Tip, Words
from relay.ways.branches import HEADS


def check(repo: Repository, ship: Ship) -> None:
    """Refuse nothing: a branch is named when it is shipped to."""


def target(ledger: Ledger, plan: Plan, into: str | None) -> str:
    """Name the branch here, which must be there already."""
    wanted = into or plan.base_ref
    if not wanted:
        raise RelayError(
            f"run `{plan.run}` began on a detached HEAD, so no branch is named",
            hint=f"relay approve {plan.run} --into BRANCH",
        )
    name = branches.named(ledger.repo, wanted)
    ref = f"{HEADS}{name}"
    if name is None or git.resolve(ledger.repo, ref) is None:
        hint = f"relay approve {plan.run} --into {branches.here(ledger.repo, wanted) or 'BRANCH'}"
        raise RelayError(f"there is no branch `{wanted}` to ship into", hint=hint)
    if plan.ship.method != "command":  # a deployment moves nothing
        landing.real(ledger.repo, ref)
    return ref


def tip(ledger: Ledger, plan: Plan, target: str) -> Tip:
    """Return where the branch stands."""
    now = git.resolve(ledger.repo, target)
    if now is None:
        name = target.removeprefix(HEADS)
        hint = f"relay approve {plan.run} --into BRANCH"
        raise RefusedError(f"branch `{name}` is gone, and nothing went out", hint=hint)
    return Tip(now=now, onto=now)


def look(parcel: Parcel) -> Out | None:
    """Look whether the branch holds the commit."""
    now = git.resolve(parcel.repo, parcel.target)
    return Out(commit=parcel.commit) if now and git.ancestor(parcel.repo, parcel.commit, now) else None


def send(parcel: Parcel, _words: Words) -> Out:
    """Move the branch, and the checkout that has it, if nobody's uncommitted work is in the way."""
    landing.land(parcel.repo, parcel.target, parcel.commit, parcel.now or "")
    return Out(commit=parcel.commit)


def withdraw(parcel: Parcel) -> str:
    """Take a checkout back that had gone along: the branch moves or it does not."""
    return landing.back(parcel.repo, parcel.target, parcel.commit, parcel.now or "")

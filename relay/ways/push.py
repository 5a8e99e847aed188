"""A branch of another repository: the commit goes onto where the branch stands there, or not at all."""

from relay import weigh
from relay.errors import RelayError
from relay.host import git, repository
from relay.host.repository import Repository
from relay.record import config
from relay.record.ledger import Ledger
from relay.terms import Plan, Ship
from relay.ways import branches, remote
from relay.ways.base import Out, Parcel, RefusedError, Tip, UnknownError, Words

HEADS = "refs/heads/"


def check(repo: Repository, ship: Ship) -> None:
    """Refuse a remote that is not there, and what cannot be the name of a branch."""
    remote.address(repo, ship.remote)
    if ship.branch is not None and not config.REF.fullmatch(ship.branch.replace("{run}", "run")):
        text = f"`ship.branch`: `{ship.branch}` cannot be the name of a branch"
        raise RelayError(text, hint='branch = "relay/{run}"')


def named(ledger: Ledger, plan: Plan, into: str | None, at: str | None = None) -> str:
    """Name the branch that stands for the base `at` a remote, or the one that a person says, without `refs/heads/`."""
    wanted = branches.there(ledger.repo, at or plan.ship.remote, into or plan.base_ref)
    name = branches.named(ledger.repo, wanted)
    if name is None:
        what = f"`{wanted}` cannot be the name of a branch" if wanted else "the run began on no branch"
        raise RelayError(f"{what}: nothing says where it goes", hint=f"relay approve {plan.run} --into BRANCH")
    return name


def target(ledger: Ledger, plan: Plan, into: str | None) -> str:
    """Name the branch there: what a person says, `ship.branch`, or the name of the base."""
    check(ledger.repo, plan.ship)
    return HEADS + named(ledger, plan, into or (plan.ship.branch or "").replace("{run}", plan.run) or None)


def tip(ledger: Ledger, plan: Plan, target: str) -> Tip:
    """Return where the branch stands there; one that is not there yet begins where the base stands there.

    So commits that nobody pushed do not go along.
    """
    now = had(ledger, plan.ship.remote, target.removeprefix(HEADS))
    root = None if now or not plan.base_ref else had(ledger, plan.ship.remote, named(ledger, plan, None))
    return Tip(now=now, onto=now or root)


def had(ledger: Ledger, at: str, branch: str) -> str | None:
    """Return where a branch stands at a remote, and let that commit be here too."""
    now = remote.tip(ledger.repo, at, branch)
    if now is not None:
        remote.have(ledger.repo, at, branch, now)
    return now


def look(parcel: Parcel) -> Out | None:
    """Look whether the branch there holds the commit."""
    try:
        now = had(parcel.ledger, parcel.plan.ship.remote, parcel.target.removeprefix(HEADS))
    except RefusedError as error:
        raise UnknownError(error.message, hint=error.hint) from None
    return _out(parcel) if now and git.ancestor(parcel.repo, parcel.commit, now) else None


def send(parcel: Parcel, _words: Words) -> Out:
    """Push the commit, by its id, onto the commit that it was made for."""
    deliver(parcel, parcel.target.removeprefix(HEADS), parcel.now)
    return _out(parcel)


def deliver(parcel: Parcel, branch: str, was: str | None) -> None:
    """Push the commit; where the person has a hook for that, it runs in a clean checkout of the commit."""
    name, folder = parcel.plan.ship.remote, remote.hooks(parcel.repo)
    if folder is None:
        remote.push(parcel.repo, name, parcel.commit, branch, was)
        return
    with weigh.checkout(parcel.ledger, parcel.plan, parcel.leg, parcel.commit, "hook") as at:
        hook = remote.Hook(folder=folder, checkout=repository.discover(at.folder))
        remote.push(parcel.repo, name, parcel.commit, branch, was, hook)


def withdraw(_parcel: Parcel) -> str:
    """Take back nothing: a branch moves or it does not."""
    return ""


def _out(parcel: Parcel) -> Out:
    return Out(commit=parcel.commit, told={"remote": parcel.plan.ship.remote})

"""A proposal on a forge: the commit on a branch of its own there, and a pull request or merge request from it."""

from typing import Final

from relay.errors import RelayError
from relay.host import git
from relay.host.repository import Repository
from relay.record.ledger import Ledger
from relay.terms import Plan, Ship
from relay.ways import forges, github, push, remote, said
from relay.ways.base import Out, Parcel, RefusedError, Tip, UnknownError, Words
from relay.ways.forge import Forge, Proposal

HEADS: Final = "refs/heads/"


def check(repo: Repository, ship: Ship) -> None:
    """Refuse a remote that is on no forge, a branch that cannot be, and an API that is asked in the open."""
    forges.of(repo, ship)
    push.check(repo, ship)
    github.check_api(ship)


def target(ledger: Ledger, plan: Plan, into: str | None) -> str:
    """Name the branch there that the proposal is to change."""
    check(ledger.repo, plan.ship)
    named = HEADS + push.named(ledger, plan, into, at(plan))
    if plan.ship.upstream is None and named == HEADS + branch(plan):
        raise RelayError(f"`{branch(plan)}` cannot be proposed to itself", hint='see [ship] branch = "relay/{run}"')
    return named


def branch(plan: Plan) -> str:
    """Name the branch there that the proposal comes from."""
    return (plan.ship.branch or "relay/{run}").replace("{run}", plan.run)


def at(plan: Plan) -> str:
    """Name the remote that a proposal goes to."""
    return plan.ship.upstream or plan.ship.remote


def tip(ledger: Ledger, plan: Plan, target: str) -> Tip:
    """Return where the branch that is to be changed stands there."""
    now = push.had(ledger, at(plan), target.removeprefix(HEADS))
    if now is None:
        name = target.removeprefix(HEADS)
        text = f"`{at(plan)}` has no branch `{name}` to propose it to"
        raise RefusedError(text, hint=f"relay approve {plan.run} --into BRANCH")
    return Tip(now=now, onto=now)


def look(parcel: Parcel) -> Out | None:
    """Look for a proposal of this commit, however it ended; an open one is asked to be merged, if that is wanted."""
    found = find(parcel)
    if found is None:
        return None
    return _opened(parcel, _forge(parcel), found) if found.state == "open" else became(parcel, found)


def view(parcel: Parcel, number: str) -> Proposal:
    """Return a proposal as it stands now. Raises `UnknownError`."""
    try:
        return _forge(parcel).view(int(number))
    except RefusedError as error:
        raise UnknownError(error.message, hint=error.hint) from None


def find(parcel: Parcel) -> Proposal | None:
    """Return the newest proposal of this commit into that branch, one that was closed only if there is no other one.

    Raises `UnknownError`.
    """
    try:
        found = [one for one in _forge(parcel).find(branch(parcel.plan)) if not strays(parcel, one)]
    except RefusedError as error:
        raise UnknownError(error.message, hint=error.hint) from None
    return next((one for one in found if one.state != "closed"), found[0] if found else None)


def send(parcel: Parcel, words: Words) -> Out:
    """Push the commit onto a branch of its own, and open a proposal or take the one that is open.

    What the forge refuses after the push takes the branch back to where it was.
    """
    plan, name = parcel.plan, parcel.plan.ship.remote
    if parcel.commit == parcel.now:
        return Out(commit=parcel.commit)
    forge, into = _forge(parcel), parcel.target.removeprefix(HEADS)
    forge.find(branch(plan))  # whoever may not ask may not open one either: nothing is pushed for nothing
    was = remote.tip(parcel.repo, name, branch(plan))
    _ours(parcel, was)
    push.deliver(parcel, branch(plan), was)
    try:
        # A branch of a fork may have the same name: what is adopted stands at our commit, or where ours stood before.
        ours = [one for one in forge.find(branch(plan)) if one.head in {parcel.commit, was} and one.base == into]
        found = [one for one in ours if one.state == "open"]
        if found:
            forge.update(found[0].number, words.title, words.body)
            opened = found[0]
        else:
            opened = forge.create(words.title, words.body, branch(plan), into)
    except RefusedError as error:
        left = _back(parcel, was)
        raise RefusedError(error.message + f"; {left}" * bool(left), hint=error.hint) from None
    return _opened(parcel, forge, opened)


def withdraw(parcel: Parcel) -> str:
    """Take the branch back that was pushed, and that no proposal came from."""
    if remote.tip(parcel.repo, parcel.plan.ship.remote, branch(parcel.plan)) != parcel.commit:
        return ""
    return _back(parcel, _before(parcel))


def became(parcel: Parcel, found: Proposal) -> Out:
    """Tell what became of a proposal that ended; only the accepted commit, merged where it was to go, is shipped."""
    out = _out(parcel, found)
    if found.state == "closed":
        return Out(commit=parcel.commit, outcome="failed", told={**out.told, "why": f"{found.url} was closed unmerged"})
    odd = strays(parcel, found)
    if odd:
        merged = found.merged_as or found.head
        why = f"{found.url} was merged as `{merged[:12]}`, but {odd}"
        told = {**out.told, "merged": merged, "head": found.head, "why": why}
        return Out(commit=parcel.commit, outcome="failed", told=told)
    base, name = parcel.target.removeprefix(HEADS), at(parcel.plan)
    if not remote.holds(parcel.repo, name, base, out.commit):
        why = f"it was merged as `{out.commit[:12]}`, which `{base}` on `{name}` does not hold any more"
        return Out(commit=out.commit, told={**out.told, "why": why})
    return out


def strays(parcel: Parcel, found: Proposal) -> str:
    """Say in what a proposal is not the accepted one: others push onto its branch, and lead it into another one."""
    base = parcel.target.removeprefix(HEADS)
    apart = [f"its commit is `{found.head[:12]}`, not the accepted `{parcel.commit[:12]}`"]
    apart *= found.head != parcel.commit
    return " and ".join(apart + [f"it goes into `{found.base}`, not into `{base}`"] * (found.base != base))


def close(parcel: Parcel, found: Proposal) -> Proposal:
    """Close an open proposal and let nobody merge it by itself any more; returns how it stands then.

    Its branch is kept, with what was said there. Raises `RefusedError` or `UnknownError`.
    """
    forge = _forge(parcel)
    forge.close(found)
    now = forge.view(found.number)
    if now.state == "open":
        raise RefusedError("it was asked to close it, and left it open")
    return now


def _forge(parcel: Parcel) -> Forge:
    return forges.of(parcel.repo, parcel.plan.ship)


def _ours(parcel: Parcel, was: str | None) -> None:
    """Refuse to replace commits on the proposal's branch that this run did not put there (pitfalls row 35)."""
    ours = {sealed.pins.head for sealed in parcel.chain if sealed.act == "ship" and sealed.pins is not None}
    if was is None or was == parcel.commit or was in ours:
        return
    remote.have(parcel.repo, parcel.plan.ship.remote, branch(parcel.plan), was)
    shape = "--format=%h by %an: %s"
    theirs = said.line(git.run(parcel.repo, "log", "-1", shape, was, "--").decode("utf-8", "replace"))
    raise RefusedError(
        f"branch `{branch(parcel.plan)}` on `{parcel.plan.ship.remote}` has a commit that is not ours: {theirs}",
        hint=f"take it in by `relay reject {parcel.plan.run} --why TEXT`, or move the branch away",
    )


def _before(parcel: Parcel) -> str | None:
    """Return the commit that an earlier shipment left on the proposal's branch."""
    sent = [sealed for sealed in parcel.chain if sealed.act == "ship" and (sealed.effect or {}).get("number")]
    return (sent[-1].effect or {}).get("commit") if sent else None


def _back(parcel: Parcel, was: str | None) -> str:
    """Move the proposal's branch back from our commit; returns what had to stay."""
    if was == parcel.commit:
        return ""
    try:
        remote.push(parcel.repo, parcel.plan.ship.remote, was, branch(parcel.plan), parcel.commit)
    except RelayError as error:
        return f"branch `{branch(parcel.plan)}` stays there: {error.message}"
    return ""


def _opened(parcel: Parcel, forge: Forge, found: Proposal) -> Out:
    """Tell of a proposal, and ask the forge to merge it once it is ready, if that is wanted; asked twice is no harm."""
    out, how = _out(parcel, found), parcel.plan.ship.auto_merge
    if how is None or found.state != "open":
        return out
    told: dict[str, str] = {"auto_merge": how}
    try:
        forge.merge_when_ready(found)
    except (RefusedError, UnknownError) as error:
        told = {"auto_merge": f"no: {error.message}", "why": f"a person has to merge it there: {error.message}"}
    return Out(commit=out.commit, outcome=out.outcome, told={**out.told, **told})


def _out(parcel: Parcel, found: Proposal) -> Out:
    told = {
        "remote": parcel.plan.ship.remote,
        "branch": branch(parcel.plan),
        "number": str(found.number),
        "url": found.url,
    }
    if found.state == "merged":
        return Out(commit=found.merged_as or parcel.commit, told=told)
    return Out(commit=parcel.commit, outcome="proposed", told=told)

"""Approve means ship: exactly the accepted tree goes out, once, and the receipt says what became of it."""

from collections.abc import Sequence
from typing import Final

import msgspec

from relay import acts, ways
from relay.errors import RelayError
from relay.host import files, git, lock
from relay.host.repository import Repository
from relay.record import evidence, receipt
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import gate, history
from relay.terms import Pins, Plan, Receipt, Start
from relay.ways import publish, rebase, sealing, signing, words
from relay.ways.base import Out, Parcel, intent
from relay.ways.following import follow, withdraw

__all__ = ["approve", "finish", "follow", "preflight", "published", "ship", "wanted", "withdraw"]

RACES: Final = 3
"""How often a commit is made anew for a branch that moved in the very moment; then a person is asked."""


def preflight(repo: Repository, plan: Plan) -> None:
    """Refuse, before anything is spent on a run, a method that could not send its result out: a `RelayError`."""
    ways.check(repo, plan.ship)
    signing.preflight(repo, plan)
    if plan.ship.approval == "manual" or plan.unchecked:
        return  # a person can still say into which branch
    try:
        ways.of(plan.ship).target(ledgers.at(repo), plan, None)
    except RelayError as error:
        hint = 'name a branch: relay run SPEC --base BRANCH; or say it later: [ship] approval = "manual"'
        raise RelayError(f'approval = "auto" has nowhere to ship: {error.message}', hint=hint) from None


def approve(
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    into: str | None,
    by: str | None = None,
    *,
    leg: str | None = None,
    why: str = "",
) -> Receipt:
    """Seal an approval: it pins head, base, tree and the acceptance. Holds no lock of its own.

    With `leg` a person takes the responsibility for what that leg left, which nothing accepted, and says why.
    """
    pins, target = wanted(ledger, plan, chain, into, leg=leg)
    effect = {"into": target} | ({"leg": leg, "accepted": "by nothing"} if leg is not None else {})
    return acts.seal(ledger, plan, chain, "approve", pins=pins, effect=effect, by=by, why=why)


def wanted(
    ledger: Ledger, plan: Plan, chain: Sequence[Receipt], into: str | None, *, leg: str | None = None
) -> tuple[Pins, str]:
    """Return what an approval pins, and what it is for; writes nothing.

    `RelayError` (exit 6) when what the commit is to say can no longer be read, or a commit is gone.
    """
    about = _upto(chain, leg) if leg is not None else chain
    words.message(ledger, plan, about)
    counted = [about[-1]] if leg is not None else _counted(chain)
    gate.check([evidence.look(ledger, plan.run, sealed.leg, chain) for sealed in counted], plan.run)
    target = ways.of(plan.ship).target(ledger, plan, into)
    resting = about[-1] if leg is not None else history.last_leg(chain) or chain[-1]
    head = resting.head if leg is not None else history.head(plan, chain)
    pins = Pins(
        head=head,
        base=resting.base if leg is not None else history.base(plan, chain),
        tree=git.tree(ledger.repo, head),
        receipt=receipt.sha256(resting),
    )
    return pins, target


def _upto(chain: Sequence[Receipt], leg: str) -> Sequence[Receipt]:
    """Return the receipts up to the one of a leg that a person approves by name."""
    number = next(index for index, sealed in enumerate(chain) if sealed.leg == leg)
    return chain[: number + 1]


def _counted(chain: Sequence[Receipt]) -> list[Receipt]:
    """Return the newest leg of each phase that replied: what the acceptance rests on."""
    newest = {leg.phase: leg for leg in chain if leg.kind != "act" and leg.ended_by == "reply"}
    return list(newest.values())


def ship(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], approval_id: str) -> Receipt:
    """Carry out an approval; returns the sealed `ship`, or the `rebase` that a moved base makes necessary.

    The caller holds the run's lock. The commit is made and kept under a ref before anything moves; the intent is
    written before the effect, so that a later Relay can look whether it happened.
    """
    approval = next(sealed for sealed in chain if sealed.leg == approval_id)
    late = _late(ledger, plan, chain, approval)
    if late:
        return sealing.failed(ledger, plan, chain, None, approval, late)
    for turn in range(RACES):
        try:
            return _attempt(ledger, plan, chain, approval)
        except ways.MovedError as error:
            if turn + 1 == RACES:
                return sealing.failed(ledger, plan, chain, None, approval, f"{error.message}, {RACES} times over")
        except ways.RefusedError as error:
            return sealing.failed(ledger, plan, chain, None, approval, error.message, error.hint)
    raise AssertionError


def _late(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], approval: Receipt) -> str:
    """Say that the run's branch is not at what was approved any more: commits that came late void the approval."""
    branch = git.resolve(ledger.repo, f"refs/heads/relay/{plan.run}")
    named = (approval.effect or {}).get("leg")
    ours = {sealed.head for sealed in chain} if named else {sealing.pins(approval).head}
    return "" if branch is None or branch in ours else f"branch `relay/{plan.run}` has moved since it was accepted"


def _attempt(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], approval: Receipt) -> Receipt:
    """Look whether it is out there already; else make the commit for where the branch stands now, and send it."""
    way, pins, target = ways.of(plan.ship), sealing.pins(approval), (approval.effect or {})["into"]
    about = _about(chain, approval)
    earlier = _earlier(ledger, plan, chain, approval)
    if earlier is not None:
        return sealing.confirmed(ledger, plan, chain, None, earlier, target)
    tip = way.tip(ledger, plan, target)
    onto, tree = tip.onto or pins.base, pins.tree
    moved = onto != pins.base
    if moved:
        there = git.tree(ledger.repo, onto) if _there(ledger.repo, pins, onto) else None
        merged, overlap = (there, ()) if there else rebase.merged(ledger, plan, pins, onto)
        if merged is None:
            return rebase.seal(ledger, plan, chain, pins, onto, overlap)
        tree = merged
    leg = ledgers.next_leg_id(ledger, plan.run, "ship")
    with lock.hold(ledger.leg_lock(plan.run, leg), "shipping", plan.run):
        commit = _commit(ledger, plan, about, approval, tree, onto)
        if moved and not rebase.still_holds(ledger, plan, about, commit, leg=leg, now=onto):
            return rebase.seal(ledger, plan, chain, pins, onto, ())
        git.put_ref(ledger.repo, f"refs/relay/{plan.run}/{leg}", commit)
        parcel = Parcel(
            ledger=ledger, plan=plan, chain=tuple(chain), leg=leg, target=target, commit=commit, now=tip.now
        )
        start = intent(parcel, leg, msgspec.structs.replace(pins, head=commit, base=onto, tree=tree), pins.head)
        page = words.proposal(ledger, plan, about, _by(approval))
        ledgers.begin(ledger, start)
        try:
            out = way.send(parcel, page)
        except ways.MovedError:
            files.remove_tree(ledger.leg(plan.run, leg))  # it never happened: the other side says so
            raise
        except RelayError as error:
            found = _seen(parcel) if isinstance(error, ways.UnknownError) else None
            if found is None:
                return sealing.failed(ledger, plan, chain, start, approval, error.message, error.hint)
            out = found
        return sealing.confirmed(ledger, plan, chain, start, out, target)


def _seen(parcel: Parcel) -> Out | None:
    """Look once whether it went out though its answer was lost; None where nobody can say."""
    try:
        return ways.of(parcel.plan.ship).look(parcel)
    except RelayError:
        return None


def _there(repo: Repository, pins: Pins, onto: str) -> bool:
    """Tell whether every file that was changed is there already as it was accepted: merged by somebody's own hand."""
    listed = ("diff-tree", "-r", "--no-renames", "--name-only", "-z")
    changed, other = (
        set(git.run(repo, *listed, *pair, "--").split(b"\0")) - {b""}
        for pair in ((pins.base, pins.head), (pins.head, onto))
    )
    return not changed & other


def finish(ledger: Ledger, plan: Plan, start: Start) -> Receipt:
    """Seal a shipment that was cut short, after looking whether it went out; what was only prepared is taken back."""
    chain, way, pins = ledgers.receipts(ledger, plan.run), ways.of(plan.ship), sealing.pins(start)
    parcel = Parcel(
        ledger=ledger,
        plan=plan,
        chain=chain,
        leg=start.leg,
        target=start.nonce,
        commit=pins.head,
        now=pins.base,
    )
    effect = {"outcome": "interrupted", "why": "it was cut short, and nothing went out"}
    try:
        out = way.look(parcel)
        if out is not None:
            return sealing.confirmed(ledger, plan, chain, start, out, start.nonce)
        left = way.withdraw(parcel)
        effect["why"] += f"; {left}" * bool(left)
    except (ways.UnknownError, ways.RefusedError) as error:
        why = f"it was cut short, and nobody can say whether it went out: {error.message}"
        effect = {"outcome": "failed", "why": why}
    return sealing.seal(ledger, plan, chain, start, effect | {"into": start.nonce, "commit": pins.head})


def published(ledger: Ledger, plan: Plan) -> None:
    """Let the receipts of a run that is out be had elsewhere, where that is wanted and did not come about yet."""
    publish.write(ledger, plan)


def _about(chain: Sequence[Receipt], approval: Receipt) -> Sequence[Receipt]:
    """Return the receipts up to what was approved: those of the leg that a person named, else all."""
    named = (approval.effect or {}).get("leg")
    return _upto(chain, named) if named else chain


def _by(approval: Receipt) -> str | None:
    """Return who took the responsibility for what nothing accepted."""
    return approval.by if (approval.effect or {}).get("leg") else None


def _earlier(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], approval: Receipt) -> Out | None:
    """Return what an earlier shipment of this very change left out there, if it is there still.

    Only receipts say so, and only those since the task itself last changed: a ref could be anybody's.
    """
    found: list[Receipt] = []
    head, target = "", (approval.effect or {})["into"]
    for sealed in chain:
        effect = sealed.effect or {}
        if sealed.act in {"reject", "rebase"}:
            found = []
        elif sealed.act == "approve":
            head = sealing.pins(sealed).head
        elif (
            sealed.act == "ship"
            and "commit" in effect
            and (head, effect["into"]) == (sealing.pins(approval).head, target)
        ):
            found.append(sealed)
    for sealed in reversed(found):
        commit = (sealed.effect or {})["commit"]
        parcel = Parcel(ledger=ledger, plan=plan, chain=tuple(chain), leg=sealed.leg, target=target, commit=commit)
        try:
            out = ways.of(plan.ship).look(parcel)
        except ways.UnknownError:
            continue  # whoever cannot look cannot send either, and says why
        if out is not None and out.outcome != "failed":
            return out
    return None


def _commit(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], approval: Receipt, tree: str, now: str) -> str:
    """Make the one commit that goes out, or take the run's own where that is the method, or none where all is there."""
    method, repo, pins = plan.ship.method, ledger.repo, sealing.pins(approval)
    if method != "merge-commit" and tree == git.tree(repo, now):
        return now
    if method == "fast-forward" and now == pins.base:
        return pins.head
    parents = [now, pins.head] if method == "merge-commit" else [now]
    return signing.commit(repo, tree, parents, words.message(ledger, plan, chain, _by(approval)))

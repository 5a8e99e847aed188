"""What becomes of an open proposal: it is looked after until it is merged or closed; who rejects it closes it."""

from collections.abc import Mapping, Sequence

from relay.errors import Exit, RelayError
from relay.host import files, git, term
from relay.record import ledger as ledgers
from relay.record import receipt
from relay.record.ledger import Ledger
from relay.terms import Pins, Plan, Receipt
from relay.ways import base, pr, sealing
from relay.ways.base import Parcel, UnknownError


def follow(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], *, verify: bool = True) -> Receipt | None:
    """Look after an open proposal, under the run's lock; returns what was sealed once it was merged, or closed.

    Without `verify` a merge that `ship.verify` is to confirm is left for somebody who has the time. What others made of
    one that is open is said. `UnknownError` when the forge cannot be asked, or something begun is not sealed yet.
    """
    sent = _sent(chain)
    told = dict(sent.effect or {}) if sent is not None else {}
    if sent is None or told["outcome"] != "proposed":
        return None
    if ledgers.unsealed(ledger, plan.run):
        raise UnknownError(f"something was cut short there; `relay approve {plan.run}` looks what became of it")
    parcel = _parcel(ledger, plan, chain, sent)
    found = pr.view(parcel, told["number"])
    if found.state == "open":
        odd = pr.strays(parcel, found)
        if odd:
            term.say(f"{term.style('warning:', 'yellow')} {plan.run}: {found.url} is open, but {odd}")
        return None
    out = pr.became(parcel, found)
    if out.outcome == "shipped" and plan.ship.verify and not verify:
        return None
    return sealing.confirmed(ledger, plan, chain, None, out, parcel.target)


def withdraw(ledger: Ledger, plan: Plan, chain: Sequence[Receipt]) -> Receipt | None:
    """Close the open proposal of a run that a person rejects, under the run's lock; returns what was sealed, if any.

    One that was merged already is sealed as `follow` does. `RelayError` (exit 5) when the forge cannot be asked, or
    does not close it: until it does, it could be merged at any moment.
    """
    sent = _sent(chain)
    if sent is None or plan.ship.method != "pr":
        return None
    told, parcel = dict(sent.effect or {}), _parcel(ledger, plan, chain, sent)
    try:
        found = pr.view(parcel, told["number"]) if "number" in told else pr.find(parcel)
    except RelayError as error:
        if told["outcome"] == "proposed":
            raise _stays(plan, told, error) from None
        term.say(f"nobody can say now whether a proposal of it is open: {error.message}")
        return None
    if found is None or (found.state == "closed" and not found.armed):
        return None
    if found.state == "merged":
        return sealing.confirmed(ledger, plan, chain, None, pr.became(parcel, found), parcel.target)
    tree, leg = git.tree(ledger.repo, parcel.commit), ledgers.next_leg_id(ledger, plan.run, "ship")
    pins = Pins(head=parcel.commit, base=sent.base, tree=tree, receipt=receipt.sha256(sent))
    start = base.intent(parcel, leg, pins, sent.start)
    git.put_ref(ledger.repo, f"refs/relay/{plan.run}/{leg}", parcel.commit)
    ledgers.begin(ledger, start)
    try:
        found = pr.close(parcel, found)
    except RelayError as error:
        files.remove_tree(ledger.leg(plan.run, leg))  # whoever looks next sees what became of it
        raise _stays(plan, told, error) from None
    if found.state == "merged":
        return sealing.confirmed(ledger, plan, chain, start, pr.became(parcel, found), parcel.target)
    why = f"{found.url} was closed, since a person rejects it"
    more = {"outcome": "withdrawn", "number": str(found.number), "url": found.url, "why": why}
    return sealing.seal(ledger, plan, chain, start, {**told, **more})


def _stays(plan: Plan, told: Mapping[str, str], error: RelayError) -> RelayError:
    """Say why a run is not rejected: what is out there cannot be taken back now."""
    url = told.get("url", "its proposal")
    return RelayError(
        f"run `{plan.run}` is not rejected, since {url} may still be merged: {error.message}",
        hint=error.hint or f"close it there, or try again: relay reject {plan.run} --why TEXT",
        exit_code=Exit.AGENT,
    )


def _sent(chain: Sequence[Receipt]) -> Receipt | None:
    """Return the newest shipment, if something of it may be open out there: since then nobody rejected it."""
    for sealed in reversed(chain):
        if sealed.act == "reject":
            break
        if sealed.act == "ship":
            effect = sealed.effect or {}
            return sealed if effect.get("outcome") in {"proposed", "failed"} and "commit" in effect else None
    return None


def _parcel(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], sent: Receipt) -> Parcel:
    """Return what a shipment sent."""
    told = dict(sent.effect or {})
    into, commit = told["into"], told["commit"]
    return Parcel(ledger=ledger, plan=plan, chain=tuple(chain), leg=sent.leg, target=into, commit=commit)

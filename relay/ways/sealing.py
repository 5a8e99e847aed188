"""How a shipment is sealed: confirmed by the person's own commands, failed with its reason, or cut short."""

from collections.abc import Sequence

from relay import acts, confine, weigh
from relay.errors import Exit, RelayError
from relay.host import checks
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Check, Pins, Plan, Receipt, Start
from relay.ways import deploy, publish, signing
from relay.ways.base import Out


def pins(about: Receipt | Start) -> Pins:
    """Return what an act is pinned to; one without pins was not written by Relay."""
    if about.pins is None:
        raise RelayError(f"act `{about.leg}` pins nothing", exit_code=Exit.GATE)
    return about.pins


def confirmed(
    ledger: Ledger, plan: Plan, chain: Sequence[Receipt], start: Start | None, out: Out, target: str
) -> Receipt:
    """Run `ship.verify` on what went out: deployed and confirmed are two things."""
    effect = {"outcome": out.outcome, "commit": out.commit, "into": target, **out.told}
    if start is not None and start.base == out.commit and "why" not in effect:
        effect["why"] = "the branch held this tree already, so no commit was made"
    elif signing.signed(ledger.repo, out.commit):
        effect["signed"] = "yes"
    if out.outcome != "shipped" or not plan.ship.verify:
        return seal(ledger, plan, chain, start, effect, out.checks)
    leg = start.leg if start is not None else ledgers.next_leg_id(ledger, plan.run, "ship")
    found: list[Check] = []
    why = ""
    try:
        with weigh.checkout(ledger, plan, leg, out.commit, "shipped") as at:
            env, seconds = deploy.environment(plan), plan.ship.minutes * 60
            # What a person approved is theirs to run; what nobody looked at stays where it was.
            cell = confine.as_setup(at.cell, plan) if plan.ship.approval == "auto" else None
            for command in plan.ship.verify:
                ran = checks.run(command, at.folder, by="ship.verify", env=env, seconds=seconds, cell=cell)
                found.append(ran[0])
    except RelayError as error:  # it is out, whatever keeps Relay from looking
        why = error.message
    red = [check for check in found if check.exit != 0]
    why = f"`{red[0].command}` exited {red[0].exit}" if red else why
    if why:
        why = f"it went out as `{out.commit[:12]}`, but {why}"
        effect = {**effect, "outcome": "unconfirmed", "why": why}
    return seal(ledger, plan, chain, start, effect, (*out.checks, *found))


def failed(
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    start: Start | None,
    approval: Receipt,
    why: str,
    hint: str = "",
) -> Receipt:
    """Seal a shipment that did not go out, with the reason, and the way to mend it where that is known."""
    effect = {"outcome": "failed", "why": f"{why} ({hint})" if hint else why, "into": (approval.effect or {})["into"]}
    if start is not None:
        effect["commit"] = pins(start).head
    return seal(ledger, plan, chain, start, effect)


def seal(
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    start: Start | None,
    effect: dict[str, str],
    found: tuple[Check, ...] = (),
) -> Receipt:
    """Seal what became of a shipment, and let its notes and receipts be had elsewhere, where that is wanted."""
    sealed = acts.seal(
        ledger,
        plan,
        chain,
        "ship",
        leg=start.leg if start is not None else None,
        pins=start.pins if start is not None else None,
        effect=effect,
        by="relay",
        started=start.started if start is not None else None,
        checks=found,
    )
    if effect["outcome"] in {"shipped", "proposed"}:
        publish.write(ledger, plan)
    return sealed

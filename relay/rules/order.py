"""What a leg is ordered to do: where it starts, whose notes it reads, where a judge sends back to, what it may use."""

from collections.abc import Mapping, Sequence
from typing import Final

from relay.rules import history as past
from relay.rules.steps import Go
from relay.terms import Phase, Plan, Receipt

UNITS: Final = {"usd": "", "minutes": " min", "tokens": " tokens", "turns": " turns"}
"""What a budget bounds, and what stands behind its amounts."""


def go(plan: Plan, receipts: Sequence[Receipt], phase: str, round_: int, because: str, offer: str | None = None) -> Go:
    """Make the order for a leg: where it starts, and whose notes it reads.

    A work leg also reads the leg that led to it; a judge reads what its phase says and nothing else. A void leg leads
    to nothing. A phase that has to be read and never ran is named all the same, so that the gate refuses.
    """
    valid = [receipt for receipt in receipts if receipt.ended_by != "breach"]
    reads: list[str] = []
    for name in plan.phase(phase).reads:
        wanted = name.removesuffix("?")
        if (found := _newest(valid, wanted)) is not None:
            reads.append(found.leg)
        elif wanted == name != "spec":
            reads.append(f"?-{wanted}")
    cause = past.last_leg(valid)
    if plan.phase(phase).kind == "work" and cause is not None and cause.leg not in reads:
        reads.append(cause.leg)
    return Go(
        phase=phase,
        round=round_,
        turn=past.turn(receipts, phase),
        start=past.head(plan, receipts),
        base=past.base(plan, receipts),
        reads=tuple(reads),
        because=because,
        offer=offer,
    )


def _newest(valid: Sequence[Receipt], phase: str) -> Receipt | None:
    """Return the newest leg of a phase; one that replied is preferred to one that was cut."""
    legs = [receipt for receipt in valid if receipt.phase == phase]
    replied = [leg for leg in legs if leg.ended_by == "reply"]
    return next(reversed(replied or legs), None)


def taken(plan: Plan, receipts: Sequence[Receipt]) -> Go:
    """Return the order for the leg that the waiting offer is about, once a person's reply is there."""
    offer = past.offer(receipts)
    if offer is None:
        raise LookupError("no offer waits for a reply")
    return go(plan, receipts, (offer.effect or {})["phase"], offer.round, f"a person took `{offer.leg}`", offer.leg)


def back_to(plan: Plan, phase: Phase) -> str:
    """Return the phase that a judge sends back to: its own word, else the nearest work phase before it.

    A relay may end with work; what a person rejects there goes back to that very phase.
    """
    upto = plan.phases[: plan.phases.index(phase) + 1]
    return phase.back_to or next(other.name for other in reversed(upto) if other.kind == "work")


def last_work(plan: Plan) -> Phase:
    """Return the last work phase of the relay."""
    return next(phase for phase in reversed(plan.phases) if phase.kind == "work")


def part(plan: Plan, phase: str) -> float:
    """Return the share of the budget that the legs of this phase may use up."""
    return 1 - plan.budget.reserve if plan.phase(phase).kind == "work" else 1.0


def remaining(plan: Plan, receipts: Sequence[Receipt], phase: str) -> dict[str, float | None]:
    """Return what a leg of this phase may still use of its run's budget, by name; None is no limit.

    Work phases leave `budget.reserve` for the judges after them.
    """
    spent, share = past.spent(receipts), part(plan, phase)

    def left(name: str) -> float | None:
        cap: float | None = getattr(plan.budget, name)
        return None if cap is None else (cap + past.extended(receipts, name)) * share - spent[name]

    return {name: left(name) for name in UNITS}


def used_up(plan: Plan, receipts: Sequence[Receipt], phase: str, now: Mapping[str, float]) -> str:
    """Say which bound of the run leaves a leg of this phase nothing once it used up `now`, too; "" where none does."""
    left, spent, share = remaining(plan, receipts, phase), past.spent(receipts), part(plan, phase)
    for name, more in left.items():
        if more is not None and more <= now.get(name, 0):
            given = (more + spent[name]) / share
            judges = " and ".join(other.name for other in plan.phases if other.kind == "judge") or "judges"
            kept = f", of which {amount(name, given - given * share)} is kept for {judges}" if share < 1 else ""
            used = amount(name, spent[name] + now.get(name, 0))
            return f"the run spent {used} of its budget of {amount(name, given)}{kept}"
    return ""


def amount(name: str, value: float) -> str:
    """Write an amount of what a budget bounds, by its name there; money in cents, and finer where it is few of them."""
    digits = 4 if 0 < value < 0.1 and round(value, 2) != round(value, 4) else 2  # noqa: PLR2004 - that is few
    return f"${value:.{digits}f}" if name == "usd" else f"{round(value, digits):.12g}{UNITS[name]}"

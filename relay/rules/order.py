"""What a leg is ordered to do: where it starts, whose notes it reads, where a judge sends back to, what it may use."""

from collections.abc import Sequence

from relay.rules import history as past
from relay.rules.steps import Go
from relay.terms import Phase, Plan, Receipt, Struct


def go(plan: Plan, receipts: Sequence[Receipt], phase: str, round_: int, because: str, offer: str | None = None) -> Go:
    """Make the order for a leg: where it starts, and whose notes it reads.

    A work leg also reads the leg that led to it; a judge reads what its phase says and nothing else. A void leg leads
    to nothing. A phase that has to be read and never ran is named all the same, so that the gate refuses.
    """
    valid = [receipt for receipt in receipts if receipt.ended_by != "breach"]
    reads: list[str] = []
    for name in plan.phase(phase).reads:
        wanted = name.removesuffix("?")
        found = _newest(valid, wanted)
        if found is not None:
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
    if phase.back_to:
        return phase.back_to
    upto = plan.phases[: plan.phases.index(phase) + 1]
    return next(other.name for other in reversed(upto) if other.kind == "work")


def last_work(plan: Plan) -> Phase:
    """Return the last work phase of the relay."""
    return next(phase for phase in reversed(plan.phases) if phase.kind == "work")


class Left(Struct, frozen=True, kw_only=True):
    """What a leg may still use of its run's budget; None is no limit."""

    usd: float | None
    minutes: float | None
    tokens: float | None
    turns: float | None

    @property
    def none(self) -> bool:
        """Tell whether one of them is used up."""
        return any(left is not None and left <= 0 for left in (self.usd, self.minutes, self.tokens, self.turns))


def remaining(plan: Plan, receipts: Sequence[Receipt], phase: str) -> Left:
    """Return what a leg of this phase may still use; work phases leave `budget.reserve` for the judges after them."""
    spent = past.spent(receipts)
    share = 1 - plan.budget.reserve if plan.phase(phase).kind == "work" else 1.0

    def left(name: str) -> float | None:
        cap: float | None = getattr(plan.budget, name)
        return None if cap is None else (cap + past.extended(receipts, name)) * share - spent[name]

    return Left(usd=left("usd"), minutes=left("minutes"), tokens=left("tokens"), turns=left("turns"))

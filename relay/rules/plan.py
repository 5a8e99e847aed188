"""What comes next: a pure function of the frozen plan and the receipts. The table of DESIGN 4b, row by row."""

from collections.abc import Sequence
from typing import Final

from relay.errors import Exit
from relay.rules import history as past
from relay.terms import Outcome, Phase, Plan, Receipt, Struct

RETRIES: Final = 2
"""How often Relay itself sends a work leg back that changed nothing or turned a check red."""

CUT_LIMIT: Final = 3
"""How many legs in a row may be cut short before a person is asked."""

EXIT: Final = {
    "question": Exit.HUMAN,
    "no-change": Exit.HUMAN,
    "no-reply": Exit.HUMAN,
    "check-red": Exit.HUMAN,
    "max-legs": Exit.HUMAN,
    "cap": Exit.HUMAN,
    "stalemate": Exit.HUMAN,
    "inconclusive": Exit.HUMAN,
    "offer": Exit.HUMAN,
    "ship": Exit.HUMAN,
    "budget": Exit.HUMAN,
    "stuck": Exit.HUMAN,
    "setup": Exit.HUMAN,
    "interrupted": Exit.HUMAN,
    "crash": Exit.AGENT,
    "overload": Exit.AGENT,
    "auth": Exit.AGENT,
    "refusal": Exit.AGENT,
    "timeout": Exit.AGENT,
    "idle": Exit.AGENT,
    "memory": Exit.AGENT,
    "output": Exit.AGENT,
    "disk": Exit.AGENT,
    "breach": Exit.BREACH,
}
"""Every reason to ask a person, and the exit code that tells a service from an agent from a question."""


class Go(Struct, frozen=True, kw_only=True):
    """Run a leg of this phase. `start` is its commit, `reads` the legs whose notes cross, `because` the cause."""

    phase: str
    round: int
    turn: int
    start: str
    base: str
    reads: tuple[str, ...]
    because: str
    offer: str | None = None


class Wait(Struct, frozen=True, kw_only=True):
    """Quota is used up until that time; then go."""

    until: str
    go: Go


class Human(Struct, frozen=True, kw_only=True):
    """A person is needed: the reason (a key of `EXIT`), the leg it is about, and a sentence."""

    reason: str
    leg: str
    text: str


class Accepted(Struct, frozen=True, kw_only=True):
    """Every phase is through: `receipt` is the acceptance that an approval pins."""

    leg: str


class ShipIt(Struct, frozen=True, kw_only=True):
    """A person approved; `approval` is the act that pins what goes out."""

    approval: str


class End(Struct, frozen=True, kw_only=True):
    """Nothing is left to do."""

    outcome: Outcome


Next = Go | Wait | Human | Accepted | ShipIt | End


def next_leg(plan: Plan, receipts: Sequence[Receipt]) -> Next:
    """Say what comes next, from the newest receipt; counters look back no further than the last act that renews them."""
    history = past.standing(receipts)
    if not history:
        return go(plan, receipts, plan.phases[0].name, 1, "the run begins")
    newest = history[-1]
    step = _after_act(plan, receipts, history) if newest.kind == "act" else _after_leg(plan, receipts, history)
    return _within_budget(plan, receipts, newest, step)


def outcome(step: Next) -> Outcome:
    """Name how a run stands, given what comes next."""
    match step:
        case Wait():
            return "waiting"
        case Human():
            return "needs-human"
        case Accepted():
            return "accepted"
        case End():
            return step.outcome
        case _:
            return "open"


def standing(plan: Plan, step: Next) -> str:
    """Name the outcome as it is told: a run that nothing could check says so wherever its success is named."""
    stands = outcome(step)
    return f"{stands} (unchecked)" if plan.unchecked and stands in {"accepted", "proposed", "shipped"} else stands


def go(plan: Plan, receipts: Sequence[Receipt], phase: str, round_: int, because: str, offer: str | None = None) -> Go:
    """Make the order for a leg: where it starts, and whose notes it reads.

    A work leg also reads the leg that led to it; a judge reads what its phase says and nothing else.
    """
    reads: list[str] = []
    for name in plan.phase(phase).reads:
        wanted = name.removesuffix("?")
        if wanted != "spec":
            found = _newest(receipts, wanted)
            if found is not None:
                reads.append(found.leg)
            elif not name.endswith("?"):
                reads.append(f"?-{wanted}")
    cause = past.last_leg(receipts)
    if plan.phase(phase).kind == "work" and cause is not None and cause.leg not in reads and cause.ended_by != "breach":
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


def _newest(receipts: Sequence[Receipt], phase: str) -> Receipt | None:
    """Return the newest sealed leg of a phase that is not void; one that replied is preferred to one that was cut."""
    legs = [receipt for receipt in receipts if receipt.phase == phase and receipt.ended_by != "breach"]
    replied = [leg for leg in legs if leg.ended_by == "reply"]
    return (replied or legs or [None])[-1]


def _after_leg(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt]) -> Next:  # noqa: PLR0911 - one return a row
    """Rows that hold for every leg, then those of its kind."""
    newest = history[-1]
    phase = plan.phase(newest.phase or "")
    again = go(plan, receipts, phase.name, newest.round, f"`{newest.leg}` ended by `{newest.ended_by}`")
    if newest.ended_by in past.CUT:
        if past.in_a_row(history, past.CUT) >= CUT_LIMIT:
            return Human(reason=newest.ended_by or "", leg=newest.leg, text=f"{CUT_LIMIT} legs in a row were cut short")
        return again
    if newest.ended_by == "quota":
        return Wait(until=newest.until or newest.ended, go=again)
    if newest.ended_by in past.RETRIED_BY_HAND:
        text = newest.problem or "; ".join(newest.breaches) or f"ended by `{newest.ended_by}`"
        return Human(reason=newest.ended_by or "", leg=newest.leg, text=text)
    if newest.ended_by == "reply" and (newest.asks or newest.status == "blocked" or newest.verdict == "blocked"):
        return Human(reason="question", leg=newest.leg, text="the agent asks")
    if phase.kind == "work":
        return _after_work(plan, receipts, history, phase)
    return _after_judge(plan, receipts, history, phase)


def _after_work(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt], phase: Phase) -> Next:
    """Rows of a work leg that ended by itself."""
    newest = history[-1]
    legs = past.legs_since_renewal(history, phase.name)
    again = go(plan, receipts, phase.name, newest.round, f"`{newest.leg}` ended by `{newest.ended_by}`")
    if newest.ended_by == "handover":
        if sum(leg.ended_by in {"reply", "handover"} for leg in legs) >= phase.max_legs:
            return Human(
                reason="max-legs", leg=newest.leg, text=f"{phase.max_legs} legs of `{phase.name}` were not enough"
            )
        return again
    fault = work_fault(phase, history)
    if not fault:
        return _onward(plan, receipts, newest)
    if sum(leg.ended_by in {"reply", "no-reply"} for leg in legs) > RETRIES:
        return Human(reason=fault, leg=newest.leg, text=_FAULTS[fault])
    return go(plan, receipts, phase.name, newest.round, _FAULTS[fault])


_FAULTS: Final = {
    "no-reply": "the agent ended without a reply",
    "no-change": "the agent says done, but nothing changed and not every criterion holds",
    "check-red": "a check is red that was green at the base",
}


def work_fault(phase: Phase, history: Sequence[Receipt]) -> str:
    """Say what contradicts the claim `done` of the newest work leg, or an empty string."""
    newest = history[-1]
    if newest.ended_by == "no-reply":
        return "no-reply"
    if phase.done == "trust":
        return ""
    if any(check.newly_red for check in newest.checks):
        return "check-red"
    produced = newest.document if phase.boundary == "verify-only" else past.progressed(history)
    holds = bool(newest.criteria) and all(criterion.met for criterion in newest.criteria)
    return "" if produced or holds else "no-change"


def _after_judge(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt], phase: Phase) -> Next:
    """Rows of a judge that ended by itself."""
    newest = history[-1]
    if newest.verdict == "approve":
        return _onward(plan, receipts, newest)
    if newest.verdict == "revise":
        stuck = past.stalemate(history, phase.name)
        if stuck:
            return Human(reason="stalemate", leg=newest.leg, text=f"{', '.join(stuck)} survived two repairs")
        used, allowed = len(past.revisions(history, phase.name)), phase.rounds + past.granted(history, phase.name)
        if used >= allowed:
            return Human(reason="cap", leg=newest.leg, text=f"{used} of {allowed} rounds of `{phase.name}` are used up")
        return go(plan, receipts, back_to(plan, phase), newest.round + 1, f"`{newest.leg}` asks for a revision")
    legs = past.legs_since_renewal(history, phase.name)
    if sum(leg.verdict == "inconclusive" for leg in legs) > 1:
        text = newest.problem or "the verdict cannot be derived"
        return Human(reason="inconclusive", leg=newest.leg, text=f"inconclusive twice: {text}")
    return go(plan, receipts, phase.name, newest.round, f"`{newest.leg}` was inconclusive")


def back_to(plan: Plan, phase: Phase) -> str:
    """Return the phase that a judge sends back to: its own word, else the nearest work phase before it."""
    if phase.back_to:
        return phase.back_to
    before = plan.phases[: plan.phases.index(phase)]
    return next(other.name for other in reversed(before) if other.kind == "work")


def last_work(plan: Plan) -> Phase:
    """Return the last work phase of the relay."""
    return next(phase for phase in reversed(plan.phases) if phase.kind == "work")


def _onward(plan: Plan, receipts: Sequence[Receipt], newest: Receipt) -> Next:
    """Go to the next phase; after the last one the run is accepted."""
    index = [phase.name for phase in plan.phases].index(newest.phase or "") + 1
    if index == len(plan.phases):
        return Accepted(leg=newest.leg)
    return go(plan, receipts, plan.phases[index].name, newest.round, f"`{newest.leg}` is through")


def _after_act(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt]) -> Next:  # noqa: PLR0911 - one return a row
    """Rows of acts."""
    newest, effect = history[-1], history[-1].effect or {}
    before = past.last_leg(history)
    same = before.phase if before is not None and before.phase else plan.phases[0].name
    match newest.act:
        case "stop":
            return End(outcome="stopped")
        case "offer":
            return Human(reason="offer", leg=newest.leg, text=f"`{effect['phase']}` waits for a person's reply")
        case "reject" if effect.get("close"):
            return End(outcome="not-accepted")
        case "reject":
            return go(plan, receipts, effect["back_to"], newest.round + 1, "a person rejected it")
        case "rebase":
            return _after_rebase(plan, receipts, newest)
        case "approve":
            return ShipIt(approval=newest.leg)
        case "ship":
            if effect["outcome"] in {"shipped", "proposed"}:
                return End(outcome="shipped" if effect["outcome"] == "shipped" else "proposed")
            return Human(reason="ship", leg=newest.leg, text=effect.get("why", "shipping failed"))
        case "extend":
            return _resumed(plan, receipts, history)
        case "answer" if before is not None and before.verdict == "revise":
            return go(plan, receipts, back_to(plan, plan.phase(same)), newest.round + 1, "a person answered")
        case "answer":
            return go(plan, receipts, same, newest.round, "a person answered")
        case _:
            return _resumed(plan, receipts, history)


def taken(plan: Plan, receipts: Sequence[Receipt]) -> Go:
    """Return the order for the leg that the newest offer is about, once a person's reply is there."""
    offer = past.standing(receipts)[-1]
    phase = (offer.effect or {})["phase"]
    return go(plan, receipts, phase, offer.round, f"a person took `{offer.leg}`", offer.leg)


def _after_rebase(plan: Plan, receipts: Sequence[Receipt], newest: Receipt) -> Next:
    """Go on from a new base: the judges look again; where the patch did not apply, the work phase does."""
    work = last_work(plan)
    if (newest.effect or {}).get("conflict"):
        return go(plan, receipts, work.name, newest.round + 1, "the base moved and the change conflicts with it")
    judges = plan.phases[plan.phases.index(work) + 1 :]
    if not judges:
        return Accepted(leg=newest.leg)
    return go(plan, receipts, judges[0].name, newest.round + 1, "the base moved")


def _resumed(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt]) -> Next:
    """After `go` and `extend`: what was refused before is tried again, and nothing else is skipped."""
    index = max((i for i, receipt in enumerate(history) if receipt.act not in {"go", "extend"}), default=-1)
    if index < 0:
        return go(plan, receipts, plan.phases[0].name, 1, "a person resumed")
    earlier, newest = history[: index + 1], history[index]
    if newest.act == "ship" and (newest.effect or {}).get("outcome") in {"failed", "unconfirmed"}:
        return ShipIt(approval=next(receipt.leg for receipt in reversed(earlier) if receipt.act == "approve"))
    if newest.act is not None:
        return _after_act(plan, receipts, earlier)
    step = _after_leg(plan, receipts, earlier)
    if not isinstance(step, Human) or step.reason == "question":
        return step
    phase = plan.phase(newest.phase or "")
    if newest.verdict != "revise":
        return go(plan, receipts, phase.name, newest.round, "a person resumed")
    if len(past.revisions(history, phase.name)) >= phase.rounds + past.granted(history, phase.name):
        return step
    return go(plan, receipts, back_to(plan, phase), newest.round + 1, "a person granted a round")


def _within_budget(plan: Plan, receipts: Sequence[Receipt], newest: Receipt, step: Next) -> Next:
    """Refuse a leg that the budget no longer covers."""
    if not isinstance(step, Go):
        return step
    usd, minutes = remaining(plan, receipts, step.phase)
    if (usd is not None and usd <= 0) or (minutes is not None and minutes <= 0):
        return Human(reason="budget", leg=newest.leg, text="the budget is used up")
    return step


def remaining(plan: Plan, receipts: Sequence[Receipt], phase: str) -> tuple[float | None, float | None]:
    """Return the dollars and minutes that a leg of this phase may still use; None is no limit.

    Work phases leave `budget.reserve` for the judges after them.
    """
    cost, minutes = past.spent(receipts)
    effects = [receipt.effect or {} for receipt in receipts if receipt.act == "extend"]
    share = 1 - plan.budget.reserve if plan.phase(phase).kind == "work" else 1.0
    usd_cap, minutes_cap = plan.budget.usd, plan.budget.minutes
    usd = None
    if usd_cap is not None:
        usd = (usd_cap + sum(float(effect.get("usd", "0")) for effect in effects)) * share - cost / 1_000_000
    left = None
    if minutes_cap is not None:
        left = (minutes_cap + sum(float(effect.get("minutes", "0")) for effect in effects)) * share - minutes
    return usd, left

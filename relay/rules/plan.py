"""What comes next: a pure function of the frozen plan and the receipts. The table of DESIGN 4b, row by row."""

from collections.abc import Sequence
from typing import Final

from relay.rules import history as past
from relay.rules.order import back_to, go, last_work, remaining, taken, used_up
from relay.rules.steps import EXIT, Accepted, End, Go, Human, Next, ShipIt, Wait, outcome, standing
from relay.terms import Phase, Plan, Receipt

__all__ = [
    "EXIT",
    "Accepted",
    "End",
    "Go",
    "Human",
    "Next",
    "ShipIt",
    "Wait",
    "back_to",
    "go",
    "next_leg",
    "outcome",
    "past",
    "receiver",
    "remaining",
    "standing",
    "taken",
]

RETRIES: Final = 2
"""How often Relay itself sends a work leg back that changed nothing or turned a check red."""

REBASE_LIMIT: Final = 3
"""How often a run that approves itself is put onto a base that moved before a person is asked."""

CUT_LIMIT: Final = 3
"""How many legs in a row may be cut short before a person is asked."""

SHOWN: Final = 10
"""How many findings are named where a person is asked; `relay show RUN findings` has them all."""


def next_leg(plan: Plan, receipts: Sequence[Receipt]) -> Next:
    """Say what comes next, from the newest receipt; counters look back no further than the last act that renews them.

    A leg that the budget no longer covers is refused, also where it would only begin after a wait.
    """
    step = _wanted(plan, receipts)
    order = step.go if isinstance(step, Wait) else step
    if not isinstance(order, Go) or not receipts:
        return step
    if why := used_up(plan, receipts, order.phase, {}):
        return Human(reason="budget", leg=receipts[-1].leg, text=why)
    return step


def receiver(plan: Plan, receipts: Sequence[Receipt]) -> str | None:
    """Name the phase that goes on from here, once what stands in the way is lifted; None where no leg follows."""
    match _wanted(plan, receipts):
        case Go() as order:
            return order.phase
        case Wait() as wait:
            return wait.go.phase
        case Human() if (leg := past.last_leg(receipts)) is not None:
            return back_to(plan, plan.phase(leg.phase or "")) if past.sent_back(leg) else leg.phase
    return None


def _wanted(plan: Plan, receipts: Sequence[Receipt]) -> Next:
    """Say what comes next where money and time are no object."""
    history = past.standing(receipts)
    if not history:
        return go(plan, receipts, plan.phases[0].name, 1, "the run begins")
    return _after(plan, receipts, history)


def _after(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt]) -> Next:  # noqa: PLR0911 - one return a row
    """Find the row of the newest receipt in `history`."""
    newest = history[-1]
    if newest.kind == "act":
        return _after_act(plan, receipts, history)
    if newest.ended_by in past.CUT:
        if past.in_a_row(history, past.CUT) < CUT_LIMIT:
            return _again(plan, receipts, newest)
        return _person(newest, str(newest.ended_by), f"{CUT_LIMIT} legs in a row were cut short")
    if newest.ended_by == "quota":
        return Wait(until=past.resets(newest), go=_again(plan, receipts, newest))
    if newest.ended_by in past.RETRIED_BY_HAND:
        text = "; ".join(newest.breaches) or newest.problem or f"ended by `{newest.ended_by}`"
        return _person(newest, str(newest.ended_by), text)
    if newest.asks or newest.status == "blocked" or newest.verdict == "blocked":
        return _person(newest, "question", "the agent asks")
    return (_after_work if newest.kind == "work" else _after_judge)(plan, receipts, history)


def _again(plan: Plan, receipts: Sequence[Receipt], leg: Receipt, because: str = "") -> Go:
    """Order the same phase again, in the same round."""
    return go(plan, receipts, leg.phase or "", leg.round, because or f"`{leg.leg}` ended by `{leg.ended_by}`")


def _back(plan: Plan, receipts: Sequence[Receipt], leg: Receipt, because: str) -> Go:
    """Order the work that a judge's verdict asks for, in the next round."""
    return go(plan, receipts, back_to(plan, plan.phase(leg.phase or "")), leg.round + 1, because)


def _onward(plan: Plan, receipts: Sequence[Receipt], leg: Receipt) -> Next:
    """Go to the next phase; after the last one the run is accepted."""
    index = [phase.name for phase in plan.phases].index(leg.phase or "") + 1
    if index == len(plan.phases):
        return Accepted(leg=leg.leg)
    return go(plan, receipts, plan.phases[index].name, leg.round, f"`{leg.leg}` is through")


def _person(about: Receipt, reason: str, text: str) -> Human:
    """Ask a person about a leg or an act."""
    return Human(reason=reason, leg=about.leg, text=text)


def _after_work(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt]) -> Next:
    """Rows of a work leg that ended by itself."""
    newest = history[-1]
    phase = plan.phase(newest.phase or "")
    legs = past.legs_since_renewal(history, phase.name)
    if newest.ended_by == "handover":
        if sum(leg.ended_by in {"reply", "handover"} for leg in legs) < phase.max_legs:
            return _again(plan, receipts, newest)
        return _person(newest, "max-legs", f"{phase.max_legs} legs of `{phase.name}` were not enough")
    fault, why = _fault(phase, history, last=phase == plan.phases[-1])
    if not fault:
        return _onward(plan, receipts, newest)
    if sum(leg.ended_by in {"reply", "no-reply"} for leg in legs) <= RETRIES:
        return _again(plan, receipts, newest, why)
    return _person(newest, fault, why)


def _fault(phase: Phase, history: Sequence[Receipt], *, last: bool) -> tuple[str, str]:
    """Say what contradicts the claim `done` of the newest work leg, as a key of `EXIT` and in words, or nothing.

    After the `last` phase no judge comes who would hold the tree against the criteria: there each command of theirs
    has to succeed, whatever changed.
    """
    newest = history[-1]
    if newest.ended_by == "no-reply":
        return "no-reply", "the agent ended without a reply that fits"
    if phase.done == "trust":
        return "", ""
    if any(check.newly_red for check in newest.checks):
        red = ", ".join(f"`{check.command}`" for check in newest.checks if check.newly_red)
        return "check-red", f"a check is red that was green at the base: {red}"
    produced = newest.document if phase.boundary == "verify-only" else past.progressed(history)
    commanded = [criterion for criterion in newest.criteria if criterion.by == "relay"]
    unmet = ", ".join(criterion.id for criterion in commanded if not criterion.met)
    if last and unmet:
        return "check-red", f"not met, and no judge follows: {unmet}"
    if produced or (commanded and not unmet):
        return "", ""
    return "no-change", "the agent says done, but nothing changed and not every criterion holds"


def _after_judge(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt]) -> Next:
    """Rows of a judge that ended by itself; without a verdict it is inconclusive."""
    newest = history[-1]
    phase = plan.phase(newest.phase or "")
    if newest.verdict == "approve":
        return _onward(plan, receipts, newest)
    if newest.verdict == "revise":
        return _after_revise(plan, receipts, history, phase)
    legs = past.legs_since_renewal(history, phase.name)
    if sum(leg.ended_by in past.BY_ITSELF for leg in legs) == 1:
        return _again(plan, receipts, newest, f"`{newest.leg}` was inconclusive")
    open_ones = ", ".join(criterion.id for criterion in newest.criteria if criterion.by == "nobody")
    why = newest.problem or (f"nobody judged {open_ones}" if open_ones else "the verdict cannot be derived")
    return _person(newest, "inconclusive", f"inconclusive twice: {why}")


def _after_revise(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt], phase: Phase) -> Next:
    """Send the work back, unless the rounds have come to an end that is none: a stalemate, or their cap."""
    newest = history[-1]
    stuck, before = past.stalemate(history, phase.name), past.returned(history, phase.name)
    if stuck:
        return _person(newest, "stalemate", f"{_named(history, stuck)} survived two repairs")
    if before:
        text = f"the tree is again the one that `{before}` sent back{_left(history)}"
        return _person(newest, "stalemate", text)
    used, allowed = len(past.revisions(history, phase.name)), phase.rounds + past.granted(history, phase.name)
    if used >= allowed:
        return _person(newest, "cap", f"{used} of {allowed} rounds of `{phase.name}` are used up{_left(history)}")
    return _back(plan, receipts, newest, f"`{newest.leg}` asks for a revision")


def _left(history: Sequence[Receipt]) -> str:
    """Say what the newest verdict leaves open: findings that block, criteria that are not met."""
    newest = history[-1]
    blocking = [finding.id for finding in newest.findings if finding.blocks]
    unmet = [criterion.id for criterion in newest.criteria if not criterion.met]
    parts = [_named(history, blocking)] * bool(blocking) + [f"not met: {', '.join(unmet)}"] * bool(unmet)
    return f"; {'; '.join(parts)}" if parts else ""


def _named(history: Sequence[Receipt], ids: Sequence[str]) -> str:
    """List the first findings, and mark those that a worker disputes."""
    objected, shown = past.disputed(history), ids[:SHOWN]
    names = [f"{one} (disputed)" if one in objected else one for one in shown]
    return ", ".join(names) + (f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else "")


def _after_act(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt]) -> Next:  # noqa: PLR0911 - one return a row
    """Rows of acts."""
    newest, effect = history[-1], history[-1].effect or {}
    match newest.act:
        case "stop":
            return End(outcome="stopped")
        case "offer":
            return _person(newest, "offer", f"`{effect['phase']}` waits for a person's reply")
        case "reject" if effect.get("close"):
            return End(outcome="not-accepted")
        case "reject":
            return go(plan, receipts, effect["back_to"], newest.round + 1, "a person rejected it")
        case "rebase":
            return _after_rebase(plan, receipts, newest)
        case "approve":
            return ShipIt(approval=newest.leg)
        case "ship":
            return _after_ship(history)
        case "answer":
            return _answered(plan, receipts, history)
        case _:
            return _resumed(plan, receipts, history)


def _after_ship(history: Sequence[Receipt]) -> Next:
    """Say what became of a shipment; one that failed, or that nothing confirmed, wants a person.

    One that was cut short before anything went out is sent again by itself, as a leg is.
    """
    newest, effect = history[-1], history[-1].effect or {}
    match effect.get("outcome"):
        case "shipped":
            return End(outcome="shipped")
        case "proposed":
            return End(outcome="proposed")
        case "interrupted" if (approval := past.approval_of_cut(history, CUT_LIMIT)) is not None:
            return ShipIt(approval=approval)
        case _:
            return _person(newest, "ship", effect.get("why", "shipping failed"))


def _after_rebase(plan: Plan, receipts: Sequence[Receipt], newest: Receipt) -> Next:
    """Go on from a new base: the judges look again; where the patch did not apply, the work phase does."""
    work, effect = last_work(plan), newest.effect or {}
    if past.moved_bases(receipts) > REBASE_LIMIT:
        return Human(reason="base", leg=newest.leg, text=f"the base moved {REBASE_LIMIT + 1} times under the run")
    judges = plan.phases[plan.phases.index(work) + 1 :]
    phase = work if effect.get("conflict") or not judges else judges[0]
    return go(plan, receipts, phase.name, newest.round + 1, effect.get("why", "the base moved"))


def _answered(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt]) -> Go:
    """Run the phase again that asked or was stuck; an answer to a verdict that no round was left for grants one."""
    leg = past.last_leg(history)
    if leg is None:
        return go(plan, receipts, plan.phases[0].name, history[-1].round, "a person answered")
    return (_back if past.sent_back(leg) else _again)(plan, receipts, leg, "a person answered")


def _resumed(plan: Plan, receipts: Sequence[Receipt], history: Sequence[Receipt]) -> Next:
    """After `go` and `extend`: what failed is tried again; a question, an offer and a cap want more than that."""
    earlier = past.before_resuming(history)
    if not earlier:
        return go(plan, receipts, plan.phases[0].name, history[-1].round, "a person resumed")
    newest, step = earlier[-1], _after(plan, receipts, earlier)
    match step:
        case Human(reason="question" | "offer"):
            return step
        case Human(reason="ship"):
            approvals = [receipt.leg for receipt in earlier if receipt.act == "approve"]
            return ShipIt(approval=approvals[-1]) if approvals else step
        case Human(reason="cap" | "stalemate"):
            phase = newest.phase or ""
            more = past.granted(history, phase) > past.granted(earlier, phase)
            return _back(plan, receipts, newest, "a person granted a round") if more else step
        case Human():
            return _again(plan, receipts, newest, "a person resumed")
        case _:
            return step

"""The answers that the plan can give, and what each of them means to whoever asked."""

from typing import Final

from relay.errors import Exit
from relay.terms import Outcome, Plan, Struct

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
    "base": Exit.HUMAN,
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
    """Every phase is through: `leg` is the acceptance that an approval pins."""

    leg: str


class ShipIt(Struct, frozen=True, kw_only=True):
    """A person approved; `approval` is the act that pins what goes out."""

    approval: str


class End(Struct, frozen=True, kw_only=True):
    """Nothing is left to do."""

    outcome: Outcome


Next = Go | Wait | Human | Accepted | ShipIt | End


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

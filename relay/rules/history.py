"""What a list of receipts says, in the counts and cuts that the plan decides by."""

from collections.abc import Sequence
from typing import Final

from relay.terms import Plan, Receipt

CUT: Final = frozenset({"interrupted", "crash"})
"""Endings that are nobody's fault: the same phase goes on by itself, three times in a row at most."""

RETRIED_BY_HAND: Final = frozenset(
    {
        "overload",
        "auth",
        "setup",
        "budget",
        "stuck",
        "refusal",
        "timeout",
        "idle",
        "memory",
        "output",
        "disk",
        "breach",
    }
)
"""Endings that a person has to look at before the phase runs again."""

RENEWING: Final = frozenset({"answer", "extend", "reject", "rebase", "go"})
"""Acts after which the counters of a phase start anew, since somebody looked."""


def standing(receipts: Sequence[Receipt]) -> tuple[Receipt, ...]:
    """Return the receipts in number order without each `stop` that a later `go` took back, and without that `go`."""
    kept: list[Receipt] = []
    for receipt in receipts:
        if receipt.act == "go" and kept and kept[-1].act == "stop":
            kept.pop()
        else:
            kept.append(receipt)
    return tuple(kept)


def last_leg(history: Sequence[Receipt]) -> Receipt | None:
    """Return the newest leg, whatever became of it; acts are passed over."""
    return next((receipt for receipt in reversed(history) if receipt.kind != "act"), None)


def head(plan: Plan, receipts: Sequence[Receipt]) -> str:
    """Return the commit that a next leg starts from: that of the newest work leg that is not void, or of a rebase."""
    for receipt in reversed(receipts):
        if receipt.act == "rebase" or (receipt.kind == "work" and receipt.ended_by != "breach"):
            return receipt.head
    return plan.base


def base(plan: Plan, receipts: Sequence[Receipt]) -> str:
    """Return the run's base commit, which only a rebase changes."""
    for receipt in reversed(receipts):
        if receipt.act == "rebase":
            return receipt.base
    return plan.base


def legs_since_renewal(history: Sequence[Receipt], phase: str) -> list[Receipt]:
    """Return the legs of a phase in the present round, since the last act that renews the counters."""
    found: list[Receipt] = []
    newest = history[-1].round if history else 1
    for receipt in reversed(history):
        if receipt.act in RENEWING or receipt.round != newest:
            break
        if receipt.phase == phase:
            found.append(receipt)
    return found[::-1]


def in_a_row(history: Sequence[Receipt], endings: frozenset[str]) -> int:
    """Count the newest receipts that are legs ended in one of these ways, without a break."""
    count = 0
    for receipt in reversed(history):
        if receipt.ended_by not in endings:
            break
        count += 1
    return count


def progressed(history: Sequence[Receipt]) -> bool:
    """Tell whether the newest work leg, with the cut-short ones before it, left another tree than they began with.

    Without the cut-short ones a leg that finds its work already done by a killed predecessor would count as idle.
    """
    newest = history[-1]
    first = newest
    for receipt in reversed(history[:-1]):
        if receipt.kind == "act" and receipt.act in {"go", "answer", "extend"}:
            continue
        if receipt.phase != newest.phase or receipt.ended_by in {"reply", "no-reply", "breach"}:
            break
        first = receipt
    return newest.tree != first.start_tree


def turn(receipts: Sequence[Receipt], phase: str) -> int:
    """Return which turn the next leg of a phase is: 1 and the legs of it that ended by a reply."""
    return 1 + sum(receipt.phase == phase and receipt.ended_by == "reply" for receipt in receipts)


def revisions(history: Sequence[Receipt], phase: str) -> list[Receipt]:
    """Return the verdicts `revise` of a judge since the task itself last changed (a reject or a rebase)."""
    found: list[Receipt] = []
    for receipt in reversed(history):
        if receipt.act in {"reject", "rebase"}:
            break
        if receipt.phase == phase and receipt.ended_by == "reply" and receipt.verdict == "revise":
            found.append(receipt)
    return found[::-1]


def granted(history: Sequence[Receipt], phase: str) -> int:
    """Count the rounds that people granted a judge: one an answer to its `revise`, and what `extend` says."""
    grants = 0
    for index in range(len(history) - 1, -1, -1):
        receipt = history[index]
        if receipt.act in {"reject", "rebase"}:
            break
        before = last_leg(history[:index])
        if receipt.act == "answer" and before is not None and before.phase == phase and before.verdict == "revise":
            grants += 1
        elif receipt.act == "extend" and before is not None and before.phase == phase:
            grants += int((receipt.effect or {}).get("rounds", "0"))
    return grants


def stalemate(history: Sequence[Receipt], phase: str) -> tuple[str, ...]:
    """Return the findings that still block after two repairs, counted since somebody last answered."""
    verdicts: list[Receipt] = []
    for receipt in reversed(history):
        if receipt.act in RENEWING:
            break
        if receipt.phase == phase and receipt.ended_by == "reply" and receipt.verdict == "revise":
            verdicts.append(receipt)
    if len(verdicts) < 3:
        return ()
    blocking = [{finding.id for finding in verdict.findings if finding.blocks} for verdict in verdicts[:3]]
    return tuple(sorted(set.intersection(*blocking)))


def spent(receipts: Sequence[Receipt]) -> tuple[int, float]:
    """Return what all legs cost: micro-dollars and minutes."""
    legs = [receipt for receipt in receipts if receipt.kind != "act"]
    return sum(leg.cost_microusd for leg in legs), sum(leg.seconds for leg in legs) / 60

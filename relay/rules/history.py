"""What a list of receipts says, in the counts and cuts that the plan decides by."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from relay.terms import Plan, Receipt

CUT: Final = frozenset({"interrupted", "crash"})
"""Endings that are nobody's fault: the same phase goes on by itself, three times in a row at most."""

BY_ITSELF: Final = frozenset({"reply", "no-reply", "handover"})
"""Endings that an agent chose, whether or not it gave a reply that fits."""

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

REPAIRS: Final = 2
"""How many repairs a finding may survive before a person is asked."""

SOON: Final = timedelta(minutes=1)
"""The least that a used-up quota is waited for: a reset that is always over would be a loop without a cap."""

LATER: Final = timedelta(minutes=15)
"""How long a used-up quota is waited for where the service does not say when it resets."""


def standing(receipts: Sequence[Receipt]) -> tuple[Receipt, ...]:
    """Return the receipts in number order without each `stop` that a later `go` took back, and without that `go`.

    What a person extended in between stays.
    """
    kept: list[Receipt] = []
    for receipt in receipts:
        stop = len(kept) - 1
        while stop >= 0 and kept[stop].act == "extend":
            stop -= 1
        if receipt.act == "go" and stop >= 0 and kept[stop].act == "stop":
            del kept[stop]
        else:
            kept.append(receipt)
    return tuple(kept)


def before_resuming(history: Sequence[Receipt]) -> Sequence[Receipt]:
    """Return the receipts up to the newest one that is more than a `go` or an `extend`."""
    end = len(history)
    while end and history[end - 1].act in {"go", "extend"}:
        end -= 1
    return history[:end]


def offer(receipts: Sequence[Receipt]) -> Receipt | None:
    """Return the offer that waits for a person's reply, if the run waits for one."""
    earlier = before_resuming(standing(receipts))
    return earlier[-1] if earlier and earlier[-1].act == "offer" else None


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


def approval_of_cut(history: Sequence[Receipt], limit: int) -> str | None:
    """Return the approval that a shipment belongs to which was cut short; None once that happened `limit` times."""
    count = 0
    for receipt in reversed(history):
        if receipt.act == "approve":
            return receipt.leg if count < limit else None
        count += receipt.act == "ship" and (receipt.effect or {}).get("outcome") == "interrupted"
    return None


def moved_bases(receipts: Sequence[Receipt]) -> int:
    """Count the times the base moved under the run since a person last did anything: approving itself is no person."""
    count = 0
    for receipt in reversed(receipts):
        if receipt.act == "rebase":
            count += 1
        elif receipt.act in {"answer", "extend", "reject", "go"} or (
            receipt.act == "approve" and not receipt.by.startswith("relay")
        ):
            break
    return count


def progressed(history: Sequence[Receipt]) -> bool:
    """Tell whether the newest work leg, with the cut-short ones before it, left another tree than they began with.

    Without the cut-short ones a leg that finds its work already done by a predecessor which was killed, or whose
    reply did not fit, would count as idle. A void leg neither counts nor ends the row.
    """
    newest = first = history[-1]
    for receipt in reversed(history[:-1]):
        if receipt.act in {"reject", "rebase"}:
            break
        if receipt.kind == "act" or receipt.ended_by == "breach":
            continue
        if receipt.phase != newest.phase or receipt.ended_by == "reply":
            break
        first = receipt
    return newest.tree != first.start_tree


def resets(leg: Receipt) -> str:
    """Return when a used-up quota is there again: what the service said, where that can be read and lies ahead."""
    ended = datetime.fromisoformat(leg.ended)
    try:
        said = datetime.fromisoformat(leg.until or "")
        until = max(said.astimezone(UTC), ended + SOON) if said.tzinfo else ended + LATER
    except (ValueError, OverflowError):
        until = ended + LATER
    return until.strftime("%Y-%m-%dT%H:%M:%SZ")


def turn(receipts: Sequence[Receipt], phase: str) -> int:
    """Return which turn the next leg of a phase is: 1 and the legs of it that ended by a reply."""
    return 1 + sum(receipt.phase == phase and receipt.ended_by == "reply" for receipt in receipts)


def sent_back(leg: Receipt) -> bool:
    """Tell whether a leg is a judge's verdict `revise`; one that also asks a question has not given it yet."""
    return leg.ended_by == "reply" and leg.verdict == "revise" and not leg.asks


def revisions(history: Sequence[Receipt], phase: str) -> list[Receipt]:
    """Return the verdicts `revise` of a judge since the task itself last changed (a reject or a rebase)."""
    return verdicts(history, phase, frozenset({"reject", "rebase"}))[::-1]


def granted(history: Sequence[Receipt], phase: str) -> int:
    """Count the rounds that people granted a judge: one an answer to its `revise`, and what `extend` says."""
    grants = 0
    for index in range(len(history) - 1, -1, -1):
        receipt = history[index]
        if receipt.act in {"reject", "rebase"}:
            break
        before = last_leg(history[:index]) if receipt.act in {"answer", "extend"} else None
        if before is None or before.phase != phase:
            continue
        grants += sent_back(before) if receipt.act == "answer" else int((receipt.effect or {}).get("rounds", "0"))
    return grants


def verdicts(history: Sequence[Receipt], phase: str, since: frozenset[str] = RENEWING) -> list[Receipt]:
    """Return the verdicts `revise` of a judge since somebody last looked, the newest first."""
    found: list[Receipt] = []
    for receipt in reversed(history):
        if receipt.act in since:
            break
        if receipt.phase == phase and sent_back(receipt):
            found.append(receipt)
    return found


def stalemate(history: Sequence[Receipt], phase: str) -> tuple[str, ...]:
    """Return the findings that still block after two repairs, counted since somebody last looked."""
    found = verdicts(history, phase)[: REPAIRS + 1]
    if len(found) <= REPAIRS:
        return ()
    return tuple(sorted(set.intersection(*({one.id for one in leg.findings if one.blocks} for leg in found))))


def returned(history: Sequence[Receipt], phase: str) -> str:
    """Name the leg that sent back the very tree that is sent back now, after another one in between; else nothing."""
    newest, *earlier = verdicts(history, phase)
    other = next((index for index, leg in enumerate(earlier) if leg.tree != newest.tree), len(earlier))
    return next((leg.leg for leg in earlier[other:] if leg.tree == newest.tree), "")


def disputed(history: Sequence[Receipt]) -> frozenset[str]:
    """Return the ids of all findings that a worker disputes."""
    return frozenset(one.id for receipt in history for one in receipt.disputed)


def extended(receipts: Sequence[Receipt], what: str) -> float:
    """Return by how much people raised the budget of `usd`, `minutes`, `tokens` or `turns`."""
    return sum(float((receipt.effect or {}).get(what, "0")) for receipt in receipts if receipt.act == "extend")


def spent(receipts: Sequence[Receipt]) -> dict[str, float]:
    """Return what all legs used, by the names of the budget; of money, as far as it is known."""
    legs = [receipt for receipt in receipts if receipt.kind != "act"]
    return {
        "usd": sum(leg.cost_microusd or 0 for leg in legs) / 1_000_000,
        "minutes": sum(leg.seconds for leg in legs) / 60,
        "tokens": sum(leg.usage.input + leg.usage.output for leg in legs),
        "turns": sum(leg.usage.turns for leg in legs),
    }

"""A run at a glance: how it stands, a line for each leg and act, criteria, open findings, and what it needs."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from relay import telling
from relay.errors import RelayError
from relay.host import lock, pids, term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import history, steering
from relay.rules import plan as rules
from relay.terms import CriterionResult, Finding, JudgeReply, Plan, Receipt, Struct

BY_HAND: Final = " (by hand, not accepted)"
"""What is said beside the outcome of a run that a person sent out though nothing accepted it."""


class Row(Struct, frozen=True, kw_only=True):
    """One line about a leg or an act; what does not apply is empty."""

    leg: str
    agent: str
    result: str
    changed: str = ""
    findings: str = ""
    score: str = ""
    cost: str = ""
    seconds: str = ""


class Standing(Struct, frozen=True, kw_only=True):
    """How a criterion stands in the newest judgement."""

    id: str
    text: str
    result: CriterionResult


class Open(Struct, frozen=True, kw_only=True):
    """A finding of the newest verdict of a judge; `title` is the judge's own word for it, where its reply is whole."""

    leg: str
    finding: Finding
    title: str = ""


class Glance(Struct, frozen=True, kw_only=True):
    """Everything that `relay show RUN` says; `step` is what comes next, `steers` what its workers touched, by why.

    `forced` says that a person sent out what nothing accepted.
    """

    plan: Plan
    chain: tuple[Receipt, ...]
    step: rules.Next
    outcome: str
    forced: bool
    held: bool
    base: str
    head: str
    needs: str
    rows: tuple[Row, ...]
    judged_by: str
    criteria: tuple[Standing, ...]
    findings: tuple[Open, ...]
    steers: dict[str, list[str]]


def glance(ledger: Ledger, run: str) -> Glance:
    """Read a run and work out how it stands; a broken plan or chain is a `RelayError` that names the file."""
    plan, chain = ledgers.read(ledger, run)
    step = rules.next_leg(plan, chain)
    holder = lock.holder(ledger.lock)
    held = holder is not None and holder.run == run
    judged = next((sealed for sealed in reversed(chain) if sealed.kind == "judge" and sealed.criteria), None)
    return Glance(
        plan=plan,
        chain=chain,
        step=step,
        outcome=rules.standing(plan, step),
        forced=forced(chain, step),
        held=held,
        base=history.base(plan, chain),
        head=history.head(plan, chain),
        needs=needs(step, held=held),
        rows=(*map(_row, chain), *_under_way(ledger, run)),
        judged_by=judged.leg if judged is not None else "",
        criteria=_standings(plan, judged),
        findings=_open(ledger, chain),
        steers=steering.steering(change.path for sealed in chain if sealed.kind == "work" for change in sealed.changed),
    )


def forced(chain: Sequence[Receipt], step: rules.Next) -> bool:
    """Tell whether what went out, or is proposed, was accepted by nothing: a person took the responsibility for it."""
    if not isinstance(step, rules.End) or step.outcome not in {"shipped", "proposed"}:
        return False
    approval = next((sealed for sealed in reversed(chain) if sealed.act == "approve"), None)
    return approval is not None and "accepted" in (approval.effect or {})


def told(outcome: str, *, forced: bool) -> str:
    """Say how a run stands, and of what nothing accepted that it went out by a person's hand alone."""
    return outcome + BY_HAND * forced


def coloured(outcome: str, *, forced: bool) -> str:
    """Say it in its colour; what nothing accepted is no success."""
    return term.style(told(outcome, forced=forced), "yellow") if forced else telling.coloured(outcome)


def near(run: str, text: str) -> str:
    """Name the files of a run by where they stand in its folder: a short line has no room for where that stands."""
    return re.sub(rf"`[^`]*/runs/{re.escape(run)}/", "`", text)


def needs(step: rules.Next, *, held: bool) -> str:
    """Say what a run needs, in a few words; nothing while a loop works on it, or after its end."""
    match step:
        case rules.Human():
            return step.text
        case rules.Wait():
            return f"quota until {step.until}"
        case rules.Accepted():
            return "approval"
        case rules.Go() | rules.ShipIt() if not held:
            return "to be resumed"
        case rules.End(outcome="stopped"):
            return "to be resumed, or left"
        case _:
            return ""


def dollars(microusd: int | None) -> str:
    """Write an amount as people read it; what nobody knows is no nought."""
    return "cost unknown" if microusd is None else f"${microusd / 1_000_000:.2f}"


def duration(seconds: float) -> str:
    """Write a span as people read it: seconds up to two minutes, then minutes."""
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} minutes"  # noqa: PLR2004 - as the line above says


def count(number: int, what: str, many: str = "") -> str:
    """Write a number with its word, in the plural where that is due."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def _row(receipt: Receipt) -> Row:
    """Make the line of a sealed leg or act."""
    if receipt.kind == "act":
        return Row(leg=receipt.leg, agent=receipt.by, result=telling.result_of(receipt))
    added = sum(max(change.added, 0) for change in receipt.changed)
    removed = sum(max(change.removed, 0) for change in receipt.changed)
    blocking = sum(finding.blocks for finding in receipt.findings)
    return Row(
        leg=receipt.leg,
        agent=receipt.agent or "",
        result=telling.result_of(receipt),
        changed=f"{len(receipt.changed)} +{added} -{removed}" if receipt.changed else "",
        findings=f"{len(receipt.findings)}, {blocking} block" if receipt.findings else "",
        score=receipt.score or "",
        cost="" if receipt.cost_microusd == 0 else dollars(receipt.cost_microusd),
        seconds=f"{receipt.seconds:.1f}",
    )


def _under_way(ledger: Ledger, run: str) -> list[Row]:
    """Make a line for each leg that was begun and not sealed: in progress, or cut short by whatever ended Relay."""
    rows = []
    with suppress(RelayError):  # a torn start.json: `verify` names it, and the sealed legs are shown all the same
        for start in ledgers.unsealed(ledger, run):
            result = "in progress" if pids.alive(start.relay) else "cut short"
            rows.append(Row(leg=start.leg, agent=start.phase or start.act or "", result=result))
    return rows


def _standings(plan: Plan, judged: Receipt | None) -> tuple[Standing, ...]:
    """Put the words of the criteria beside what the newest judge's receipt says of them."""
    if judged is None:
        return ()
    texts = {criterion.id: criterion.text for criterion in plan.criteria}
    return tuple(Standing(id=result.id, text=texts.get(result.id, ""), result=result) for result in judged.criteria)


def _open(ledger: Ledger, chain: Sequence[Receipt]) -> tuple[Open, ...]:
    """Collect the findings of each judge's newest verdict, those that block first."""
    newest = {sealed.phase: sealed for sealed in chain if sealed.kind == "judge" and sealed.ended_by == "reply"}
    found = [
        Open(leg=sealed.leg, finding=finding, title=title)
        for sealed in newest.values()
        if sealed.findings
        for finding, title in zip(sealed.findings, titles(ledger, sealed), strict=False)
    ]
    return tuple(sorted(found, key=lambda item: not item.finding.blocks))


def titles(ledger: Ledger, sealed: Receipt) -> list[str]:
    """Return what the judge calls its findings, in order; empty where it names none, or its reply is not whole."""
    from relay.record import evidence

    with suppress(RelayError, OSError):
        answer = evidence.reply_of(ledger, sealed)
        if isinstance(answer, JudgeReply):
            named = [" ".join(claim.title.split()) for claim in answer.findings]
            return named + [""] * (len(sealed.findings) - len(named))
    return [""] * len(sealed.findings)

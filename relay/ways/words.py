"""What a shipment says of itself: the commit's message and the page of a proposal, from the receipts and the reply."""

from collections.abc import Sequence
from typing import Final

from relay.record import evidence
from relay.record.ledger import Ledger
from relay.terms import JudgeReply, Plan, Receipt, WorkReply
from relay.ways import inert
from relay.ways.base import Words

LONGEST: Final = 60_000
"""Characters of a proposal's page; GitHub takes 65,536."""
_SAID: Final = 4_000
"""Characters of what the worker says of its own work."""
_LINE: Final = 300


def message(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], by: str | None = None) -> str:
    """Write the commit's message from the spec and the last reply of a worker, with who reviewed and who accepted.

    `chain` ends where the change was made; `by` is who took the responsibility for a change that nothing accepted.
    """
    outcome = "accepted (unchecked)" if plan.unchecked else ""
    if by is not None:
        outcome = f"not accepted; {inert.line(by)} takes the responsibility"
    trailers = [f"Relay-Run: {plan.run}", *[f"Relay-Outcome: {outcome}"] * bool(outcome)]
    last = plan.phases[-1].name
    for judge in _approving(chain).values():
        word = "Accepted-by" if judge.phase == last and by is None else "Reviewed-by"
        trailers.append(f"{word}: {_who(judge)}")
    parts = [plan.title, inert.message(_summary(ledger, chain), _SAID), "\n".join(trailers)]
    return "\n\n".join(part for part in parts if part) + "\n"


def proposal(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], by: str | None = None) -> Words:
    """Write a proposal: what, why, the criteria, the findings and how they ended, and the cost."""
    parts = [
        inert.page(_summary(ledger, chain), _SAID),
        "## Why\n\n" + inert.quoted(_task(ledger, plan)),
        *_criteria(plan, chain),
        *_findings(ledger, chain),
    ]
    body, made = "\n\n".join(part for part in parts if part), _made(plan, chain, by)
    if len(body) > LONGEST - len(made):
        whole = body[: LONGEST - len(made)].rpartition("\n")[0]
        body = f"{whole}\n\n**Cut here: it was too long for a page.** The whole: `relay trace {plan.run}`"
    return Words(title=" ".join(inert.seen(plan.title).split())[:200], body=f"{body}\n\n{made}\n")


def _approving(chain: Sequence[Receipt]) -> dict[str | None, Receipt]:
    """Return the newest approval of each judge."""
    return {leg.phase: leg for leg in chain if leg.kind == "judge" and leg.verdict == "approve"}


def _summary(ledger: Ledger, chain: Sequence[Receipt]) -> str:
    work = next((leg for leg in reversed(chain) if leg.kind == "work" and leg.ended_by == "reply"), None)
    answer = evidence.reply_of(ledger, work) if work is not None else None
    return answer.summary.strip() if isinstance(answer, WorkReply) else ""


def _task(ledger: Ledger, plan: Plan) -> str:
    """Return the spec's words up to its first list of criteria, without its title."""
    text = (ledger.folder(plan.run) / "spec.md").read_text(encoding="utf-8")
    if text.startswith("+++"):
        text = text.split("+++", 2)[-1]
    lines = [line for line in text.strip().splitlines() if line.lstrip("# ").strip() != plan.title]
    ends = next((number for number, line in enumerate(lines) if line.startswith("#")), len(lines))
    return "\n".join(lines[:ends]).strip() or plan.title


def _criteria(plan: Plan, chain: Sequence[Receipt]) -> list[str]:
    """Make the table of criteria as the newest leg that has them left them."""
    judged = next((leg for leg in reversed(chain) if leg.criteria), None)
    if judged is None:
        return ["No criterion was named: nothing was checked."] if plan.unchecked else []
    texts = {criterion.id: criterion.text for criterion in plan.criteria}
    rows = ["| | criterion | holds | by | exit |", "|---|---|---|---|---|"]
    for result in judged.criteria:
        command = inert.code(result.command, _LINE) if result.command else result.by
        code = "" if result.exit is None else str(result.exit)
        holds = "yes" if result.met else "**no**"
        text = inert.inline(texts.get(result.id, ""), _LINE)
        rows.append(f"| {inert.inline(result.id, _LINE)} | {text} | {holds} | {command} | {code} |")
    return ["## Criteria", "\n".join(rows)]


def _findings(ledger: Ledger, chain: Sequence[Receipt]) -> list[str]:
    """List every finding of the run, and how it ended: in which leg it was seen last, and what followed."""
    last: dict[str, tuple[Receipt, str, str]] = {}
    newest: dict[str | None, Receipt] = {}
    ends: dict[str, str] = {}
    for leg in chain:
        if leg.kind != "judge" or leg.ended_by != "reply":
            continue
        newest[leg.phase] = leg
        answer = evidence.reply_of(ledger, leg)
        titles = [claim.title for claim in answer.findings] if isinstance(answer, JudgeReply) else []
        for finding, title in zip(leg.findings, [*titles, *[""] * len(leg.findings)], strict=False):
            where = f"{finding.severity}, {finding.evidence}, {inert.code(f'{finding.path}:{finding.line}', _LINE)}"
            last[finding.id] = (leg, title, where)
        ends |= {settled.id: settled.how for settled in leg.settled}
    lines = []
    for id_, (leg, title, where) in last.items():
        stands = newest[leg.phase] is leg
        end = "stands, and does not block" if stands else ends.get(id_, "not named any more")
        lines.append(f"- {id_} ({where}): {inert.inline(title, _LINE)} - **{end}**")
    return ["## Findings", "\n".join(lines)] if lines else []


def _made(plan: Plan, chain: Sequence[Receipt], by: str | None) -> str:
    """Say who made it, who judged it, in how many rounds, and what it cost."""
    legs = [leg for leg in chain if leg.kind != "act"]
    spent = sum(leg.cost_microusd or 0 for leg in legs) / 1_000_000
    unknown = any(leg.cost_microusd is None for leg in legs)
    rounds, minutes = max((leg.round for leg in legs), default=1), sum(leg.seconds for leg in legs) / 60
    who = {leg.phase: f"{leg.phase}: {inert.inline(_who(leg), _LINE)}" for leg in legs}
    lines = [
        f"- {'; '.join(who.values())}",
        f"- {len(legs)} legs, {rounds} rounds, {minutes:.1f} minutes, {'at least ' * unknown}${spent:.2f}",
        f"- run `{plan.run}`: `relay trace {plan.run}`",
    ]
    if by is not None:
        lines.insert(0, f"- **Nothing accepted this change**: {inert.inline(by, _LINE)} takes the responsibility")
    return "## How it came to be\n\n" + "\n".join(lines)


def _who(leg: Receipt) -> str:
    """Name an agent with its model, whose name may come from the service."""
    return inert.line(f"{leg.agent} ({leg.model or leg.backend})")[:_LINE]

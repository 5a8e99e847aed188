"""What earlier legs of a judge found, as it is known from their receipts and replies."""

from collections.abc import Sequence
from typing import Final

import msgspec

from relay.record import evidence
from relay.record.ledger import Ledger
from relay.rules import findings
from relay.rules.findings import Known
from relay.terms import ClaimedFinding, Finding, JudgeReply, Receipt, WorkReply

UNFOUNDED: Final = 3
"""How many findings without evidence the next judge is shown of; the others are counted."""

TITLE: Final = 100
"""Characters of a title or a path in such a line."""


def find(ledger: Ledger, chain: Sequence[Receipt], phase: str) -> tuple[Known, ...]:
    """Collect what a judge's earlier legs found, in its newest wording, with what the implementer disputed since."""
    found: dict[str, Known] = {}
    shown: set[str] = set()
    for sealed in chain:
        answer = evidence.reply_of(ledger, sealed) if sealed.kind != "act" else None
        if sealed.phase == phase and isinstance(answer, JudgeReply):
            claims = dict(zip((finding.id for finding in sealed.findings), answer.findings, strict=False))
            for one in sealed.findings:
                told = found[one.id] if one.kept or one.id not in claims else claims[one.id]
                found[one.id] = _known(one, told, found.get(one.id))
            for ended in sealed.settled:
                found[ended.id] = msgspec.structs.replace(found[ended.id], settled=True)
            shown = {one.id for one in sealed.findings} if sealed.verdict in {"approve", "revise"} else shown
        elif isinstance(answer, WorkReply):
            ran = {one.id: one.exit for one in sealed.disputed}
            for dispute in answer.disputes:
                if dispute.finding in found:
                    known = found[dispute.finding]
                    found[dispute.finding] = findings.disputed(known, dispute, ran.get(dispute.finding))
    return tuple(msgspec.structs.replace(one, open=one.id in shown) for one in found.values())


def _known(finding: Finding, told: ClaimedFinding | Known, before: Known | None) -> Known:
    """Put together what Relay saw of a finding and how its judge told it, now or, where it is kept, before."""
    shown = before.shown if before is not None and (finding.kept or not before.settled) else ()
    if not finding.kept:  # what was to show it once, and shows it no more, is green
        now = (told.repro,) if finding.evidence == "confirmed" and told.repro is not None else ()
        shown = (*(one for one in shown if one not in now), *now) if now else ()
    return Known(
        id=finding.id,
        severity=finding.severity,
        title=told.title,
        path=finding.path,
        line=finding.line,
        quote=told.quote,
        why=told.why,
        since=finding.since,
        blocks=finding.blocks,
        evidence=finding.evidence,
        repro=told.repro,
        shown=shown,
    )


def unfounded(known: Sequence[Known], leg: str) -> list[dict[str, str]]:
    """Tell in a few lines what a judge's last verdict has without evidence: whoever invents much fills no prompt."""
    told = [one for one in known if one.open and one.evidence == "unfounded"]
    if not told:
        return []
    lines = [f"- {' '.join(one.title.split())[:TITLE]} (`{one.path[:TITLE]}`)" for one in told[:UNFOUNDED]]
    lines += [f"- and {len(told) - UNFOUNDED} more"] * (len(told) > UNFOUNDED)
    head = f"Findings of the verdict before for which Relay saw no evidence: {len(told)}. They block nothing."
    return [{"leg": leg, "text": "\n".join([head, *lines])}]

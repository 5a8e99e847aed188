"""The note: what one leg hands to the next. A pure function of plan, receipts, reply and the musts that people added.

So a lost note is made again from what is sealed, hash for hash; and what the receiver is told about facts comes from
the receipt, while everything an agent said is marked as a claim.
"""

import json
from collections.abc import Collection, Sequence
from typing import Final, TypeVar

from relay.rules import plan as rules
from relay.terms import SCHEMA, Finding, JudgeReply, Must, Plan, Receipt, Reply, WorkReply

Item = TypeVar("Item")

BUDGET: Final = 10_000
"""Characters of a whole note; what agents wrote is cut to fit, with a mark, and stands whole in reply.json."""

PATHS: Final = 40
"""How many changed paths a note lists; git knows the others."""

SECTIONS: Final = ("Boundary", "Recovery steps", "Completed", "Decisions", "Must", "Risks", "To do")

MAY: Final = {
    "implement": (
        "You may change files in your own worktree. You may not commit, push, move any ref, change git's configuration"
        " or hooks, or touch any other folder: Relay commits what stands in the worktree when you end."
    ),
    "verify-only": (
        "Verify only; do not implement. You may read everything in your worktree and run commands there. You may not"
        " change a file, commit, or move a ref: a change makes this leg void."
    ),
}


def render(
    plan: Plan,
    chain: Sequence[Receipt],
    reply: Reply | None,
    musts: Sequence[str] = (),
    withhold: Collection[str] = (),
) -> str:
    """Write the note of the newest receipt in `chain`.

    `musts` are the reasons of people who rejected, copied unchanged. `withhold` leaves sections of claims out, for a
    receiver that must not read them: `claims` drops the agent's own account of its success.
    """
    for limit in (1500, 700, 300, 120, 40):
        text = _render(plan, chain, reply, musts, withhold, limit)
        if len(text) <= BUDGET:
            break
    return text


def _render(
    plan: Plan,
    chain: Sequence[Receipt],
    reply: Reply | None,
    musts: Sequence[str],
    withhold: Collection[str],
    limit: int,
) -> str:
    """Write the note with each piece of an agent's text cut to `limit` characters."""
    receipt = chain[-1]
    step = rules.next_leg(plan, chain)
    to = step.phase if isinstance(step, rules.Go) else "a person"
    boundary = plan.phase(to).boundary if isinstance(step, rules.Go) else "verify-only"
    cut = _Cutter(limit)
    parts = {
        "Boundary": [MAY[boundary]],
        "Recovery steps": _recovery(plan, receipt),
        "Completed": _completed(receipt, reply, withhold, cut),
        "Decisions": _decisions(reply, cut),
        "Must": [_must(must) for must in plan.must] + [f"- {reason}" for reason in musts],
        "Risks": [f"- {cut(risk)}" for risk in cut.few(reply.risks)] if isinstance(reply, WorkReply) else [],
        "To do": _todo(plan, receipt, reply, cut),
    }
    body = "".join(f"## {name}\n\n{chr(10).join(parts[name]) or 'nothing'}\n\n" for name in SECTIONS)
    return f"{_front(plan, receipt, to, boundary)}{body}".rstrip("\n") + "\n"


class _Cutter:
    """Cuts an agent's text to a length and a list to a number of items, and says so where it did."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, text: str) -> str:
        """Fold one piece of text into one line and cut it."""
        line = " ".join(text.split())
        if len(line) <= self.limit:
            return line
        return f"{line[: self.limit]} [cut: {len(line) - self.limit} more characters in reply.json]"

    def few(self, items: Sequence[Item]) -> Sequence[Item]:
        """Keep the first items of a list, more of them the longer a piece may be."""
        return items[: max(5, self.limit // 25)]


def _front(plan: Plan, receipt: Receipt, to: str, boundary: str) -> str:
    """Write the front matter; a commit id would drift, so the receiver establishes it anew (rule 8)."""
    about = (
        f"the change on refs/relay/{plan.run}/{receipt.leg}"
        if receipt.kind == "work"
        else f"the verdict of {receipt.leg}"
    )
    fields = {
        "run": plan.run,
        "leg": receipt.leg,
        "from": f"{receipt.phase} ({receipt.agent})",
        "to": to,
        "boundary": boundary,
    }
    lines = [f"{key} = {_quoted(value)}" for key, value in fields.items()]
    return "\n".join(
        [
            "+++",
            f"schema = {SCHEMA}",
            *lines,
            f"written_at = {receipt.ended}",
            f"about = {_quoted(about)}",
            f"code_version = {_quoted('<pending: git rev-parse HEAD>')}",
            f"spec_sha256 = {_quoted(plan.spec_sha256)}",
            f"round = {receipt.round}",
            f"ended_by = {_quoted(receipt.ended_by or '')}",
            "+++",
            "",
        ]
    )


def _quoted(text: str) -> str:
    """Write a TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(text, ensure_ascii=False)


def _recovery(plan: Plan, receipt: Receipt) -> list[str]:
    """List the commands that establish the present state; Relay runs them for the receiver and shows their output."""
    own = ["git rev-parse HEAD", "git status --short", f"git log --oneline -3 {receipt.start[:12]}..HEAD"]
    return ["Run these before believing anything below.", "", *(f"- `{command}`" for command in [*own, *plan.recovery])]


def _completed(receipt: Receipt, reply: Reply | None, withhold: Collection[str], cut: _Cutter) -> list[str]:
    """Say what Relay saw, then what the agent claims; the version history is the source of truth."""
    lines = ["The version history is the source of truth; what follows `claim:` is the agent's word, not a fact.", ""]
    if receipt.ended_by != "reply":
        lines.append(f"- this leg ended by `{receipt.ended_by}`; nothing in it is verified")
        if receipt.problem:
            lines.append(f"- {cut(receipt.problem)}")
    lines += [
        f"- changed: `{change.path}` {_counted(change.added, change.removed)}" for change in receipt.changed[:PATHS]
    ]
    if len(receipt.changed) > PATHS:
        lines.append(f"- and {len(receipt.changed) - PATHS} more paths: `git diff --stat {receipt.start[:12]}..HEAD`")
    lines += [f"- not carried: `{item.path}` ({item.why})" for item in receipt.refused]
    for check in receipt.checks:
        red = "" if check.exit == 0 else " (red at the base too)" if not check.newly_red else " (newly red)"
        lines.append(f"- check: `{check.command}` exited {check.exit}{red}")
    lines += [
        f"- criterion {result.id}: {'met' if result.met else 'not met'}, by {result.by}" for result in receipt.criteria
    ]
    if receipt.verdict:
        lines.append(f"- verdict: {receipt.verdict} (claimed: {receipt.claimed_verdict or 'none'})")
    if reply is not None and reply.summary and "claims" not in withhold:
        lines.append(f"- claim: {cut(reply.summary)}")
    if isinstance(reply, WorkReply) and "claims" not in withhold:
        lines += [f"- claim: {cut(claim.criterion)}; to check: {cut(claim.how)}" for claim in cut.few(reply.claims)]
    return lines


def _counted(added: int, removed: int) -> str:
    """Say how much of a file changed."""
    return "(binary)" if added < 0 else f"+{added} -{removed}"


def _decisions(reply: Reply | None, cut: _Cutter) -> list[str]:
    """List what was decided and what was dropped, with the reasons: a handoff that loses them loses the work."""
    if not isinstance(reply, WorkReply):
        return []
    taken = [f"- {cut(reason.what)}: {cut(reason.why)}" for reason in cut.few(reply.decisions)]
    return taken + [f"- dropped: {cut(reason.what)}: {cut(reason.why)}" for reason in cut.few(reply.dropped)]


def _must(must: Must) -> str:
    """Write a must whole; it is copied from leg to leg and never cut."""
    extras = [
        f"{name}: {value}"
        for name in ("prerequisite", "authority", "fallback", "consequence")
        if (value := getattr(must, name))
    ]
    return f"- {must.must}" + (f" ({'; '.join(extras)})" if extras else "")


def _todo(plan: Plan, receipt: Receipt, reply: Reply | None, cut: _Cutter) -> list[str]:
    """List what is left: findings that block first, then advice, unmet criteria, and what the agent left."""
    lines: list[str] = []
    if isinstance(reply, JudgeReply):
        pairs = list(zip(receipt.findings, reply.findings, strict=False))
        for finding, claim in sorted(pairs, key=lambda pair: not pair[0].blocks):
            lines.append(f"- {_labelled(finding)} {cut(claim.title)}: {cut(claim.why)}")
            if claim.quote:
                lines.append(f"  quote: `{cut(claim.quote)}`")
            if claim.repro is not None:
                lines.append(f"  repro: `{cut(claim.repro.command)}`")
    texts = {criterion.id: criterion.text for criterion in plan.criteria}
    lines += [
        f"- criterion {result.id} is not met: {texts.get(result.id, '')}"
        for result in receipt.criteria
        if not result.met
    ]
    if isinstance(reply, WorkReply):
        lines += [f"- {cut(item)}" for item in cut.few(reply.todo)]
        lines += [f"- disputed {item.finding}: {cut(item.why)}" for item in cut.few(reply.disputes)]
    if reply is not None and reply.question:
        lines.append(f"- question: {cut(reply.question)}")
    return lines


def _labelled(finding: Finding) -> str:
    """Name a finding with its weight and its evidence."""
    weight = "blocks" if finding.blocks else "advice"
    return f"{finding.id} ({finding.severity}, {finding.evidence}, {weight}) `{finding.path}:{finding.line}`"

"""The note: what one leg hands to the next. A pure function of plan, receipts, reply and the musts that people added.

So a lost note is made again from what is sealed, hash for hash; and what the receiver is told about facts comes from
the receipt, while everything an agent said is marked as a claim.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from relay.host import term
from relay.rules import plan as rules
from relay.terms import SCHEMA, Check, ClaimedFinding, Finding, JudgeReply, Must, Plan, Receipt, Reply, WorkReply

Item = TypeVar("Item")

BUDGET: Final = 10_000
"""Characters of a whole note; what agents wrote is cut to fit, with a mark, and stands whole in reply.json."""

PATHS: Final = 40
"""How many changed paths a note lists; git knows the others."""

SECTIONS: Final = ("Boundary", "Recovery steps", "Completed", "Decisions", "Must", "Risks", "To do")

COMMIT: Final = re.compile(r"\b(?:[0-9a-f]{40}|[0-9a-f]{64})\b")
"""A full commit id: a value that can drift, so it stands in no text that crosses (rule 8)."""

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
    for limit in (1500, 700, 300, 120, 40, 20):
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
    step, phase = rules.next_leg(plan, chain), rules.receiver(plan, chain)
    boundary = plan.phase(phase).boundary if phase else "verify-only"
    person = "" if isinstance(step, rules.Go | rules.Wait) else "a person"
    to = ", then ".join(filter(None, (person, phase)))
    cut = _Cutter(limit)
    parts = {
        "Boundary": [MAY[boundary]],
        "Recovery steps": _recovery(plan, receipt),
        "Completed": _completed(receipt, reply, withhold, cut),
        "Decisions": _decisions(reply, cut),
        "Must": [_must(must) for must in plan.must] + [_indented(reason) for reason in musts],
        "Risks": cut.few(reply.risks, lambda risk: f"- {cut(risk)}") if isinstance(reply, WorkReply) else [],
        "To do": _todo(plan, receipt, reply, cut),
    }
    body = "".join(f"## {name}\n\n{chr(10).join(parts[name]) or 'nothing'}\n\n" for name in SECTIONS)
    return f"{_front(plan, receipt, to, boundary)}{body}".rstrip("\n") + "\n"


class _Cutter:
    """Cuts text to a length and a list to a number of items, and says so where it did.

    All text but that of musts goes through here: an agent also chooses the names of files. What comes out is one
    line without a full commit id or a control, so that nothing in it begins a section, drifts or moves a cursor.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, text: str) -> str:
        """Fold one piece of text into one line and cut it."""
        line = COMMIT.sub(lambda found: f"<pending: git rev-parse {found[0][:12]}>", " ".join(term.plain(text).split()))
        if len(line) <= self.limit:
            return line
        return f"{line[: self.limit]} [cut: {len(line) - self.limit} more characters]"

    def few(self, items: Sequence[Item], line: Callable[[Item], str]) -> list[str]:
        """Write the first items of a list, a line each; the longer a piece may be, the more of them."""
        most = max(4, self.limit // 25)
        left = len(items) - most
        return [line(item) for item in items[:most]] + [f"- [cut: {left} more of these]"] * (left > 0)


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
    steps = [_indented(f"`{command}`") for command in [*own, *plan.recovery]]
    return ["Run these before believing anything below.", "", *steps]


def _completed(receipt: Receipt, reply: Reply | None, withhold: Collection[str], cut: _Cutter) -> list[str]:
    """Say what Relay saw, then what the agent claims; the version history is the source of truth."""
    lines = ["The version history is the source of truth; what follows `claim:` is the agent's word, not a fact.", ""]
    if receipt.ended_by != "reply":
        lines.append(f"- this leg ended by `{receipt.ended_by}`; nothing in it is verified")
    if receipt.problem:
        lines.append(f"- {cut(receipt.problem)}")
    lines += cut.few(
        receipt.changed, lambda change: f"- changed: `{cut(change.path)}` {_counted(change.added, change.removed)}"
    )
    lines += cut.few(receipt.refused, lambda item: f"- not carried: `{cut(item.path)}` ({cut(item.why)})")
    lines += cut.few(receipt.checks, lambda check: f"- check: `{cut(check.command)}` exited {check.exit}{_red(check)}")
    lines += cut.few(
        receipt.criteria,
        lambda result: f"- criterion {result.id}: {'met' if result.met else 'not met'}, by {result.by}",
    )
    if receipt.verdict:
        lines.append(f"- verdict: {receipt.verdict} (claimed: {receipt.claimed_verdict or 'none'})")
    if reply is None or "claims" in withhold:
        return lines
    lines += [f"- claim: {cut(reply.summary)}"] * bool(reply.summary.strip())
    if isinstance(reply, WorkReply):
        lines += cut.few(reply.claims, lambda claim: f"- claim: {cut(claim.criterion)}; to check: {cut(claim.how)}")
    return lines


def _red(check: Check) -> str:
    """Say what a failed check means."""
    if check.exit == 0:
        return ""
    return " (newly red)" if check.newly_red else " (red at the base too)"


def _counted(added: int, removed: int) -> str:
    """Say how much of a file changed."""
    return "(binary)" if added < 0 else f"+{added} -{removed}"


def _decisions(reply: Reply | None, cut: _Cutter) -> list[str]:
    """List what was decided and what was dropped, with the reasons: a handoff that loses them loses the work."""
    if not isinstance(reply, WorkReply):
        return []
    taken = cut.few(reply.decisions, lambda reason: f"- {cut(reason.what)}: {cut(reason.why)}")
    return taken + cut.few(reply.dropped, lambda reason: f"- dropped: {cut(reason.what)}: {cut(reason.why)}")


def _must(must: Must) -> str:
    """Write a must whole; it is copied from leg to leg and never cut."""
    extras = [
        f"{name}: {value}"
        for name in ("prerequisite", "authority", "fallback", "consequence")
        if (value := getattr(must, name))
    ]
    return _indented(must.must + (f" ({'; '.join(extras)})" if extras else ""))


def _indented(text: str) -> str:
    """Make one item of a list out of text that may have several lines, so that none of them begins a section."""
    return "- " + "\n  ".join(text.strip().splitlines())


def _todo(plan: Plan, receipt: Receipt, reply: Reply | None, cut: _Cutter) -> list[str]:
    """List what is left: findings that block first, then advice, unmet criteria, and what the agent left."""
    lines: list[str] = []
    if isinstance(reply, JudgeReply):
        pairs = sorted(zip(receipt.findings, reply.findings, strict=False), key=lambda pair: not pair[0].blocks)
        lines += cut.few(pairs, lambda pair: _finding(*pair, cut))
    texts = {criterion.id: criterion.text for criterion in plan.criteria}
    unmet = [result.id for result in receipt.criteria if not result.met]
    lines += cut.few(unmet, lambda name: f"- criterion {name} is not met: {cut(texts.get(name, ''))}")
    if isinstance(reply, WorkReply):
        lines += cut.few(reply.todo, lambda item: f"- {cut(item)}")
        lines += cut.few(reply.disputes, lambda item: f"- disputed {cut(item.finding)}: {cut(item.why)}")
    if reply is not None and reply.question:
        lines.append(f"- question: {cut(reply.question)}")
    return lines


def _finding(finding: Finding, claim: ClaimedFinding, cut: _Cutter) -> str:
    """Write a finding with its weight and its evidence."""
    weight = "blocks" if finding.blocks else "advice"
    place = f"`{cut(finding.path)}:{finding.line}`"
    lines = [f"- {finding.id} ({finding.severity}, {finding.evidence}, {weight}) {place} {cut(claim.title)}"]
    lines[0] += f": {cut(claim.why)}" if claim.why else ""
    lines += [f"  quote: `{cut(claim.quote)}`"] * bool(claim.quote.strip())
    if claim.repro is not None:
        lines.append(f"  repro: `{cut(claim.repro.command)}`")
    return "\n".join(lines)

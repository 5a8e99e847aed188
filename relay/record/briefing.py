"""What crosses a seam: everything a leg's prompt is made of, and the record of what was kept back."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from relay.errors import Exit, RelayError
from relay.host import files, git
from relay.record import evidence, instructions, note, prompt, reply
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import findings, steering
from relay.rules.plan import Go
from relay.terms import Ask, CriterionResult, JudgeReply, Phase, Plan, Receipt, Struct, WorkReply


class Briefing(Struct, frozen=True, kw_only=True):
    """A rendered prompt, with what crossed, what was withheld, and whose notes were read."""

    prompt: str
    crossed: tuple[str, ...]
    withheld: tuple[str, ...]
    notes_read: tuple[str, ...]


class Observed(Struct, frozen=True, kw_only=True):
    """One command that Relay ran for the receiver, with its fresh output and the time."""

    command: str
    output: str
    at: str
    by: str = ""
    exit: int = 0


def known_findings(ledger: Ledger, chain: Sequence[Receipt], phase: str) -> tuple[findings.Known, ...]:
    """Collect what a judge's earlier legs found, in its newest wording, with what the implementer disputed since."""
    found: dict[str, findings.Known] = {}
    for sealed in chain:
        answer = evidence.reply_of(ledger, sealed) if sealed.kind != "act" else None
        if sealed.phase == phase and isinstance(answer, JudgeReply):
            for finding, claim in zip(sealed.findings, answer.findings, strict=False):
                found[finding.id] = findings.Known(
                    id=finding.id,
                    severity=claim.severity,
                    title=claim.title,
                    path=claim.path,
                    line=claim.line,
                    quote=claim.quote,
                    why=claim.why,
                    since=finding.since,
                    blocks=finding.blocks,
                    evidence=finding.evidence,
                    repro=claim.repro,
                )
        elif isinstance(answer, WorkReply):
            for dispute in answer.disputes:
                if dispute.finding in found:
                    found[dispute.finding] = findings.disputed(found[dispute.finding], dispute)
    return tuple(found.values())


def questions(ledger: Ledger, chain: Sequence[Receipt]) -> list[dict[str, str]]:
    """Pair each answer of a person with the question it answers; an answer without one stands alone."""
    pairs, asked = [], ""
    for sealed in chain:
        answer = evidence.reply_of(ledger, sealed)
        if answer is not None and answer.question:
            asked = answer.question
        if sealed.act == "answer":
            pairs.append({"question": asked, "answer": evidence.why_of(ledger, sealed)})
            asked = ""
    return pairs


def make(
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    go: Go,
    *,
    ask: Ask,
    recovery: Sequence[Observed],
    checked: Sequence[Observed],
    criteria: Sequence[CriterionResult],
) -> Briefing:
    """Render the prompt of a leg and say what crossed the seam and what did not."""
    phase = plan.phase(go.phase)
    handed = _handed(ledger, plan, chain, go)
    values = {
        **_asked(ledger, plan),
        **handed,
        "must_from_person": list(evidence.musts(ledger, chain)),
        "phase": phase.name,
        "boundary": phase.boundary,
        "round": go.round,
        "turn": go.turn,
        "because": go.because,
        "recovery": msgspec.to_builtins(recovery),
        "checks": msgspec.to_builtins(checked),
        "standing": msgspec.to_builtins(criteria),
        "nonce": ask.nonce,
        "reply_path": ask.reply_path,
        "reply_schema": json.dumps(reply.schema(phase.kind), indent=1),
    }
    crossed = ["spec", *(f"note {leg}" for leg in go.reads)]
    crossed += [name for name in ("instructions", "diff", "findings", "document", "questions") if values[name]]
    return Briefing(
        prompt=prompt.render(ledgers.frozen(ledger, plan.run, f"prompts/{phase.prompt}"), **values),
        crossed=tuple(crossed),
        withheld=tuple(sorted({"transcript", "reasoning", *phase.withhold})),
        notes_read=go.reads,
    )


def _asked(ledger: Ledger, plan: Plan) -> dict[str, Any]:
    """Return what the run was asked for, as it was frozen: the same for every leg."""
    named = [name.removeprefix("instructions/") for name in sorted(plan.files) if name.startswith("instructions/")]
    found = instructions.find(ledger.repo, plan.base)
    return {
        "task": ledgers.frozen(ledger, plan.run, "spec.md").decode(),
        "title": plan.title,
        "criteria": msgspec.to_builtins(plan.criteria),
        "must": msgspec.to_builtins(plan.must),
        "instructions": [
            {"path": name, "text": instructions.shown(name, ledgers.frozen(ledger, plan.run, f"instructions/{name}"))}
            for name in named
        ],
        "nested": instructions.reading(found, plan.base),
        "kept_back": list(found.kept_back),
    }


def _handed(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], go: Go) -> dict[str, Any]:
    """Return what earlier legs and people hand over; a judge gets the diff that Relay made from two full ids."""
    phase = plan.phase(go.phase)
    judges = phase.kind == "judge"
    known = _standing(ledger, chain, phase.name) if judges else _blocking(ledger, plan, chain)
    patch = git.diff(ledger.repo, go.base, go.start) if judges else b""
    changed = git.numstat(ledger.repo, go.base, go.start) if judges else ()
    steers = steering.steering(change.path for change in changed)
    return {
        "notes": _notes(ledger, plan, chain, go, phase),
        "document": document(ledger, plan, chain, go),
        "diff": patch.decode("utf-8", "replace"),
        "changed": msgspec.to_builtins(changed),
        "steering": [{"why": why, "paths": paths} for why, paths in steers.items()],
        "findings": msgspec.to_builtins(known),
        "questions": questions(ledger, chain),
    }


def _standing(ledger: Ledger, chain: Sequence[Receipt], phase: str) -> tuple[findings.Known, ...]:
    """Return what a judge named in its last verdict; what it no longer named there is settled."""
    verdicts = [sealed for sealed in chain if sealed.phase == phase and sealed.verdict in {"approve", "revise"}]
    wanted = {finding.id for finding in verdicts[-1].findings} if verdicts else set()
    return tuple(item for item in known_findings(ledger, chain, phase) if item.id in wanted)


def _blocking(ledger: Ledger, plan: Plan, chain: Sequence[Receipt]) -> tuple[findings.Known, ...]:
    """Return the findings that sent the work back, whole: in a note they may have been cut."""
    judge = next((sealed for sealed in reversed(chain) if sealed.kind == "judge" and sealed.ended_by == "reply"), None)
    if judge is None or judge.verdict != "revise" or judge.phase not in {phase.name for phase in plan.phases}:
        return ()
    wanted = {finding.id for finding in judge.findings if finding.blocks}
    return tuple(item for item in known_findings(ledger, chain, judge.phase or "") if item.id in wanted)


def _notes(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], go: Go, phase: Phase) -> list[dict[str, str]]:
    """Return the notes of the legs that are read: as sealed, or made again without what the phase withholds."""
    texts = []
    for leg in go.reads:
        upto = chain[: next(index for index, sealed in enumerate(chain) if sealed.leg == leg) + 1]
        if phase.withhold:
            answer = evidence.reply_of(ledger, upto[-1])
            text = note.render(plan, upto, answer, evidence.musts(ledger, upto), phase.withhold)
        else:
            text = files.read(ledger.leg(plan.run, leg) / "note.md").decode("utf-8", "replace")
        texts.append({"leg": leg, "text": text})
    return texts


def document(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], go: Go) -> str:
    """Return the document of the newest leg that is read and made one: a plan, for instance.

    Raises `RelayError` (exit 6) where it is missing or another one than its receipt names by hash.
    """
    for sealed in reversed(chain):
        if (sealed.leg in go.reads or sealed.phase == go.phase) and sealed.document_sha256:
            path = ledger.leg(plan.run, sealed.leg) / "document.md"
            data = files.read(path) if path.exists() else b""
            if files.sha256(data) != sealed.document_sha256:
                raise RelayError(
                    f"gate refused: the document is not the one its receipt names by hash: `{path}`",
                    hint=f"restore the file: its text is `document` in `{path.with_name('reply.json')}`",
                    exit_code=Exit.GATE,
                )
            return data.decode("utf-8", "replace")
    return ""

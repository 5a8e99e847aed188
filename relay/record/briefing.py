"""What crosses a seam: everything a leg's prompt is made of, and the record of what was kept back."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from relay.errors import Exit, RelayError
from relay.host import files, git, patch
from relay.record import evidence, instructions, known, note, prompt, reply
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import findings, steering
from relay.rules.plan import Go
from relay.terms import (
    Ask,
    Change,
    CriterionResult,
    Phase,
    Plan,
    Receipt,
    Struct,
)

DIFF_SHOWN: Final = 200_000
"""Bytes of the largest diff that stands in a prompt; a larger one is given as files, with a map in the prompt."""

DIFF_WHOLE: Final = 16 << 20
"""Bytes of the largest diff that is given at all: nobody reads more, and nothing is ever left out of one in silence."""

CROSSING: Final = ("instructions", "diff", "diff_files", "tests", "findings", "document", "questions")
"""What crosses besides the spec and the notes, where there is any of it."""


class Briefing(Struct, frozen=True, kw_only=True):
    """A rendered prompt, with what crossed, what was withheld, and whose notes were read.

    `reviewed` counts the changed lines that are shown, `files` are what the prompt leads to, by path, and `cut` says
    what could not be given whole: then nothing can be judged.
    """

    prompt: str
    crossed: tuple[str, ...]
    withheld: tuple[str, ...]
    notes_read: tuple[str, ...]
    reviewed: int = 0
    files: dict[str, str] = {}
    cut: str = ""


class Observed(Struct, frozen=True, kw_only=True):
    """One command that Relay ran for the receiver, with its fresh output and the time."""

    command: str
    output: str
    at: str
    by: str = ""
    exit: int = 0


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


def make(  # noqa: PLR0913 - all that a prompt is made of
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    go: Go,
    *,
    ask: Ask,
    recovery: Sequence[Observed],
    checked: Sequence[Observed],
    criteria: Sequence[CriterionResult],
    tests: Mapping[str, object] | None = None,
) -> Briefing:
    """Render the prompt of a leg and say what crossed the seam and what did not; `tests` are what their swap showed."""
    phase = plan.phase(go.phase)
    diff = _diff(ledger, go, Path(ask.reply_path).parent / "diff") if phase.kind == "judge" else _Diff()
    steers = steering.steering(change.path for change in diff.changed)
    values = {
        **_asked(ledger, plan),
        **_handed(ledger, plan, chain, go),
        "steering": [{"why": why, "paths": paths} for why, paths in steers.items()],
        "diff": diff.text,
        "diff_files": diff.map,
        "changed": msgspec.to_builtins(diff.changed),
        "tests": tests,
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
    crossed += [name for name in CROSSING if values[name]]
    return Briefing(
        prompt=prompt.render(ledgers.frozen(ledger, plan.run, f"prompts/{phase.prompt}"), **values),
        crossed=tuple(crossed),
        withheld=tuple(sorted({"transcript", "reasoning", *phase.withhold})),
        notes_read=go.reads,
        reviewed=diff.lines,
        files=diff.files,
        cut=diff.cut,
    )


class _Diff(Struct, frozen=True, kw_only=True):
    """The diff that a judge is given: as text, or as files with a map; `changed` counts lines by path."""

    text: str = ""
    map: tuple[dict[str, object], ...] = ()
    files: dict[str, str] = {}
    changed: tuple[Change, ...] = ()
    cut: str = ""

    @property
    def lines(self) -> int:
        """How many lines were added or removed."""
        return sum(max(0, change.added) + max(0, change.removed) for change in self.changed)


def _diff(ledger: Ledger, go: Go, folder: Path) -> _Diff:
    """Make the diff from two full ids; one too long for a prompt becomes a file for each path, none of it cut."""
    changed = git.numstat(ledger.repo, go.base, go.start)
    whole = git.diff(ledger.repo, go.base, go.start)
    if len(whole) <= DIFF_SHOWN:
        return _Diff(text=whole.decode("utf-8", "replace"), changed=changed)
    if len(whole) > DIFF_WHOLE:
        return _Diff(changed=changed, cut=f"the diff has {len(whole)} bytes, and {DIFF_WHOLE} can be given at most")
    pieces = patch.pieces(whole)
    paths = [str(folder / f"{number:04d}.patch") for number in range(1, len(pieces) + 1)]
    return _Diff(
        map=tuple({"path": one.path, "size": one.size, "file": at} for one, at in zip(pieces, paths, strict=True)),
        files={at: one.text for one, at in zip(pieces, paths, strict=True)},
        changed=changed,
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
    notes = _notes(ledger, plan, chain, go, phase)
    if phase.kind == "judge":
        before = known.find(ledger, chain, phase.name)
        open_ones = tuple(one for one in before if one.open and one.evidence != "unfounded")
        notes += known.unfounded(before, f"Relay, of the verdicts of {phase.name}")
    else:
        open_ones = _blocking(ledger, plan, chain)
    return {
        "notes": notes,
        "document": document(ledger, plan, chain, go),
        "findings": msgspec.to_builtins(open_ones),
        "questions": questions(ledger, chain),
    }


def _blocking(ledger: Ledger, plan: Plan, chain: Sequence[Receipt]) -> tuple[findings.Known, ...]:
    """Return the findings that sent the work back, whole: in a note they may have been cut."""
    judge = next((sealed for sealed in reversed(chain) if sealed.kind == "judge" and sealed.ended_by == "reply"), None)
    if judge is None or judge.verdict != "revise" or judge.phase not in {phase.name for phase in plan.phases}:
        return ()
    wanted = {finding.id for finding in judge.findings if finding.blocks}
    return tuple(item for item in known.find(ledger, chain, judge.phase or "") if item.id in wanted)


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

"""What a reply says besides findings: places that exist, criteria that hold, findings that do not."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from relay import clean
from relay.confine import Place
from relay.hollow import constant
from relay.host import files, redact
from relay.proof.quotes import SUBSTANCE
from relay.proof.trees import SECONDS, Trees, unrun
from relay.terms import (
    Check,
    ClaimedCriterion,
    CriterionResult,
    Disputed,
    JudgeReply,
    Placed,
    Plan,
    Quoted,
    WorkReply,
)

TURNED: Final = re.compile(r"(?:^|\s)(?:!|-z)(?=\s)")
"""How a command asks that something is not there: in an empty folder it is not there either."""

SHOWN: Final = 200
"""Characters of a command or a quote in a sentence."""


def placed(trees: Trees, existing: Sequence[Quoted]) -> tuple[Placed, ...]:
    """Look up each place that a reply says exists; an invented file, field or value falls here."""
    lines = [trees.place(one.path, one.quote) for one in existing]
    return tuple(Placed(path=one.path, line=at[0] if at else None) for one, at in zip(existing, lines, strict=True))


def invented(existing: Sequence[Quoted], found: Sequence[Placed]) -> tuple[Check, str] | None:
    """Return a red check where places that a reply says exist are not there, and what lists them."""
    pairs = zip(existing, found, strict=True)
    lines = [f"{one.path}: {' '.join(one.quote.split())[:SHOWN]}" for one, at in pairs if at.line is None]
    if not lines:
        return None
    return red("what the reply lists under `existing` is there", "\n".join(["these are not there:", *lines]))


def criterion(trees: Trees, result: CriterionResult, reply: JudgeReply) -> tuple[CriterionResult, str]:
    """Settle a criterion that no command of the spec decides: the judge's answer, if its evidence holds.

    A criterion that the judge passed over, or called met without evidence that stands, stays judged by nobody; then
    why is said, too.
    """
    if result.by == "relay":
        return result, ""
    claim = next((item for item in reply.criteria if item.id == result.id), None)
    if claim is None:
        return result, f"nobody judged {result.id}: the judge passes over it"
    judged = msgspec.structs.replace(result, by="judge", met=claim.met)
    if not claim.met:
        return judged, ""
    whys = []
    for look in [_run] * bool(claim.command) + [_quoted] * bool(claim.quote):
        found, why = look(trees, judged, claim)
        if not why:
            return found, ""
        whys.append(why)
    return result, f"nobody judged {result.id}: {'; '.join(whys) or 'the judge calls it met and shows nothing'}"


def _run(trees: Trees, judged: CriterionResult, claim: ClaimedCriterion) -> tuple[CriterionResult, str]:
    """Run the command that is to show a criterion; one that cannot fail, or did not run, shows nothing."""
    command = claim.command or ""
    told = f"`{' '.join(command.split())[:SHOWN]}`"
    if constant(command):
        return judged, f"{told} comes out the same whatever it runs on"
    check, _ = trees.run(command, judged.id)
    if why := unrun(check):
        return judged, f"{told} shows nothing, {why}"
    if check.exit == 0 and not TURNED.search(command) and trees.run_in_nothing(command, judged.id).exit == 0:
        return judged, f"{told} exits with 0 where there is no file at all, too"
    return msgspec.structs.replace(
        judged,
        met=check.exit == 0,
        command=redact.own().text(command),
        exit=check.exit,
        output_sha256=check.output_sha256,
    ), ""


def _quoted(trees: Trees, judged: CriterionResult, claim: ClaimedCriterion) -> tuple[CriterionResult, str]:
    """Look up the quote that is to show a criterion; a scrap of a line stands nearly everywhere."""
    path, quote = trees.path(claim.path or ""), claim.quote or ""
    text, lines = trees.text(path), trees.place(path, quote)
    if text is None or lines is None:
        return judged, f"its quote does not stand in `{path[:SHOWN]}`"
    if not text.substantial(quote, lines):
        return (
            judged,
            f"its quote is a scrap: {SUBSTANCE} characters that are no blanks, or a whole line, show something",
        )
    return msgspec.structs.replace(judged, path=path, line=lines[0]), ""


def disputes(plan: Plan, at: Place, reply: WorkReply, known: Sequence[str]) -> tuple[Disputed, ...]:
    """Run the command of each dispute where the work stands, one a finding: the next judge is told what it did."""
    found = []
    for one in {one.finding: one for one in reply.disputes if one.finding in known}.values():
        if not one.command:
            found.append(Disputed(id=one.finding))
            continue
        check, _ = clean.run(plan, at, one.command, by=f"dispute {one.finding}", seconds=SECONDS)
        command = redact.own().text(one.command)
        found.append(Disputed(id=one.finding, command=command, exit=check.exit, output_sha256=check.output_sha256))
    return tuple(found)


def red(what: str, output: str) -> tuple[Check, str]:
    """Make the check of something that Relay looked at by itself, and what it saw."""
    return Check(by="relay", command=what, exit=1, seconds=0.0, output_sha256=files.sha256(output.encode())), output

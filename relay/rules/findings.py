"""What a judge's findings come to, once Relay looked at the evidence: ids, states, what blocks, the verdict."""

import bisect
import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence

import msgspec

from relay.terms import (
    ClaimedFinding,
    CriterionResult,
    Dispute,
    Evidence,
    Finding,
    JudgeReply,
    Proof,
    Repro,
    Settlement,
    Severity,
    State,
    Struct,
    Verdict,
)

CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")

GRAVE = frozenset({"blocker", "major"})
"""The severities that can block."""

NEAR = 3
"""How many lines from a changed line a finding may lie and still be on the delta."""


Lines = Mapping[str, Sequence[tuple[int, int]]]
"""Paths, and the first and last line of each range in them."""


class Seen(Struct, frozen=True, kw_only=True):
    """What Relay saw of one finding: how well it is shown, and the first and last line of its quote."""

    proof: Proof
    lines: tuple[int, int] | None = None


class Known(Struct, frozen=True, kw_only=True):
    """A finding of an earlier round of the same judge: enough to recognise it and to show it to the next reviewer.

    `open` says that the last verdict has it, and `settled` that it ended before: then it has come back.
    """

    id: str
    severity: Severity
    title: str
    path: str
    line: int
    quote: str
    why: str
    since: int
    blocks: bool
    evidence: Proof = "unfounded"
    repro: Repro | None = None
    dispute: str = ""
    open: bool = True
    settled: bool = False


def disputed(known: Known, dispute: Dispute, code: int | None = None) -> Known:
    """Return the finding with the implementer's objection beside it, and what its command did when Relay ran it."""
    ran = "shown by" if code is None else f"Relay saw exit {code} of"
    command = f" ({ran} `{dispute.command}`)" if dispute.command else ""
    return msgspec.structs.replace(known, dispute=f"{dispute.why}{command}")


def folded(text: str) -> str:
    """Fold whitespace and drop control characters, so that a quote survives re-indentation and a terminal."""
    return " ".join(CONTROL.sub("", text).split())


def place(quote: str, text: str | None, near: int) -> tuple[int, int] | None:
    """Return the first and last line where a quote stands in a text, the nearest to line `near`; None if nowhere.

    Whitespace is folded on both sides, so a quote may be indented otherwise or broken over lines.
    """
    wanted = folded(quote)
    if text is None or not wanted:
        return None
    starts, numbers, words, at = [], [], [], 0
    for number, line in enumerate(text.split("\n"), 1):
        if part := folded(line):
            starts.append(at)
            numbers.append(number)
            words.append(part)
            at += len(part) + 1
    whole, found, at = " ".join(words), [], -1
    while (at := whole.find(wanted, at + 1)) >= 0:
        ends = (at, at + len(wanted) - 1)
        first, last = (numbers[bisect.bisect_right(starts, offset) - 1] for offset in ends)
        found.append((first, last))
    return min(found, key=lambda lines: (abs(lines[0] - near), lines), default=None)


def reproduced(repro: Repro, code: int, output: str) -> bool:
    """Tell whether a repro did what the finding said: the exit it expects, and the output.

    Where no exit is named the output decides, and where neither is, any failure. A command that could not start, or
    that a signal ended, shows nothing; nor does one that went well and was to say nothing.
    """
    if code < 0 or code in {126, 127}:
        return False
    wanted = folded(repro.expect_output or "")
    expected = code == repro.expect_exit if repro.expect_exit is not None else code != 0 or bool(wanted)
    return expected and wanted in folded(output) and (code != 0 or bool(wanted))


def identify(claim: ClaimedFinding, known: Sequence[Known], taken: Sequence[str]) -> tuple[str, int | None]:
    """Return a finding's id and the round it is known from: `same_as`, else the same place, else a new id.

    An id is made from the place and the quote, so that it is the same in whichever order findings come.
    """
    by_id = {finding.id: finding for finding in known}
    if claim.same_as in by_id and claim.same_as not in taken:
        return claim.same_as, by_id[claim.same_as].since
    for finding in known:
        if finding.id not in taken and finding.path == claim.path and folded(finding.quote) == folded(claim.quote):
            return finding.id, finding.since
    for attempt in itertools.count():  # an agent may repeat itself, so each attempt has a digest of its own
        text = f"{claim.path}\0{folded(claim.quote)}\0{claim.title}" + f"\0{attempt}" * bool(attempt)
        identity = f"F{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[: 4 + attempt]}"
        if identity not in taken and identity not in by_id:
            break
    return identity, None


def judge(
    claims: Sequence[ClaimedFinding],
    seen: Sequence[Seen],
    *,
    known: Sequence[Known],
    round_: int,
    evidence: Evidence,
    delta: Lines | None,
    mended: Lines | None = None,
) -> tuple[Finding, ...]:
    """Give each finding its id and its state, and say whether it blocks.

    Only `blocker` and `major` with evidence block. A confirmed one blocks in any round, wherever it lies; where
    `delta` is given (the lines changed since this judge last looked), a merely located one blocks only if it did so
    before or lies on the delta: advice does not grow into a demand by being repeated. `mended` are the lines that
    repairs changed since its first verdict. Where the quote stands counts, not the line that the judge names.
    """
    stood = {finding.id for finding in known if finding.blocks}
    settled = {finding.id for finding in known if finding.settled}
    found: list[Finding] = []
    for claim, look in zip(claims, seen, strict=True):
        identity, since = identify(claim, known, [finding.id for finding in found])
        lines = look.lines or (claim.line, claim.line)
        fresh = delta is not None and identity not in stood and not _on(delta, claim.path, lines, NEAR)
        proven = look.proof == "confirmed" or (look.proof == "located" and evidence == "located" and not fresh)
        born: State = "born-of-a-fix" if _on(mended or {}, claim.path, lines, 0) else "new"
        state: State = born if since is None else "regression" if identity in settled else "persisting"
        found.append(
            Finding(
                id=identity,
                severity=claim.severity,
                path=claim.path,
                line=lines[0],
                claimed_line=None if claim.line == lines[0] else claim.line,
                evidence=look.proof,
                since=round_ if since is None else since,
                blocks=claim.severity in GRAVE and proven,
                state=state,
            )
        )
    return tuple(found)


def _on(changed: Lines, path: str, lines: tuple[int, int], near: int) -> bool:
    """Tell whether lines of a file touch those that changed, or lie no more than `near` lines beside them."""
    return any(low - near <= lines[1] and lines[0] <= high + near for low, high in changed.get(path, ()))


def unnamed(known: Sequence[Known], found: Sequence[Finding]) -> list[Known]:
    """Return the open findings with evidence that a judge does not name any more."""
    named = {finding.id for finding in found}
    return [one for one in known if one.open and one.evidence != "unfounded" and one.id not in named]


def kept(known: Known, lines: tuple[int, int] | None) -> Finding:
    """Return a finding that its judge no longer names, and whose repro Relay saw fail again."""
    return Finding(
        id=known.id,
        severity=known.severity,
        path=known.path,
        line=lines[0] if lines is not None else known.line,
        evidence="confirmed",
        since=known.since,
        blocks=known.severity in GRAVE,
        state="persisting",
        kept=True,
    )


def settlement(known: Known, lines: tuple[int, int] | None, *, again: bool | None) -> Settlement | None:
    """Say how a finding that its judge no longer names ended; None where it has not.

    `lines` are where its quote stands now. `again` says whether its repro did again what it showed; None where it was
    not run. A dispute that the judge had before its eyes lets it let go; a repro that still fails does not.
    """
    if (known.quote and lines is None) or again is False:
        return "fixed"
    return None if again and not known.dispute else "withdrawn"


def verdict(
    reply: JudgeReply,
    findings: Sequence[Finding],
    criteria: Sequence[CriterionResult],
    *,
    red: bool,
    last: bool,
    rests: bool = True,
) -> Verdict:
    """Derive the verdict; what the agent claims decides only what no evidence decides.

    `last` is true for the phase that judges criteria: there a `revise` that nothing supports is inconclusive, while
    at a review it is settled with advice. `red` says that a check fails that did not fail on the base. A criterion
    that nobody judged leaves the verdict open, and so does an approval that `rests` on a place that is not there.
    """
    unmet = [criterion for criterion in criteria if not criterion.met]
    if any(finding.blocks for finding in findings) or red or any(criterion.by != "nobody" for criterion in unmet):
        return "revise"
    if reply.verdict == "blocked":
        return "blocked"
    if unmet or not rests:
        return "inconclusive"
    if reply.verdict == "approve" or not last:
        return "approve"
    return "inconclusive"

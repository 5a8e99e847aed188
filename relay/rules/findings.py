"""What a judge's findings come to, once Relay looked at the evidence: ids, what blocks, the verdict."""

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
    Struct,
    Verdict,
)

CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")

NEAR = 3
"""How many lines from a changed line a finding may lie and still be on the delta."""


class Known(Struct, frozen=True, kw_only=True):
    """A finding of an earlier round of the same judge: enough to recognise it and to show it to the next reviewer."""

    id: str
    severity: str
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


def disputed(known: Known, dispute: Dispute) -> Known:
    """Return the finding with the implementer's objection beside it."""
    command = f" (shown by `{dispute.command}`)" if dispute.command else ""
    return msgspec.structs.replace(known, dispute=f"{dispute.why}{command}")


def folded(text: str) -> str:
    """Fold whitespace and drop control characters, so that a quote survives re-indentation and a terminal."""
    return " ".join(CONTROL.sub("", text).split())


def located(claim: ClaimedFinding, text: str | None) -> bool:
    """Tell whether the quoted text stands in the file; the line is a claim that may be a few off."""
    return text is not None and bool(folded(claim.quote)) and folded(claim.quote) in folded(text)


def reproduced(claim: ClaimedFinding, code: int, output: str) -> bool:
    """Tell whether a repro did what the finding said: the exit it expects, and the output.

    Where no exit is named the output decides, and where neither is, any failure. A command that could not start, or
    that a signal ended, shows nothing; nor does one that went well and was to say nothing.
    """
    repro = claim.repro
    if repro is None or code < 0 or code in {126, 127}:
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
    proofs: Sequence[Proof],
    *,
    known: Sequence[Known],
    round_: int,
    evidence: Evidence,
    delta: Mapping[str, Sequence[tuple[int, int]]] | None,
) -> tuple[Finding, ...]:
    """Give each finding its id and say whether it blocks.

    Only `blocker` and `major` with evidence block. A confirmed one blocks in any round, wherever it lies; where
    `delta` is given (the lines changed since this judge last looked), a merely located one blocks only if it did so
    before or lies on the delta: advice does not grow into a demand by being repeated.
    """
    stood = {finding.id for finding in known if finding.blocks}
    found: list[Finding] = []
    for claim, proof in zip(claims, proofs, strict=True):
        identity, since = identify(claim, known, [finding.id for finding in found])
        fresh = delta is not None and identity not in stood and not _on(delta, claim)
        proven = proof == "confirmed" or (proof == "located" and evidence == "located" and not fresh)
        found.append(
            Finding(
                id=identity,
                severity=claim.severity,
                path=claim.path,
                line=claim.line,
                evidence=proof,
                since=round_ if since is None else since,
                blocks=claim.severity in {"blocker", "major"} and proven,
            )
        )
    return tuple(found)


def _on(delta: Mapping[str, Sequence[tuple[int, int]]], claim: ClaimedFinding) -> bool:
    """Tell whether a finding lies on lines that changed since the last look."""
    return any(low - NEAR <= claim.line <= high + NEAR for low, high in delta.get(claim.path, ()))


def verdict(
    reply: JudgeReply, findings: Sequence[Finding], criteria: Sequence[CriterionResult], *, red: bool, last: bool
) -> Verdict:
    """Derive the verdict; what the agent claims decides only what no evidence decides.

    `last` is true for the phase that judges criteria: there a `revise` that nothing supports is inconclusive, while
    at a review it is settled with advice. `red` says that a check fails that did not fail on the base. A criterion
    that nobody judged leaves the verdict open.
    """
    unmet = [criterion for criterion in criteria if not criterion.met]
    if any(finding.blocks for finding in findings) or red or any(criterion.by != "nobody" for criterion in unmet):
        return "revise"
    if reply.verdict == "blocked":
        return "blocked"
    if unmet:
        return "inconclusive"
    if reply.verdict == "approve" or not last:
        return "approve"
    return "inconclusive"

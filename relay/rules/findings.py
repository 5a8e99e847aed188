"""What a judge's findings come to, once Relay looked at the evidence: ids, states, what blocks, the verdict."""

import hashlib
import itertools
import posixpath
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

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

GRAVITY: Final[tuple[Severity, ...]] = ("nit", "minor", "major", "blocker")

NEAR = 3
"""How many lines from a changed line a finding may lie and still be on the delta."""

LAST_LINE: Final = 10**9
"""The highest line number that is kept; a judge may name any number."""

Lines = Mapping[str, Sequence[tuple[int, int]]]
"""Paths, and the first and last line of each range in them."""


class Seen(Struct, frozen=True, kw_only=True):
    """What Relay saw of one finding: how well it is shown, and the first and last line of its quote.

    `why` says what kept Relay from looking closer.
    """

    proof: Proof
    lines: tuple[int, int] | None = None
    why: str = ""


class Again(Struct, frozen=True, kw_only=True):
    """What the repros of a confirmed finding do now, and where its quote stands.

    `unknown` is one that could not be run, and `why` says why: it shows neither the fault nor its mend.
    """

    did: Literal["shows", "green", "unknown"]
    lines: tuple[int, int] | None = None
    why: str = ""


class Known(Struct, frozen=True, kw_only=True):
    """A finding of an earlier round of the same judge: enough to recognise it and to show it to the next reviewer.

    `open` says that the last verdict has it, and `settled` that it ended before: then it has come back. `shown` are the
    repros that Relay saw fail, from the replies that brought them: no later wording takes their place.
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
    shown: tuple[Repro, ...] = ()
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


def plain(path: str) -> str:
    """Write a path in the one way that counts: `./a.py`, ` a.py` and `b/../a.py` are all `a.py`."""
    return posixpath.normpath(path.strip()) if path.strip() else ""


def clamped(line: int) -> int:
    """Return a line number that can be kept: a judge may name any, and a wrong one is only wrong."""
    return min(max(line, 1), LAST_LINE)


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


def identify(claims: Sequence[ClaimedFinding], known: Sequence[Known]) -> list[tuple[str, Known | None]]:
    """Return each finding's id, and what it is known as: by `same_as`, else by the same place, else not at all.

    An id is made from the place and the quote, so that it is the same in whichever order findings come.
    """
    quotes = {one.id: folded(one.quote) for one in known}
    by_id, taken = {one.id: one for one in known}, set[str]()
    by_place: defaultdict[tuple[str, str], deque[Known]] = defaultdict(deque)
    for one in known:
        by_place[one.path, quotes[one.id]].append(one)
    fresh: dict[bytes, Iterator[str]] = {}
    found: list[tuple[str, Known | None]] = []
    for claim in claims:
        quote = folded(claim.quote)
        same, alike = by_id.get(claim.same_as or ""), by_place[claim.path, quote]
        if same is None or same.id in taken or not _akin(claim.path, quote, same.path, quotes[same.id]):
            while alike and alike[0].id in taken:
                alike.popleft()
            same = alike[0] if alike else None
        digest = hashlib.sha256(f"{claim.path}\0{quote}\0{claim.title}".encode("utf-8", "replace"))
        ids = fresh.setdefault(digest.digest(), _ids(digest))
        identity = same.id if same is not None else next(one for one in ids if one not in taken and one not in by_id)
        taken.add(identity)
        found.append((identity, same))
    return found


def _ids(digest: "hashlib._Hash") -> Iterator[str]:
    """Yield ids for one text: an agent may repeat itself, so each attempt has a digest of its own."""
    for attempt in itertools.count():
        further = digest.copy()
        further.update(f"\0{attempt}".encode() * bool(attempt))
        yield f"F{further.hexdigest()[: 4 + attempt]}"


def _akin(path: str, quote: str, other_path: str, other_quote: str) -> bool:
    """Tell whether two findings can be the same at all: they share the path, or one quote holds the other."""
    shared = bool(quote and other_quote) and (quote in other_quote or other_quote in quote)
    return path == other_path or shared


def judge(
    claims: Sequence[ClaimedFinding],
    seen: Sequence[Seen],
    *,
    known: Sequence[Known],
    round_: int,
    evidence: Evidence,
    delta: Lines | None,
    mended: Lines | None = None,
    again: Mapping[str, Again] | None = None,
) -> tuple[Finding, ...]:
    """Give each finding its id and its state, and say whether it blocks.

    `again` is what the repros of confirmed findings do now. Until they are green, a claim that is not confirmed itself
    changes nothing but makes it graver, whatever it calls the finding; one that is confirmed makes it no lighter.

    Only `blocker` and `major` with evidence block. A confirmed one blocks in any round, wherever it lies; where
    `delta` is given (the lines changed since this judge last looked), a merely located one blocks only if it did so
    before or lies on the delta: advice does not grow into a demand by being repeated. `mended` are the lines that
    repairs changed since its first verdict. Where the quote stands counts, not the line that the judge names.
    """
    stood = {finding.id for finding in known if finding.blocks}
    settled = {finding.id for finding in known if finding.settled}
    found: list[Finding] = []
    for claim, look, (identity, before) in zip(claims, seen, identify(claims, known), strict=True):
        now, severity = (again or {}).get(identity), claim.severity
        if before is not None and now is not None and now.did != "green":
            severity = max(severity, before.severity, key=GRAVITY.index)
            if look.proof != "confirmed":
                found.append(kept(before, now.lines, severity))
                continue
        said = clamped(claim.line)
        lines = look.lines or (said, said)
        fresh = delta is not None and identity not in stood and not _on(delta, claim.path, lines, NEAR)
        proven = look.proof == "confirmed" or (look.proof == "located" and evidence == "located" and not fresh)
        born: State = "born-of-a-fix" if _on(mended or {}, claim.path, lines, 0) else "new"
        state: State = born if before is None else "regression" if identity in settled else "persisting"
        found.append(
            Finding(
                id=identity,
                severity=severity,
                path=claim.path,
                line=lines[0],
                claimed_line=None if said == lines[0] else said,
                evidence=look.proof,
                since=round_ if before is None else before.since,
                blocks=severity in GRAVE and proven,
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


def kept(known: Known, lines: tuple[int, int] | None, severity: Severity | None = None) -> Finding:
    """Return a finding that stands by what Relay saw of it before: its judge says less of it now, or nothing."""
    severity = severity or known.severity
    return Finding(
        id=known.id,
        severity=severity,
        path=known.path,
        line=lines[0] if lines is not None else known.line,
        evidence="confirmed",
        since=known.since,
        blocks=severity in GRAVE,
        state="persisting",
        kept=True,
    )


def settlement(known: Known, lines: tuple[int, int] | None, again: Again | None = None) -> Settlement | None:
    """Say how a finding that its judge no longer names ended; None where it has not.

    `lines` are where its quote stands now. Where Relay saw it fail, `again`, what its repros do now, decides, and no
    edit of the quoted line does. A dispute that the judge had before its eyes lets it let go.
    """
    if again is not None and again.did != "green":
        return "withdrawn" if known.dispute else None
    gone = bool(known.quote) and lines is None
    return "fixed" if again is not None or gone else "withdrawn"


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

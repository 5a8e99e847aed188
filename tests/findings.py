"""Builders of findings: as a judge names them, as they are known from a round before, and as they are judged."""

from relay.rules import findings
from relay.terms import ClaimedFinding, Evidence, Finding, Proof, Repro, Severity


def claim(
    title: str = "wrong", *, severity: Severity = "major", line: int = 50, **fields: str | Repro
) -> ClaimedFinding:
    """Make a finding as a judge names it."""
    told = {"severity": severity, "title": title, "path": "a.py", "line": line, "quote": "return a - b"} | fields
    return ClaimedFinding(**told)  # type: ignore[arg-type]


def known(identity: str = "F0", **fields: object) -> findings.Known:
    """Make a finding of round one."""
    told = {"severity": "major", "title": "wrong", "path": "a.py", "line": 50, "quote": "return a - b", "why": ""}
    return findings.Known(id=identity, **(told | {"since": 1, "blocks": True} | fields))  # type: ignore[arg-type]


def judged(
    *claims: ClaimedFinding,
    proof: Proof = "located",
    before: tuple[findings.Known, ...] = (),
    evidence: Evidence = "located",
    delta: dict[str, list[tuple[int, int]]] | None = None,
    mended: dict[str, list[tuple[int, int]]] | None = None,
    again: dict[str, findings.Again] | None = None,
) -> tuple[Finding, ...]:
    """Judge claims that share one proof."""
    seen = [findings.Seen(proof=proof)] * len(claims)
    return findings.judge(
        claims, seen, known=before, round_=2, evidence=evidence, delta=delta, mended=mended, again=again
    )

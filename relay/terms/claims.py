"""What an agent gives back: claims, all of it."""

from typing import Literal

from relay.terms.words import Severity, Struct


class Reason(Struct, frozen=True, kw_only=True):
    """A decision, or something dropped, and why."""

    what: str
    why: str


class Claim(Struct, frozen=True, kw_only=True):
    """What an agent says holds, and how to check it."""

    criterion: str
    how: str


class Dispute(Struct, frozen=True, kw_only=True):
    """A worker's objection to a finding."""

    finding: str
    why: str
    command: str | None = None


class Quoted(Struct, frozen=True, kw_only=True):
    """A place that a reply says exists."""

    path: str
    quote: str


class WorkReply(Struct, frozen=True, kw_only=True):
    """What a work leg gives back; all of it is a claim."""

    status: Literal["done", "blocked"]
    summary: str = ""
    decisions: tuple[Reason, ...] = ()
    dropped: tuple[Reason, ...] = ()
    claims: tuple[Claim, ...] = ()
    risks: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    disputes: tuple[Dispute, ...] = ()
    existing: tuple[Quoted, ...] = ()
    document: str | None = None
    question: str | None = None


class Repro(Struct, frozen=True, kw_only=True):
    """A command that shows a finding, with the files it needs and what it must do."""

    command: str
    files: dict[str, str] = {}
    expect_exit: int | None = None
    expect_output: str | None = None


class ClaimedFinding(Struct, frozen=True, kw_only=True):
    """One problem as a judge names it, before Relay looked at the evidence."""

    severity: Severity
    title: str
    path: str
    line: int
    quote: str
    why: str = ""
    same_as: str | None = None
    repro: Repro | None = None


class ClaimedCriterion(Struct, frozen=True, kw_only=True):
    """A judge's answer to one criterion."""

    id: str
    met: bool
    command: str | None = None
    path: str | None = None
    quote: str | None = None


class JudgeReply(Struct, frozen=True, kw_only=True):
    """What a judge gives back; `nonce` proves that the reply belongs to this leg."""

    verdict: Literal["approve", "revise", "blocked"]
    nonce: str
    summary: str = ""
    findings: tuple[ClaimedFinding, ...] = ()
    existing: tuple[Quoted, ...] = ()
    criteria: tuple[ClaimedCriterion, ...] = ()
    question: str | None = None


Reply = WorkReply | JudgeReply

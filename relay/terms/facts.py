"""What Relay observed: receipts, and what they are made of."""

from typing import Literal

from relay.terms.words import (
    Act,
    EndedBy,
    Independence,
    Kind,
    Proof,
    Reach,
    Settlement,
    Severity,
    State,
    Struct,
    Verdict,
)


class Change(Struct, frozen=True, kw_only=True):
    """One changed path and its counted lines; both counts are -1 for a binary file."""

    path: str
    added: int
    removed: int


class Check(Struct, frozen=True, kw_only=True):
    """One command that Relay ran; `base_exit` is what it did on the base, where Relay had to know.

    `by` says why it ran: a criterion's id, `checks.NAME`, `relay` for Relay's own look at the tree.
    """

    by: str
    command: str
    exit: int
    seconds: float
    output_sha256: str
    base_exit: int | None = None
    ended: str = "exit"

    @property
    def newly_red(self) -> bool:
        """Tell whether it failed here and did not fail on the base."""
        return self.exit != 0 and self.base_exit in {None, 0}


class CriterionResult(Struct, frozen=True, kw_only=True):
    """How a criterion stands, by whom, and on what evidence: a command, or a place that is quoted and stands."""

    id: str
    met: bool
    by: Literal["relay", "judge", "nobody"]
    command: str | None = None
    exit: int | None = None
    output_sha256: str | None = None
    path: str | None = None
    line: int | None = None


class Finding(Struct, frozen=True, kw_only=True):
    """A finding after Relay looked; `since` is the round in which its id first appeared.

    `line` is where the quote begins; where the judge named another one, that is `claimed_line`. A finding is `kept`
    where the judge no longer names it, and Relay saw its repro fail all the same.
    """

    id: str
    severity: Severity
    path: str
    line: int
    evidence: Proof
    since: int
    blocks: bool
    state: State | None = None
    claimed_line: int | None = None
    kept: bool = False


class Settled(Struct, frozen=True, kw_only=True):
    """A finding of the verdict before that this one no longer has, and why."""

    id: str
    how: Settlement


class Disputed(Struct, frozen=True, kw_only=True):
    """A finding that a worker disputes, and what its command did when Relay ran it."""

    id: str
    command: str | None = None
    exit: int | None = None
    output_sha256: str | None = None


class Placed(Struct, frozen=True, kw_only=True):
    """A place that a reply says exists; `line` is where Relay found its quote, None where it does not stand."""

    path: str
    line: int | None = None


class Swapped(Struct, frozen=True, kw_only=True):
    """What became of the tests between base and head, the `[tests]` of relay.toml.

    `changed` are the test files that differ. `old` ran the base's tests on the new code, `binding` unless the spec says
    `may_change_tests`. `new` ran the new tests on the base's code; `idle` are changed files that pass there as well,
    so they prove nothing. The counts are lines of the diff that look like a test, a skip, an assertion.
    """

    changed: tuple[str, ...] = ()
    old: Check | None = None
    binding: bool = True
    new: Check | None = None
    idle: tuple[str, ...] = ()
    tests_removed: int = 0
    tests_added: int = 0
    skips_added: int = 0
    assertions_removed: int = 0
    assertions_added: int = 0


class Usage(Struct, frozen=True, kw_only=True):
    """What a leg used; `complete` is false where the figures are a lower bound."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    turns: int = 0
    turns_before_first_edit: int = 0
    repeated_reads: int = 0
    complete: bool = True


class Pins(Struct, frozen=True, kw_only=True):
    """What an approval, a rebase or a shipment is about: full ids only."""

    head: str
    base: str
    tree: str
    receipt: str


class Refused(Struct, frozen=True, kw_only=True):
    """A path that Relay would not put into a commit, and why."""

    path: str
    why: str


class Receipt(Struct, frozen=True, kw_only=True):
    """Relay's sealed record of a leg or an act: facts and hashes, no prose of an agent.

    `start` is the commit the leg started from, `base` the run's base at that time, `head` the commit that stands
    afterwards. Times are UTC; `started` and `ended` bound the leg, `seconds` is measured on a monotonic clock. A cost
    of None is one that nobody knows. `reviewed` counts the changed lines that a judge was shown, `independence` says
    why it could judge them, `existing` are the places that the reply names and `tests` what acceptance swapped.
    """

    schema: int
    run: str
    leg: str
    kind: Kind | Literal["act"]
    prev: str
    relay_version: str
    started: str
    ended: str
    seconds: float = 0.0
    round: int = 1
    start: str
    base: str
    head: str
    tree: str
    start_tree: str
    phase: str | None = None
    by: str = "relay"
    agent: str | None = None
    backend: str | None = None
    vendor: str | None = None
    model: str | None = None
    version: str | None = None
    session: str | None = None
    jail: str | None = None
    reach: Reach | None = None
    settings: Literal["none", "user"] | None = None
    changed: tuple[Change, ...] = ()
    refused: tuple[Refused, ...] = ()
    checks: tuple[Check, ...] = ()
    status: Literal["done", "blocked"] | None = None
    asks: bool = False
    document: bool = False
    claimed_verdict: Verdict | None = None
    verdict: Verdict | None = None
    score: str | None = None
    criteria: tuple[CriterionResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    settled: tuple[Settled, ...] = ()
    disputed: tuple[Disputed, ...] = ()
    existing: tuple[Placed, ...] = ()
    tests: Swapped | None = None
    reviewed: int = 0
    independence: Independence | None = None
    breaches: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    crossed: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    notes_read: tuple[str, ...] = ()
    usage: Usage = Usage()
    cost_microusd: int | None = 0
    billing: str | None = None
    ended_by: EndedBy | None = None
    problem: str | None = None
    until: str | None = None
    note_sha256: str | None = None
    reply_sha256: str | None = None
    prompt_sha256: str | None = None
    document_sha256: str | None = None
    act: Act | None = None
    why_sha256: str | None = None
    pins: Pins | None = None
    effect: dict[str, str] | None = None


class Process(Struct, frozen=True, kw_only=True):
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    started: int
    boot: str


class Start(Struct, frozen=True, kw_only=True):
    """start.json: the intent and the circumstances of a leg or a shipment, written before anything happens."""

    schema: int
    run: str
    leg: str
    phase: str | None = None
    act: Act | None = None
    kind: Kind | Literal["act"]
    round: int = 1
    start: str
    base: str
    worktree: str | None = None
    git_dir: str | None = None
    common_dir: str
    pointer_sha256: str | None = None
    nonce: str
    started: str
    relay: Process
    agent: Process | None = None
    fingerprint: dict[str, str] = {}
    baseline: dict[str, str] = {}
    pins: Pins | None = None

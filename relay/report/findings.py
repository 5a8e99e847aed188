"""The findings of a run over its rounds, derived from receipts; only a finding's title is the judge's own word."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import figures
from relay.report import run as runs
from relay.terms import Disputed, Finding, Receipt, Struct

SHORT = 48
"""Characters of a title in the table."""


class Look(Struct, frozen=True, kw_only=True):
    """What became of a finding in one verdict: still there with this state and evidence, or settled."""

    leg: str
    round: int
    result: str
    finding: Finding | None = None

    @property
    def told(self) -> str:
        """Say it in a cell of the table."""
        if self.finding is None:
            return self.result
        kept = " by Relay" * self.finding.kept
        return f"{self.result}, {self.finding.evidence}{kept}{', blocks' * self.finding.blocks}"


class Story(Struct, frozen=True, kw_only=True):
    """One finding through all verdicts of its judge, with what workers objected.

    It is `dropped` where the judge went on without it and there was nothing to settle, since it had no evidence.
    """

    id: str
    phase: str
    agent: str
    title: str
    looks: tuple[Look, ...]
    disputed: tuple[tuple[str, Disputed], ...] = ()
    dropped: bool = False

    @property
    def newest(self) -> Finding:
        """The finding as it was last seen."""
        return next(look.finding for look in reversed(self.looks) if look.finding is not None)

    @property
    def stands(self) -> str:
        """Say how it stands: `open`, `advice`, `fixed`, `withdrawn`, `dropped`, and whether it is disputed."""
        last = self.looks[-1]
        if self.dropped:
            return "dropped"
        now = last.result if last.finding is None else "open" if last.finding.blocks else "advice"
        return now + ", disputed" * bool(self.disputed and last.finding is not None)


class Tally(Struct, frozen=True, kw_only=True):
    """How many findings an agent named, by what they came to."""

    agent: str
    named: int
    confirmed: int
    located: int
    unfounded: int


def stories(ledger: Ledger, run: str) -> list[Story]:
    """Follow each finding through the verdicts of its judge, in the order in which they first came up."""
    chain = ledgers.receipts(ledger, run)
    found: dict[str, Story] = {}
    for sealed in chain:
        names = iter(runs.titles(ledger, sealed)) if sealed.findings else iter(())
        for finding in sealed.findings:
            look = Look(leg=sealed.leg, round=sealed.round, result=finding.state or "named", finding=finding)
            found[finding.id] = _with(found.get(finding.id), finding.id, sealed, look, next(names, ""))
        for one in sealed.settled:
            look = Look(leg=sealed.leg, round=sealed.round, result=one.how)
            found[one.id] = _with(found.get(one.id), one.id, sealed, look, "")
    newest = {sealed.phase: sealed.leg for sealed in chain if sealed.verdict in {"approve", "revise"}}
    return [_ended(story, chain, newest.get(story.phase, "")) for story in found.values()]


def _with(story: Story | None, identity: str, sealed: Receipt, look: Look, title: str) -> Story:
    """Add a look to a story, or begin it."""
    before = story.looks if story is not None else ()
    named = title if look.finding is not None and not look.finding.kept else ""
    return Story(
        id=identity,
        phase=sealed.phase or "",
        agent=sealed.agent or "",
        title=named or (story.title if story is not None else ""),
        looks=(*before, look),
    )


def _ended(story: Story, chain: Sequence[Receipt], newest: str) -> Story:
    """Add who disputed a finding, and with what; `newest` is the last verdict of its judge."""
    last = story.looks[-1]
    return msgspec.structs.replace(
        story,
        disputed=tuple((sealed.leg, one) for sealed in chain for one in sealed.disputed if one.id == story.id),
        dropped=last.finding is not None and last.leg != newest,
    )


def table(told: Sequence[Story]) -> tuple[list[list[str]], list[str]]:
    """Return rows and headers: a line for each finding, a column for each leg that gave a verdict on any."""
    legs = sorted({look.leg for story in told for look in story.looks}, key=lambda leg: int(leg.partition("-")[0]))
    rows = []
    for story in told:
        cells = {look.leg: look.told for look in story.looks}
        place = f"{figures.named(story.newest.path)}:{story.newest.line}"
        title = story.title if len(story.title) <= SHORT else f"{story.title[:SHORT]}..."
        rows.append(
            [story.id, story.newest.severity, place, *(cells.get(leg, "") for leg in legs), story.stands, title]
        )
    return rows, ["finding", "severity", "place", *legs, "now", "title"]


def objections(told: Sequence[Story]) -> list[str]:
    """Tell each dispute, and what its command did when Relay ran it."""
    lines = []
    for story in told:
        for leg, one in story.disputed:
            ran = f": `{one.command}` exited {one.exit}" if one.command else ", without a command"
            lines.append(f"{story.id} disputed by {leg}{ran}")
    return lines


def tallies(chain: Sequence[Receipt]) -> list[Tally]:
    """Count the findings that each agent named, by the evidence that Relay saw; those that Relay kept are not named."""
    named: dict[str, Counter[str]] = {}
    for sealed in chain:
        count = named.setdefault(sealed.agent or "", Counter())
        count.update(finding.evidence for finding in sealed.findings if not finding.kept)
    return [
        Tally(
            agent=agent,
            named=count.total(),
            confirmed=count["confirmed"],
            located=count["located"],
            unfounded=count["unfounded"],
        )
        for agent, count in named.items()
        if count
    ]

"""What all runs of a ledger came to, counted from receipts: how many settle, in how many rounds, at what price."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from relay.record.ledger import Ledger
from relay.report import account, figures, findings
from relay.report.account import SETTLED, Account
from relay.report.figures import Spent
from relay.report.findings import Tally
from relay.terms import Receipt, Struct

UNDECIDED: Final = frozenset({"open", "waiting", "unreadable"})
"""Outcomes that say nothing yet about whether a run settles."""


class Use(Struct, frozen=True, kw_only=True):
    """What the legs of one phase, or one agent, used."""

    name: str
    spent: Spent
    judge: bool = False


class Partial(Struct, frozen=True, kw_only=True):
    """A run that did not settle, and the criteria that hold all the same, such as `3/5`."""

    run: str
    outcome: str
    score: str


class Stats(Struct, frozen=True, kw_only=True):
    """All runs of a ledger, counted; `accounts` are the runs themselves, oldest first."""

    accounts: tuple[Account, ...]
    outcomes: dict[str, int]
    rounds: dict[int, int]
    spent: Spent
    phases: tuple[Use, ...]
    agents: tuple[Use, ...]
    endings: dict[str, int]
    tallies: tuple[Tally, ...]
    partial: tuple[Partial, ...]
    breaches: tuple[tuple[str, str], ...]

    @property
    def decided(self) -> int:
        """Count the runs of which it can be said whether they settled: not those that go on or wait."""
        return sum(number for outcome, number in self.outcomes.items() if outcome not in UNDECIDED)

    @property
    def settled(self) -> int:
        """Count the runs that were accepted, whatever became of them then."""
        return sum(number for outcome, number in self.outcomes.items() if outcome in SETTLED)

    @property
    def settled_rate(self) -> float | None:
        """Return the share of the decided runs that settled; None where none is decided."""
        return self.settled / self.decided if self.decided else None

    @property
    def mean_rounds(self) -> float | None:
        """Return the rounds of a run, on average; None where none had any."""
        count = sum(self.rounds.values())
        return sum(rounds * number for rounds, number in self.rounds.items()) / count if count else None

    @property
    def review_share(self) -> float | None:
        """Return the share of all legs' time that judges took; None where there was no leg."""
        judged = sum(use.spent.seconds for use in self.phases if use.judge)
        return judged / self.spent.seconds if self.spent.seconds else None


def count(ledger: Ledger, runs: Sequence[str]) -> Stats:
    """Count over these runs; one that cannot be read counts as such, and as nothing else."""
    accounts = tuple(account.of(ledger, run) for run in runs)
    chains = [one.glance.chain for one in accounts if one.glance is not None]
    legs = [sealed for chain in chains for sealed in chain if sealed.kind != "act"]
    return Stats(
        accounts=accounts,
        outcomes=dict(Counter(one.stands for one in accounts)),
        rounds=dict(sorted(Counter(one.rounds for one in accounts if one.rounds).items())),
        spent=figures.spent(legs),
        phases=_uses(legs, lambda sealed: sealed.phase or ""),
        agents=_uses(legs, lambda sealed: sealed.agent or ""),
        endings=dict(Counter(sealed.ended_by or "" for sealed in legs).most_common()),
        tallies=tuple(findings.tallies(legs)),
        partial=tuple(
            Partial(run=one.run, outcome=one.stands, score=one.score)
            for one in accounts
            if one.score and one.stands not in SETTLED
        ),
        breaches=tuple((f"{sealed.run}/{sealed.leg}", breach) for sealed in legs for breach in sealed.breaches),
    )


def _uses(legs: Sequence[Receipt], key: Callable[[Receipt], str]) -> tuple[Use, ...]:
    """Add up what legs used by what they have in common, the longest first."""
    names = list(dict.fromkeys(map(key, legs)))
    groups = {name: [sealed for sealed in legs if key(sealed) == name] for name in names}
    found = [
        Use(name=name, spent=figures.spent(group), judge=all(sealed.kind == "judge" for sealed in group))
        for name, group in groups.items()
    ]
    return tuple(sorted(found, key=lambda use: -use.spent.seconds))


def percent(share: float | None) -> str:
    """Write a share; `-` where there is none."""
    return "-" if share is None else f"{100 * share:.0f} %"


def lines(counted: Stats) -> list[str]:
    """Say in a few lines what was counted."""
    mean = "-" if counted.mean_rounds is None else f"{counted.mean_rounds:.1f}"
    told = [
        f"{figures.plural(len(counted.accounts), 'run', 'runs')}: "
        + ", ".join(f"{number} {outcome}" for outcome, number in counted.outcomes.items()),
        f"settled: {counted.settled} of {counted.decided} that are decided, {percent(counted.settled_rate)}",
        f"rounds: {mean} on average"
        + "".join(f"; {rounds}: {figures.plural(runs, 'run', 'runs')}" for rounds, runs in counted.rounds.items()),
        f"in all: {counted.spent.time} of agents, {counted.spent.money}, {figures.tokens(counted.spent.tokens)} tokens",
        f"judges took {percent(counted.review_share)} of the time",
    ]
    odd = {name: number for name, number in counted.endings.items() if name != "reply"}
    if odd:
        told.append("legs that did not end by a reply: " + ", ".join(f"{name} {odd[name]}" for name in odd))
    return told


def uses(found: Sequence[Use], what: str, of: Spent) -> tuple[list[list[str]], list[str]]:
    """Return the table of what phases or agents used, and its headers."""
    rows = [
        [
            use.name,
            str(use.spent.legs),
            use.spent.time,
            percent(use.spent.seconds / of.seconds if of.seconds else None),
            use.spent.money,
            figures.tokens(use.spent.tokens),
        ]
        for use in found
    ]
    return rows, [what, "legs", "time", "share", "cost", "tokens"]


def reviewers(found: Sequence[Tally]) -> tuple[list[list[str]], list[str]]:
    """Return the table of what judges' findings were worth, and its headers."""
    rows = [
        [
            one.agent,
            str(one.named),
            str(one.confirmed),
            str(one.located),
            str(one.unfounded),
            percent(one.unfounded / one.named),
        ]
        for one in found
    ]
    return rows, ["reviewer", "findings", "confirmed", "located", "unfounded", "share"]

"""What all runs of a ledger came to, counted from receipts: how many settle, in how many rounds, at what price."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from relay.record.ledger import Ledger
from relay.report import account, figures, findings
from relay.report import run as runs
from relay.report.account import Account
from relay.report.figures import Spent
from relay.report.findings import Tally
from relay.terms import Receipt, Struct

UNDECIDED: Final = frozenset({"open", "waiting", "needs-human", "unreadable"})
"""Outcomes that say nothing yet about whether a run settles; of a leg that crossed its boundary it is said."""


class Use(Struct, frozen=True, kw_only=True):
    """What the legs of one phase, or one agent, used."""

    name: str
    spent: Spent
    judge: bool = False


class Partial(Struct, frozen=True, kw_only=True):
    """A run that did not settle, whatever became of it, and the criteria that hold all the same, such as `3/5`."""

    run: str
    outcome: str
    score: str


class Stats(Struct, frozen=True, kw_only=True):
    """All runs of a ledger, counted; `accounts` are the runs themselves, oldest first.

    Among the `outcomes` is what a person sent out though nothing accepted it; `forced` says how many runs that is.
    """

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
        """Count the runs of which it can be said whether they settled: not those that go on, or wait for anybody."""
        return sum(one.apart not in UNDECIDED for one in self.accounts)

    @property
    def undecided(self) -> int:
        """Count the other runs."""
        return len(self.accounts) - self.decided

    @property
    def settled(self) -> int:
        """Count the runs that were accepted, whatever became of them then."""
        return sum(one.settled for one in self.accounts)

    @property
    def forced(self) -> int:
        """Count the runs that a person sent out though nothing accepted them."""
        return sum(one.forced for one in self.accounts)

    @property
    def said(self) -> str:
        """List the outcomes, each with its number of runs: `1 accepted, 1 shipped (by hand, not accepted)`."""
        counts = Counter(map(_told, self.accounts))
        return ", ".join(f"{number} {outcome}" for outcome, number in counts.items())

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


def _told(one: Account) -> str:
    """Say how a run stands, all that nothing could check among the others."""
    return one.told.replace(one.outcome, one.stands, 1)


def count(ledger: Ledger, found: Sequence[str]) -> Stats:
    """Count over these runs; one that cannot be read counts as such, and makes of what all took a lower bound."""
    accounts = tuple(account.of(ledger, run) for run in found)
    chains = [one.glance.chain for one in accounts if one.glance is not None]
    legs = [sealed for chain in chains for sealed in chain if sealed.kind != "act"]
    return Stats(
        accounts=accounts,
        outcomes=dict(Counter(one.stands for one in accounts)),
        rounds=dict(sorted(Counter(one.rounds for one in accounts if one.rounds).items())),
        spent=_all(figures.spent(legs), accounts),
        phases=_uses(legs, lambda sealed: sealed.phase or ""),
        agents=_uses(legs, lambda sealed: sealed.agent or ""),
        endings=dict(Counter(sealed.ended_by or "" for sealed in legs).most_common()),
        tallies=tuple(findings.tallies(legs)),
        partial=tuple(
            Partial(run=one.run, outcome=_told(one), score=one.score)
            for one in accounts
            if one.score and not one.settled
        ),
        breaches=tuple((f"{sealed.run}/{sealed.leg}", breach) for sealed in legs for breach in sealed.breaches),
    )


def _all(known: Spent, accounts: Sequence[Account]) -> Spent:
    """Add to what is known the runs of which nothing is."""
    lost = sum(one.glance is None for one in accounts)
    return msgspec.structs.replace(known, unknown=known.unknown + lost, uncounted=known.uncounted + lost, unread=lost)


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
        f"{runs.count(len(counted.accounts), 'run')}: {counted.said}",
        f"settled: {counted.settled} of {counted.decided} that are decided, {percent(counted.settled_rate)}"
        + f"; {counted.undecided} not decided yet" * bool(counted.undecided),
        f"rounds: {mean} on average"
        + "".join(f"; {rounds}: {runs.count(number, 'run')}" for rounds, number in counted.rounds.items()),
        f"in all: {counted.spent.time} of agents, {counted.spent.money}, {counted.spent.volume}",
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
            use.spent.price,
            use.spent.amount,
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

"""What a person is told first of a night, or of a run: how each run stands, what needs them, what to type.

The page and the lines on the terminal (`lines`) say the same, from the same account.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from relay import nights
from relay.host import clock, pids
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import account, figures, raised
from relay.report import run as runs
from relay.report.account import SAID, Account
from relay.report.figures import Spent
from relay.rules import plan as rules
from relay.terms import Alert, Item, Night, Receipt, Struct

ENDED: dict[str, str] = {
    "done": "nothing was left that could be run",
    "until": "the hour came at which it ends",
    "hours": "its hours were used up",
    "usd": "its money was used up",
    "tokens": "its tokens were used up",
    "signal": "it was told to stop",
    "preflight": "something it needs was missing",
    "held": "another process held the repository",
    "missed": "it was too late to begin",
    "bug": "Relay itself failed",
}
"""Why a night ended, in words."""

ORDER = (
    "unreadable",
    "breach",
    "needs-human",
    "accepted",
    "stopped",
    "open",
    "waiting",
    "proposed",
    "proposed-by-hand",
    "shipped",
    "shipped-by-hand",
    "not-accepted",
)
"""Outcomes in the order in which they concern a person."""


class Used(Struct, frozen=True, kw_only=True):
    """A part of a night's purse: what was used of what was given, as text, and the share of it."""

    what: str
    used: str
    given: str
    share: float


class Morning(Struct, frozen=True, kw_only=True):
    """A night, or a run alone: accounts of the runs, what was not run and why, what was raised to a person.

    `shares` are what the night used for each run, which may have used more before it or since. `waiting` are the runs
    from before that a person has to do something for, and that the night could do nothing with. `remarks` were raised
    about a run that is told anyway. `zone` is the one that times are told in, `now` when it was told, a stamp, where
    that is not how the night ended.
    """

    night: Night | None
    accounts: tuple[Account, ...]
    items: dict[str, Item] = {}
    shares: dict[str, Spent] = {}
    skipped: tuple[Item, ...] = ()
    waiting: tuple[Account, ...] = ()
    alerts: tuple[Alert, ...] = ()
    remarks: dict[str, tuple[Alert, ...]] = {}
    spent: Spent = Spent()
    under_way: bool = False
    zone: str = ""
    now: str = ""

    @property
    def yours(self) -> list[Account]:
        """The runs that need a person, those that are in trouble first."""
        return [one for one in self.accounts if one.yours]

    @property
    def headline(self) -> str:
        """Say in a line what came of the runs: `2 need you, 1 accepted, 1 waits for its quota`; and what since then."""
        if not self.accounts:
            left = len(self.waiting)
            over = f", {len(self.skipped)} passed over" * bool(self.skipped)
            return f"nothing ran{over}" + f", {left} wait{'s' * (left == 1)} from before" * bool(left)
        then, now = _counted(map(self.then, self.accounts)), _counted(one.apart for one in self.accounts)
        return now if then == now else f"at its end {then}; now {now}"

    def then(self, one: Account) -> str:
        """Return what a run was counted as when the night ended, as far as that was written down."""
        item = self.items.get(one.run)
        if item is None or not item.outcome or not self.since(one):
            return one.apart
        legs = [sealed for sealed in self._chain(one) if sealed.kind != "act"]
        breached = item.outcome == "needs-human" and bool(legs) and legs[-1].ended_by == "breach"
        return "breach" if breached else item.outcome.split(" ", maxsplit=1)[0]

    def since(self, one: Account) -> bool:
        """Tell whether something became of a run since the night ended, by whoever it was."""
        item, over = self.items.get(one.run), self.night.ended if self.night is not None else None
        if item is None or not item.outcome or over is None:
            return False
        if item.outcome.split(" ", maxsplit=1)[0] != one.stands:
            return True
        return one.glance is not None and any(sealed.ended > over for sealed in one.glance.chain)

    def score(self, one: Account) -> str:
        """Return the criteria that held when the night ended."""
        if not self.since(one):
            return one.score
        return next((sealed.score for sealed in reversed(self._chain(one)) if sealed.score), "")

    def _chain(self, one: Account) -> tuple[Receipt, ...]:
        over = (self.night.ended if self.night is not None else None) or "~"
        chain = one.glance.chain if one.glance is not None else ()
        return tuple(sealed for sealed in chain if sealed.ended <= over)

    def said(self, one: Account) -> str:
        """Say in words how a run stood when the night ended."""
        then = self.then(one)
        return SAID[then][0] if then in SAID and then != one.apart else self.stands(one)

    def stands(self, one: Account) -> str:
        """Say in words how a run stands now, and until when it waits."""
        reset = until(one, self.zone)
        return f"{one.said} until {reset}" if reset else one.said

    def needs(self, one: Account) -> str:
        """Say what a run needs, its times as a person reads them; nothing where its outcome says it."""
        said = "" if one.needs == "approval" else one.needs
        return figures.local(said, self.zone) if one.glance is not None else said

    @property
    def ended(self) -> str:
        """Say why the night ended, or that it did not."""
        if self.night is None:
            return ""
        if self.night.ended is None:
            return "it goes on" if self.under_way else "it was cut short"
        if nights.KILLED in self.night.reason.split("; "):
            return "it was killed"
        why = ENDED.get(self.night.ended_by or "", "")
        return f"{why} ({self.night.reason})" if self.night.reason and why else why or self.night.reason

    @property
    def purse(self) -> list[Used]:
        """What the night used of each limit that it had."""
        if self.night is None:
            return []
        given, found = self.night.purse, []
        if given.usd is not None:
            money = self.spent.microusd / 1_000_000
            found.append(_used("money", self.spent.money, f"${given.usd:.2f}", money, given.usd))
        if given.tokens is not None:
            used = figures.tokens(self.spent.tokens)
            found.append(_used("tokens", used, figures.tokens(given.tokens), self.spent.tokens, given.tokens))
        if given.hours is not None:
            took = self.took
            found.append(_used("time", figures.span(took), figures.span(given.hours * 3600), took, given.hours * 3600))
        return found

    @property
    def took(self) -> float:
        """Return the seconds from the night's begin to its end; 0 where it has none."""
        first = figures.moment(self.night.started) if self.night is not None else None
        last = figures.moment(self.night.ended or "") if self.night is not None else None
        return max(0.0, (last - first).total_seconds()) if first is not None and last is not None else 0.0


def _used(what: str, used: str, given: str, amount: float, limit: float) -> Used:
    return Used(what=what, used=used, given=given, share=min(1.0, amount / limit) if limit > 0 else 1.0)


def _counted(names: Iterable[str]) -> str:
    """Count outcomes in the order in which they concern a person."""
    count = Counter(names)
    return ", ".join(f"{count[name]} {SAID[name][count[name] > 1]}" for name in ORDER if count[name])


def elsewhere(ledger: Ledger) -> str:
    """Return what goes behind `relay` for a reader who does not stand in the repository."""
    return f"-C {shlex.quote(str(ledger.repo.main_top or ledger.repo.common))} "


def until(one: Account, known: str = "") -> str:
    """Say until when a run waits for a quota; `known` is the zone that the reader knows."""
    step = one.glance.step if one.glance is not None else None
    return figures.at(step.until, known) if isinstance(step, rules.Wait) else ""


def of_night(ledger: Ledger, night: Night, at: str = "") -> Morning:
    """Tell a night: each run that it touched once, as that stands now, and what it passed over with the reason."""
    items: dict[str, Item] = {}
    for item in night.items:
        if item.run is not None and item.did != "skipped":
            items[item.run] = _joined(items.get(item.run), item)
    found = [account.of(ledger, run, at) for run in items]
    shares = {one.run: _share(night, one, items[one.run]) for one in found}
    older = waiting(ledger, night, at)
    remarks, alone = raised.told(ledger, at, [*found, *older])
    told = Morning(
        night=night,
        accounts=tuple(sorted(found, key=lambda one: (not one.yours, ORDER.index(one.apart)))),
        items=items,
        shares=shares,
        skipped=tuple(item for item in night.items if item.run is None or item.did == "skipped"),
        waiting=older,
        alerts=alone,
        remarks=remarks,
        spent=Spent(
            microusd=sum(item.microusd for item in night.items),
            tokens=sum(item.tokens for item in night.items),
            seconds=sum(item.seconds for item in night.items),
            unknown=sum(share.unknown for share in shares.values()),
        ),
        under_way=night.relay is not None and pids.alive(night.relay),
        zone=figures.zone(night.started),
    )
    newest = nights.newest(ledger)
    old = night.ended is not None and newest is not None and newest.started > night.started
    return msgspec.structs.replace(told, now=clock.stamp()) if old or any(map(told.since, found)) else told


def waiting(ledger: Ledger, night: Night, at: str = "") -> tuple[Account, ...]:
    """Return the runs from before a night that wait for a person, those that are in trouble first."""
    touched, minute = {item.run for item in night.items}, night.id[: len("261129-0230")]
    older = (run for run in ledgers.runs(ledger) if run not in touched and run[: len(minute)] <= minute)
    found = (account.of(ledger, run, at) for run in older)
    return tuple(sorted((one for one in found if one.yours), key=lambda one: ORDER.index(one.apart)))


def into(chain: Sequence[Receipt]) -> str:
    """Name the branch that a run was shipped into, as a person says it; nothing where it was not."""
    sent = [sealed.effect or {} for sealed in chain if sealed.act == "ship"]
    return sent[-1].get("into", "").removeprefix("refs/heads/") if sent else ""


def _share(night: Night, one: Account, item: Item) -> Spent:
    """Return what a night used for a run: its record has the sums, the receipts say of which legs no cost is known."""
    if one.glance is None:
        return Spent(microusd=item.microusd, tokens=item.tokens, seconds=item.seconds, unknown=1)
    until = night.ended or "~"  # behind every stamp: it goes on, or nobody knows when it ended
    unknown = sum(
        sealed.kind != "act" and sealed.cost_microusd is None and night.started <= sealed.started <= until
        for sealed in one.glance.chain
    )
    return Spent(microusd=item.microusd, tokens=item.tokens, seconds=item.seconds, unknown=unknown)


def of_run(ledger: Ledger, run: str, at: str = "") -> Morning:
    """Tell one run alone, with what was raised about it."""
    one = account.of(ledger, run, at)
    remarks, alone = raised.told(ledger, at, [one])
    mine = tuple(alert for alert in alone if alert.run == run)
    zone = figures.zone(clock.stamp())
    return Morning(night=None, accounts=(one,), alerts=mine, remarks=remarks, spent=one.spent, zone=zone)


def _joined(before: Item | None, item: Item) -> Item:
    """Add up what a night did with one run in several goes; the newest word on it holds."""
    if before is None:
        return item
    return msgspec.structs.replace(
        item,
        microusd=before.microusd + item.microusd,
        tokens=before.tokens + item.tokens,
        seconds=before.seconds + item.seconds,
    )


def summary(told: Morning) -> str:
    """Say in a line how many runs there were, and what they took."""
    parts = [runs.count(len(told.accounts), "run") if told.night is not None else ""]
    parts += [told.spent.money, f"{told.spent.time} of agents"]
    if told.spent.tokens:
        parts.append(f"{figures.tokens(told.spent.tokens)} tokens")
    return ", ".join(filter(None, parts))


def when(night: Night) -> str:
    """Say when a night was: its day, from when to when, in the zone of this machine."""
    until = f" to {figures.hour(night.ended)}" if night.ended else ""
    return f"{figures.day(night.started)}, {figures.hour(night.started)}{until} {figures.zone(night.started)}".rstrip()

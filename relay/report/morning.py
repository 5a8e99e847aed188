"""What a person is told first of a night, or of a run: how each run stands, what needs them, what to type.

The page and the lines on the terminal say the same, from the same account.
"""

import shlex
from collections import Counter
from collections.abc import Sequence

import msgspec

from relay import alerts, nights
from relay.host import pids
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import account, figures
from relay.report import run as runs
from relay.report.account import SAID, Account
from relay.report.figures import Spent
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

SOME = 5
"""Alerts that are told in lines; the others are counted."""

FEW = 3
"""Runs from before a night that are named in lines; the others are counted."""

WIDE = 60
"""Characters of what a run needs that the terminal shows in its table."""


class Used(Struct, frozen=True, kw_only=True):
    """A part of a night's purse: what was used of what was given, as text, and the share of it."""

    what: str
    used: str
    given: str
    share: float


class Morning(Struct, frozen=True, kw_only=True):
    """A night, or a run alone: accounts of the runs, what was not run and why, what was raised to a person.

    `shares` are what the night used for each run, which may have used more before it or since. `waiting` are the runs
    from before that a person has to do something for, and that the night could do nothing with.
    """

    night: Night | None
    accounts: tuple[Account, ...]
    items: dict[str, Item] = {}
    shares: dict[str, Spent] = {}
    skipped: tuple[Item, ...] = ()
    waiting: tuple[Account, ...] = ()
    alerts: tuple[Alert, ...] = ()
    spent: Spent = Spent()
    under_way: bool = False

    @property
    def yours(self) -> list[Account]:
        """The runs that need a person, those that are in trouble first."""
        return [one for one in self.accounts if one.yours]

    @property
    def headline(self) -> str:
        """Say in a line what came of the runs: `2 need you, 1 accepted, 1 waits for its quota`."""
        if not self.accounts:
            left = len(self.waiting)
            return "nothing ran" + f", {left} wait{'s' * (left == 1)} from before" * bool(left)
        count = Counter(one.apart for one in self.accounts)
        said = [f"{count[name]} {SAID[name][count[name] > 1]}" for name in ORDER if count[name]]
        return ", ".join(said)

    @property
    def ended(self) -> str:
        """Say why the night ended, or that it did not."""
        if self.night is None:
            return ""
        if self.night.ended is None:
            return "it goes on" if self.under_way else "it was cut short"
        if nights.KILLED in self.night.reason:
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


def elsewhere(ledger: Ledger) -> str:
    """Return what goes behind `relay` for a reader who does not stand in the repository."""
    return f"-C {shlex.quote(str(ledger.repo.main_top or ledger.repo.common))} "


def of_night(ledger: Ledger, night: Night, at: str = "") -> Morning:
    """Tell a night: each run that it touched once, as that stands now, and what it passed over with the reason."""
    items: dict[str, Item] = {}
    for item in night.items:
        if item.run is not None and item.did != "skipped":
            items[item.run] = _joined(items.get(item.run), item)
    found = [account.of(ledger, run, at) for run in items]
    shares = {one.run: _share(night, one, items[one.run]) for one in found}
    return Morning(
        night=night,
        accounts=tuple(sorted(found, key=lambda one: (not one.yours, ORDER.index(one.stands)))),
        items=items,
        shares=shares,
        skipped=tuple(item for item in night.items if item.run is None or item.did == "skipped"),
        waiting=waiting(ledger, night, at),
        alerts=_raised(ledger, at),
        spent=Spent(
            microusd=sum(item.microusd for item in night.items),
            tokens=sum(item.tokens for item in night.items),
            seconds=sum(item.seconds for item in night.items),
            unknown=sum(share.unknown for share in shares.values()),
        ),
        under_way=night.relay is not None and pids.alive(night.relay),
    )


def waiting(ledger: Ledger, night: Night, at: str = "") -> tuple[Account, ...]:
    """Return the runs from before a night that wait for a person, those that are in trouble first."""
    touched, minute = {item.run for item in night.items}, night.id[: len("261129-0230")]
    older = (run for run in ledgers.runs(ledger) if run not in touched and run[: len(minute)] <= minute)
    found = (account.of(ledger, run, at) for run in older)
    return tuple(sorted((one for one in found if one.yours), key=lambda one: ORDER.index(one.stands)))


def before(found: Sequence[Account], at: str = "") -> list[str]:
    """List what waits from before, the first of it with what to type."""
    if not found:
        return []
    width = max(len(one.stands) for one in found[:FEW])
    lines = [f"  {one.stands:{width}}  {one.commands[0].text if one.commands else one.run}" for one in found[:FEW]]
    left = len(found) - len(lines)
    more = [f"  and {left} more: relay {at}status"] if left else []
    return [f"waiting from before: {runs.count(len(found), 'run')}", *lines, *more]


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
    raised = tuple(alert for alert in _raised(ledger, at) if alert.run == run)
    return Morning(night=None, accounts=(one,), alerts=raised, spent=one.spent)


def _raised(ledger: Ledger, at: str) -> tuple[Alert, ...]:
    """Return what is raised, its commands as the reader can type them."""
    return tuple(
        msgspec.structs.replace(alert, command=alert.command.replace("relay ", f"relay {at}", 1))
        if alert.command.startswith("relay ")
        else alert
        for alert in alerts.all(ledger)
    )


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


def rows(told: Morning) -> tuple[list[list[str]], list[str]]:
    """Return the table of the runs and its headers."""
    found = []
    for one in told.accounts:
        spent = told.shares.get(one.run, one.spent)
        needs = one.brief(WIDE)
        if one.stands == "shipped" and one.glance is not None and (branch := into(one.glance.chain)):
            needs = f"it is in {branch}"
        found.append([one.run, one.told, one.score or "-", spent.money, spent.time, needs])
    return found, ["run", "outcome", "score", "cost", "time", "needs"]


def asked(told: Morning, at: str = "") -> list[str]:
    """List what a person can type, the first command of each run that needs them first; then the oldest alerts."""
    lines = []
    for one in told.yours:
        if one.question:
            lines.append(f"{one.run} asks: {' '.join(one.question.split())[:200]}")
        lines += [f"  {command.text}" for command in one.commands if command.note != "or"]
    for alert in told.alerts[:SOME]:
        lines += [f"{alert.what}", f"  {alert.command}"]
    left = len(told.alerts) - SOME
    return lines + [f"and {runs.count(left, 'more alert')}: relay {at}reap"] * (left > 0)


def passed_over(items: Sequence[Item]) -> list[str]:
    """Say of each entry that was skipped why."""
    return [f"not run: {item.spec or item.run}: {item.reason or 'no reason was recorded'}" for item in items]

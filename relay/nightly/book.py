"""The book of a night: its record, rewritten whenever something happened, and what its legs have used so far."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import msgspec

from relay import nights, runner
from relay.errors import Exit, RelayError
from relay.host import clock, term
from relay.nightly import purse as purses
from relay.record.ledger import Ledger
from relay.report import figures
from relay.rules import night as rules
from relay.rules.night import UNBOUND, Allowance
from relay.terms import Alert, Item, Night, Nightly
from relay.terms.nights import NightEnd

NAMED: Final = 3
"""How many nights of which nobody was told are named by the next; of more, how many there are."""


class Book:
    """Knows of each run and entry what the night did with it; one line each, however often it was taken up.

    A line goes by the run's id, or by the entry's, or the path of a listed spec, as long as there is no run.
    """

    def __init__(self, ledger: Ledger, asked: Nightly, *, scheduled: bool) -> None:
        nights.settle(ledger)
        self._untold = nights.untold(ledger)
        more = len(self._untold) - NAMED
        before = "; ".join([*map(_unheard, self._untold[-NAMED:]), *([f"and of {more} before"] if more > 0 else [])])
        self.night = nights.begin(ledger, asked, scheduled=scheduled, reason=before)
        self.code = Exit.OK
        self._began = clock.now()
        self._taken: dict[str, int] = {}
        self._ledger = ledger
        self._items: dict[str, Item] = {}
        self._allowance: Allowance = UNBOUND
        self._dozes: datetime | None = None

    def give(self, base: str, purse: Nightly, due: datetime | None) -> None:
        """Let the night have this base and this purse; `due` is when a schedule had it begin."""
        self._write(base=base)
        self._allowance = purses.allowance(purse, self._began, due)
        self._write(purse=purse)

    def dozes(self, until: datetime) -> None:
        """Say, once for each hour of a reset, what the night waits for."""
        if until != self._dozes:
            self._dozes = until
            term.say(f"waiting for a quota until {figures.at(clock.stamp(until))}")

    @property
    def left(self) -> Allowance:
        """What the legs that follow may use."""
        money = sum(item.microusd for item in self._items.values())
        tokens = sum(item.tokens for item in self._items.values())
        had = self._allowance
        return msgspec.structs.replace(
            had,
            microusd=None if had.microusd is None else had.microusd - money,
            tokens=None if had.tokens is None else had.tokens - tokens,
        )

    @property
    def end(self) -> datetime | None:
        """When the night ends, where it has a limit of time."""
        return self._allowance.until

    def over(self) -> NightEnd | None:
        """Name the limit that is reached."""
        return self.left.over(clock.now())

    @property
    def order(self) -> runner.Order:
        """What the loop of a run is asked for tonight."""
        return runner.Order(allowance=self.left, notices=False)

    def may(self, run: str) -> bool:
        """Tell whether a run may be taken up: once, and again only where it waited for a quota since."""
        times = self._taken.get(run, 0)
        return times == 0 or (times < rules.TRIES and self._items[run].outcome == "waiting")

    def take(self, key: str) -> None:
        """Count that a run or an entry is taken up; its line comes after those of what was taken up before."""
        self._taken[key] = self._taken.get(key, 0) + 1
        if key in self._items:
            self._items[key] = self._items.pop(key)

    def spare(self, key: str) -> None:
        """Count that what was to be taken up was not, so that it may be tried again."""
        self._taken[key] -= 1
        if not self._taken[key]:
            del self._taken[key]

    def line(self, key: str) -> Item | None:
        """Return what is written of a run or an entry so far."""
        return self._items.get(key)

    def became(self, key: str, run: str) -> None:
        """Let the line of an entry go on as that of the run that it became."""
        self._taken[run] = self._taken.get(key, 0)
        self._items = {run if name == key else name: item for name, item in self._items.items()}

    def put(self, key: str, item: Item) -> None:
        """Write down what became of a run, or of an entry; nothing is written that stands there already."""
        if self._items.get(key) != item:
            self._items[key] = item
            self._write(items=tuple(self._items.values()))

    def skip(self, key: str, reason: str, *, run: str | None = None, spec: str | None = None, waits: bool) -> None:
        """Write down why something was not taken; `waits` says that time will settle it, and nobody need look."""
        if key not in self._taken and self._noted(key, reason, run=run, spec=spec, waits=waits):
            self._write(items=tuple(self._items.values()))

    def _noted(self, key: str, reason: str, *, run: str | None, spec: str | None, waits: bool) -> bool:
        """Enter a line; tell whether anything changed."""
        item = Item(did="skipped", run=run, spec=spec, outcome="waiting" if waits else "", reason=reason)
        known = self._items.get(key) == item
        self._items[key] = item
        return not known

    def skip_all(self, skipped: Iterable[tuple[str, str, str, bool]]) -> None:
        """Write down specs that were not taken, by their keys, with reason and whether time will settle it, at once."""
        new = [(key, spec, reason, waits) for key, spec, reason, waits in skipped if key not in self._taken]
        changed = [self._noted(key, reason, run=None, spec=spec, waits=waits) for key, spec, reason, waits in new]
        if any(changed):
            self._write(items=tuple(self._items.values()))

    def raised(self, alerts: Sequence[Alert]) -> None:
        """Write down what was raised to a person just now."""
        if alerts:
            self._write(alerts=(*self.night.alerts, *(alert.key for alert in alerts)))

    def close(self, ended_by: NightEnd, reason: str) -> None:
        """Write down that the night is over, and why."""
        said = "; ".join(filter(None, (self.night.reason, reason)))
        self._write(reason=said, ended=clock.stamp(), ended_by=ended_by)

    def told(self) -> None:
        """Write down that a person was told of the night, and with it of those before that nobody heard of."""
        self._write(told=True)
        with suppress(RelayError):  # then they are named once more
            for night in self._untold:
                nights.tell(self._ledger, night)

    def _write(self, **fields: object) -> None:
        self.night = msgspec.structs.replace(self.night, **fields)
        try:
            nights.write(self._ledger, self.night)
        except RelayError as error:  # a full disk ends a night by its own rule; the next write has all of it
            term.error(error)


def _unheard(night: Night) -> str:
    """Say of a night before that nobody was told how it went."""
    if nights.KILLED in night.reason.split("; "):
        return f"the night before, `{night.id}`, was killed"
    return f"perhaps nobody was told of the night before: relay report --night {night.id}"

"""What a night decides: which entry is next and why another is not, when the purse is used up, what it cut short."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final

import msgspec

from relay.errors import RelayError
from relay.terms import EndedBy, Entry, Limits, Receipt, Struct, Usage
from relay.terms.nights import NightEnd

LATE: Final = timedelta(minutes=90)
"""How late a night that the machine slept through may still begin, where `missed = "skip"`."""

TRIES: Final = 4
"""How often one night goes on with the same run: a service that always says `soon` would else be a loop."""

OVER: Final = frozenset({"shipped", "not-accepted", "proposed"})
"""Outcomes of a run that Relay itself has nothing more to do for."""

NEVER: Final = frozenset({"not-accepted", "stopped"})
"""Outcomes after which nothing is shipped unless a person changes their mind."""


SECOND: Final = timedelta(seconds=1)
"""The least that a leg is given."""


class Past(Struct, frozen=True, kw_only=True):
    """What the queue must know of a run: where its spec came from, what it was, which entry it took, how it stands.

    `created` is a stamp in UTC.
    """

    run: str
    sha256: str
    source: str | None = None
    queued: str | None = None
    created: str = ""
    outcome: str = "unreadable"


class Candidate(Struct, frozen=True, kw_only=True):
    """One spec that a night may take: an entry of the queue, or a file that relay.toml lists; `blocked` says why not.

    `waits` tells what time or another run will settle from what only a person can.
    """

    spec: str
    sha256: str
    entry: Entry | None = None
    blocked: str = ""
    waits: bool = False


def ordered(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries in the order in which they are taken."""
    return tuple(sorted(entries, key=lambda entry: (-entry.priority, entry.place, entry.id)))


def candidate(entry: Entry, now: datetime, queued: Collection[str], pasts: Sequence[Past]) -> Candidate:
    """Say of an entry whether it is due; `queued` are the specs in the queue, `pasts` all runs, oldest first."""
    why, waits = "", True
    if entry.not_before is not None and datetime.fromisoformat(entry.not_before) > now:
        why = f"not before {entry.not_before}"
    elif entry.after is not None:
        why, waits = _after(entry.after, queued, pasts)
    return Candidate(spec=entry.spec, sha256=entry.sha256, entry=entry, blocked=why, waits=waits and bool(why))


def _after(wanted: str, queued: Collection[str], pasts: Sequence[Past]) -> tuple[str, bool]:
    """Say why what an entry comes after is not out yet: only what is shipped stands in the base that it starts from."""
    named = [past for past in pasts if past.run == wanted]
    if not named and wanted in queued:
        return f"after `{wanted}`, which is queued", True
    found = named or [past for past in pasts if past.source == wanted]
    if not found:
        return f"after `{wanted}`, which is neither queued nor a run", False
    newest = found[-1]
    if newest.outcome == "shipped":
        return "", False
    return f"after `{newest.run}`, which is {newest.outcome}", newest.outcome not in NEVER


def listed(source: str, sha256: str, pasts: Sequence[Past]) -> Candidate | None:
    """Say of a spec that relay.toml lists whether it is to run; None where this very text has had its run."""
    if any(past.sha256 == sha256 for past in pasts):
        return None
    going = [past for past in pasts if past.source == source and past.outcome not in OVER]
    why = f"its text changed, and `{going[-1].run}` of the text before is {going[-1].outcome}" if going else ""
    return Candidate(spec=source, sha256=sha256, blocked=why, waits=bool(why))


class Allowance(Struct, frozen=True, kw_only=True):
    """What the legs that follow may use in all: millionths of a dollar, tokens, and the time at which they end.

    `ends` says which limit of the night that time is.
    """

    microusd: int | None = None
    tokens: int | None = None
    until: datetime | None = None
    ends: NightEnd = "until"

    def after(self, legs: Iterable[Receipt]) -> "Allowance":
        """Return what is left once these legs are paid; a cost that nobody knows counts as none."""
        money, tokens = used(legs)
        return msgspec.structs.replace(
            self,
            microusd=None if self.microusd is None else self.microusd - money,
            tokens=None if self.tokens is None else self.tokens - tokens,
        )

    def over(self, now: datetime) -> NightEnd | None:
        """Name the limit that is reached, so that no further leg may begin.

        Moments are whole seconds: with less than one left the end may have come, and no leg could have its one.
        """
        if self.until is not None and self.until - now < SECOND:
            return self.ends
        if self.microusd is not None and self.microusd <= 0:
            return "usd"
        return "tokens" if self.tokens is not None and self.tokens <= 0 else None

    def bound(self, own: Limits, now: datetime) -> Limits:
        """Return a leg's limits, no wider than what is left; an agent that starts has a second at least."""
        left = own.seconds if self.until is None else max(1.0, (self.until - now).total_seconds())
        return msgspec.structs.replace(
            own,
            seconds=min(own.seconds, left),
            tokens=_least(own.tokens, self.tokens),
            microusd=_least(own.microusd, self.microusd),
        )


UNBOUND: Final = Allowance()
"""What a person's own run may use: as much as its budget says."""


def _least(*caps: int | None) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)


def used(legs: Iterable[Receipt]) -> tuple[int, int]:
    """Return the known millionths of a dollar and the tokens that legs used."""
    taken = [leg for leg in legs if leg.kind != "act"]
    return (
        sum(leg.cost_microusd or 0 for leg in taken),
        sum(leg.usage.input + leg.usage.output for leg in taken),
    )


def cut(ended_by: EndedBy, usage: Usage, cost: int | None, own: Limits, given: Limits) -> str:
    """Say which bound of the night, and no bound of its own, ended a leg; an empty string where none did."""
    if ended_by == "timeout" and given.seconds < own.seconds:
        return "the night's end came"
    if ended_by != "budget" or (own.turns is not None and usage.turns >= own.turns):
        return ""
    if given.tokens != own.tokens and usage.input + usage.output >= (given.tokens or 0):
        return "the night's tokens are used up"
    if given.microusd == own.microusd or (own.tokens is not None and usage.input + usage.output >= own.tokens):
        return ""
    if cost is None:
        return "the night has a bound on money, which cannot be kept where nobody knows the price"
    return "the night's money is used up"


def missed(due: datetime, now: datetime) -> bool:
    """Tell whether a scheduled night begins so late that it counts as slept through."""
    return now - due > LATE


def asleep(waiting: Mapping[str, datetime], end: datetime | None) -> datetime | None:
    """Return the first reset that is worth waiting for: before the night's end, where it has one."""
    first = min(waiting.values(), default=None)
    return first if first is not None and end is not None and first < end else None


def moment(text: str, now: datetime) -> datetime:
    """Read a person's time: `22:00` is the next one, `2026-12-01` its midnight, `2026-12-01T22:00` itself; all local.

    A time that the clocks skip is as much later; one that comes twice is the first that is not over. `RelayError` for
    everything else.
    """
    try:
        if len(text) <= len("22:00:00") and ":" in text:
            at = time.fromisoformat(text)
            today = now.astimezone(at.tzinfo).date()
            wanted = [datetime.combine(today + timedelta(days=ahead), at) for ahead in range(3)]
            return next(found for found in _moments(wanted) if found > now)
        found = [*_moments([datetime.fromisoformat(text)])]
        return next((one for one in found if one > now), found[0])
    except (ValueError, OverflowError, StopIteration):
        hint = "write 22:00, 2026-12-01 or 2026-12-01T22:00, in local time"
        raise RelayError(f"`{text}` is not a time", hint=hint) from None


def _moments(local: Iterable[datetime]) -> Iterator[datetime]:
    """Yield local times as UTC, each as it first comes and as it comes again where the clocks go back (PEP 495).

    By its timestamp, since `astimezone` goes back where the clocks go forward.
    """
    for one in local:
        for fold in (0, 1):
            yield datetime.fromtimestamp(one.replace(fold=fold).timestamp(), UTC)

"""Figures as people read them on a page: spans of time, amounts of money, tokens, moments of the day."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from relay.host import clock
from relay.report import run as runs
from relay.terms import Receipt, Struct

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86400


class Spent(Struct, frozen=True, kw_only=True):
    """What some legs used: money as far as it is known, `unknown` legs that nobody knows the cost of."""

    microusd: int = 0
    unknown: int = 0
    tokens: int = 0
    seconds: float = 0.0
    legs: int = 0

    @property
    def money(self) -> str:
        """Say what it cost; a sum with an unknown part is a lower bound."""
        if self.unknown and not self.microusd:
            return runs.dollars(None)
        return "at least " * bool(self.unknown) + runs.dollars(self.microusd)

    @property
    def time(self) -> str:
        """Say how long it took."""
        return span(self.seconds)


def spent(legs: Iterable[Receipt]) -> Spent:
    """Add up what legs used; acts use nothing."""
    taken = [sealed for sealed in legs if sealed.kind != "act"]
    return Spent(
        microusd=sum(sealed.cost_microusd or 0 for sealed in taken),
        unknown=sum(sealed.cost_microusd is None for sealed in taken),
        tokens=sum(sealed.usage.input + sealed.usage.output for sealed in taken),
        seconds=sum(sealed.seconds for sealed in taken),
        legs=len(taken),
    )


def span(seconds: float) -> str:
    """Write a span in its two largest units: `0.4 s`, `42 s`, `12 min`, `1 h 04 min`, `2 d 3 h`."""
    if seconds < MINUTE:
        return f"{seconds:.1f} s" if 0 < seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004 - two digits say enough
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    if seconds < DAY:
        minutes = round(seconds / MINUTE)
        return f"{minutes // 60} h {minutes % 60:02} min"
    hours = round(seconds / HOUR)
    return f"{hours // 24} d {hours % 24} h"


def tokens(number: int) -> str:
    """Write a number of tokens: `820`, `12k`, `1.2M`."""
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}" if number < 10 * size else f"{number / size:.0f}{letter}"
    return str(number)


def moment(stamp: str) -> datetime | None:
    """Read a stamp as this machine's local time; None where it is none."""
    try:
        return clock.parse(stamp).astimezone()
    except ValueError:
        return None


def hour(stamp: str) -> str:
    """Write the local hour and minute of a stamp; one that cannot be read as it stands."""
    at = moment(stamp)
    return at.strftime("%H:%M") if at is not None else stamp


def day(stamp: str) -> str:
    """Write the local day of a stamp: `Sunday, 29 November 2026`."""
    at = moment(stamp)
    return f"{at:%A}, {at.day} {at:%B %Y}" if at is not None else stamp


def zone(stamp: str) -> str:
    """Name the zone that `hour` and `day` are in."""
    at = moment(stamp)
    return (at.tzname() or "") if at is not None else ""


def plural(number: int, one: str, many: str) -> str:
    """Choose between a word for one and a word for any other number, the number before it."""
    return f"{number} {one if number == 1 else many}"

"""Figures as people read them on a page: spans of time, amounts of money, tokens, moments of the day."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from relay.host import clock
from relay.report import run as runs
from relay.terms import Receipt, Struct

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86400

UNSEEN: Final = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"
"""Letters that are not seen, or turn the direction of others, as a part of a regular expression."""

_STAMP: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)(?!\w)")

_ODD: Final = re.compile(f"[\0-\x1f\x7f-\x9f\u2028\u2029\ufdd0-\ufdef{UNSEEN}]")


class Spent(Struct, frozen=True, kw_only=True):
    """What some legs used: money as far as it is known, `unknown` legs that nobody knows the cost of.

    `uncounted` are legs whose tokens nobody counted, `unread` runs of which nothing is known, as they cannot be read.
    """

    microusd: int = 0
    unknown: int = 0
    tokens: int = 0
    seconds: float = 0.0
    legs: int = 0
    uncounted: int = 0
    unread: int = 0

    @property
    def money(self) -> str:
        """Say what it cost; a sum with an unknown part is a lower bound."""
        if self.unknown and not self.microusd:
            return runs.dollars(None)
        return "at least " * bool(self.unknown) + runs.dollars(self.microusd)

    @property
    def price(self) -> str:
        """Say it in a column of costs, whose header says what it is."""
        return self.money.removeprefix("cost ")

    @property
    def time(self) -> str:
        """Say how long it took."""
        if self.unread and not self.seconds:
            return "unknown time"
        return "at least " * bool(self.unread) + span(self.seconds)

    @property
    def amount(self) -> str:
        """Say how many tokens it took; those that nobody counted are no nought."""
        if self.uncounted and not self.tokens:
            return "unknown"
        return "at least " * bool(self.uncounted) + tokens(self.tokens)

    @property
    def volume(self) -> str:
        """Say it with its word."""
        return "tokens unknown" if self.amount == "unknown" else f"{self.amount} tokens"


def spent(legs: Iterable[Receipt]) -> Spent:
    """Add up what legs used; acts use nothing, and tokens of a leg without any were counted where its cost was."""
    taken = [sealed for sealed in legs if sealed.kind != "act"]
    return Spent(
        microusd=sum(sealed.cost_microusd or 0 for sealed in taken),
        unknown=sum(sealed.cost_microusd is None for sealed in taken),
        tokens=sum(map(_tokens, taken)),
        seconds=sum(sealed.seconds for sealed in taken),
        legs=len(taken),
        uncounted=sum(sealed.cost_microusd is None and not _tokens(sealed) for sealed in taken),
    )


def _tokens(leg: Receipt) -> int:
    return leg.usage.input + leg.usage.output


def span(seconds: float) -> str:
    """Write a span to two digits or more: `0.4 s`, `42 s`, `1 min 19 s`, `12 min`, `1 h 04 min`, `2 d 3 h`."""
    if seconds < 10:  # noqa: PLR2004 - two digits say enough
        return f"{seconds:.1f} s" if seconds > 0 else "0 s"
    if seconds < 10 * MINUTE:
        minutes, rest = divmod(round(seconds), MINUTE)
        return f"{minutes} min" + f" {rest:02} s" * bool(rest) if minutes else f"{rest} s"
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


def at(stamp: str, known: str = "") -> str:
    """Write a stamp as a local day and hour: `2026-12-01 22:00 EST`, without the zone that the reader knows already."""
    found = moment(stamp)
    if found is None:
        return stamp
    there = found.tzname() or ""
    return f"{found:%Y-%m-%d %H:%M:%S}".removesuffix(":00") + f" {there}" * (bool(there) and there != known)


def local(text: str, known: str = "") -> str:
    """Write each stamp that stands in a text of Relay's as a person reads it; files and events keep theirs in UTC."""
    return _STAMP.sub(lambda found: at(found[0], known), text)


def plural(number: int, one: str, many: str) -> str:
    """Choose between a word for one and a word for any other number, the number before it."""
    return f"{number} {one if number == 1 else many}"


def named(path: str) -> str:
    """Write a path with the numbers of its letters that are not seen, or that would turn others or end the line."""
    return _ODD.sub(lambda found: f"<U+{ord(found[0]):04X}>", path)

"""In which zone a schedule is read, and whether the clocks of that zone ever pass over it, or pass it twice."""

import os
import re
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from relay.errors import RelayError
from relay.schedule.due import Line
from relay.terms import Struct

LOCALTIME: Final = Path("/etc/localtime")
AHEAD: Final = timedelta(days=2 * 366)
"""How far ahead changes of the clock are looked for; governments seldom announce them earlier."""


class Change(Struct, frozen=True, kw_only=True):
    """One change of a zone's clock: the walls show every time from `low` on, and before `high`, twice or never."""

    low: datetime
    high: datetime
    twice: bool


def named(name: str) -> ZoneInfo:
    """Return a zone by its name in the time zone database."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise RelayError(f"there is no time zone `{name}` here", hint="name one, as in --zone Europe/Berlin") from None


def machine(localtime: Path = LOCALTIME) -> tzinfo:
    """Return the zone of the machine: what starts the nights knows nothing of the `TZ` of somebody's shell."""
    found = re.search(r"/zoneinfo[^/]*/(?:posix/|right/)?(.+)", os.path.realpath(localtime))
    try:
        if found:
            return ZoneInfo(found[1])
        with localtime.open("rb") as stream:
            return ZoneInfo.from_file(stream)
    except (OSError, ValueError, KeyError):
        return UTC


def of(name: str | None) -> tzinfo:
    """Return the zone of that name, the machine's where there is none."""
    return machine() if name is None else named(name)


def name(zone: tzinfo) -> str:
    """Return the zone's name, `""` where it has none."""
    return getattr(zone, "key", None) or ("UTC" if zone is UTC else "")


def changes(zone: tzinfo, now: datetime) -> list[Change]:
    """Return the changes of the zone's clock in the next two years, each with the times on the wall that it touches."""
    found = []
    day = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    end = day + AHEAD
    while day < end:
        following = day + timedelta(days=1)
        before, after = _offset(zone, day), _offset(zone, following)
        if before != after:
            at = _exactly(zone, day, following).replace(tzinfo=None)
            low, high = sorted((at + before, at + after))
            found.append(Change(low=low, high=high, twice=after < before))
        day = following
    return found


def _offset(zone: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _exactly(zone: tzinfo, low: datetime, high: datetime) -> datetime:
    """Return the first minute at which the clock between two moments is the later one's."""
    before = _offset(zone, low)
    while high - low > timedelta(minutes=1):
        middle = low + (high - low) // 2
        middle = middle.replace(second=0, microsecond=0)
        low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
    return high


def warning(line: Line, zone: tzinfo, now: datetime) -> str:
    """Say which of a line's times a change of the clock touches, `""` where none is; every hour is nobody's hour."""
    if len(line.hours) == 24:  # noqa: PLR2004 - hours of a day
        return ""
    said = []
    for change in changes(zone, now):
        minute = change.low
        while minute < change.high:
            if minute.hour in line.hours and minute.minute in line.minutes:
                times = "is there twice" if change.twice else "is not there at all"
                said.append(f"{minute:%H:%M} {times} on {minute:%Y-%m-%d}")
                break
            minute += timedelta(minutes=1)
    where = name(zone) or "this zone"
    return f"clocks change in {where}: {', '.join(said[:2])}; no zone changes its clock at 04:17" if said else ""


def same(name: str, zone: tzinfo, now: datetime) -> bool:
    """Tell whether a zone by that name shows the time of another, now and after every change that is known."""
    try:
        other = ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return False
    return _offset(other, now) == _offset(zone, now) and changes(other, now) == changes(zone, now)

"""When a cron line is due, by cronsim: five fields, as Debian's cron reads them, right over every change of the clock.

Python starts no night; this says when the machine's own scheduler will, and when it should have (pitfalls.md, "Which
library for cron expressions").
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from relay.errors import RelayError
from relay.terms import Struct

NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
HINT: Final = 'give five fields, a name or a time: "17 4 * * *", @daily, 02:30'
CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
MONTHS: Final = {name: at for at, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}  # noqa: SIM905 - as in cron(5)
WEEKDAYS: Final = {name: at for at, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}  # noqa: SIM905 - as above
FIELDS: Final[tuple[tuple[str, int, dict[str, int]], ...]] = (
    ("minute", 59, {}),
    ("hour", 23, {}),
    ("day of the month", 31, {}),
    ("month", 12, MONTHS),
    ("day of the week", 7, WEEKDAYS),
)
TERM: Final = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?", re.ASCII)
NEAR: Final = timedelta(hours=3)
"""No clock is put forward or back by more; what a change moved lies this near to where the line has it."""


class Line(Struct, frozen=True, kw_only=True):
    """A cron line: its text in numbers alone, and the values that each field allows; Sunday is 0.

    `either` says that a day need match only one of its two fields, as cron has it where neither begins with a star.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either: bool


def read(text: str) -> Line:
    """Read a cron line, one of its names, or a time of the day; what no scheduler could say is a `RelayError`."""
    from cronsim import CronSim, CronSimError  # 12 ms

    words = _words(text)
    plain = [_plain(word, *field) for word, field in zip(words, FIELDS, strict=True)]
    try:
        parsed = CronSim(" ".join(plain), datetime(2026, 1, 1, tzinfo=UTC))
        next(parsed)
    except CronSimError as error:
        raise RelayError(f"`{text}` is not a cron line: {str(error).lower()}", hint=HINT) from None
    except StopIteration:
        raise RelayError(f"`{text}` is never due", hint=HINT) from None
    return Line(
        text=" ".join(plain),
        minutes=tuple(sorted(parsed.minutes)),
        hours=tuple(sorted(parsed.hours)),
        days=tuple(sorted(parsed.days)),
        months=tuple(sorted(parsed.months)),
        weekdays=tuple(sorted({day % 7 for day in parsed.weekdays if isinstance(day, int)})),
        either=not parsed.day_and,
    )


def _words(text: str) -> list[str]:
    """Return the five fields; six are refused, since no two programs agree where the seconds stand."""
    stripped = text.strip()
    if clock := CLOCK.fullmatch(stripped):
        return [str(int(clock[2])), str(int(clock[1])), "*", "*", "*"]
    if stripped.startswith("@"):
        if stripped.lower() not in NAMED:
            names = ", ".join(NAMED)
            raise RelayError(f"`{stripped}` is not a name of a time", hint=f"the names are {names}")
        stripped = NAMED[stripped.lower()]
    words = stripped.upper().split()
    if len(words) != len(FIELDS):
        raise RelayError(f"`{text}` has {len(words)} fields, and a cron line has five", hint=HINT)
    return words


def _plain(field: str, what: str, most: int, names: dict[str, int]) -> str:
    """Return a field in numbers; `5/15` becomes `5-59/15`, which every cron reads alike."""
    terms = []
    for term in field.split(","):
        match = TERM.fullmatch(term)
        if match is None:
            raise RelayError(f"`{field}` is not a {what} that cron reads", hint=HINT)
        first, end = (str(names.get(word, word)) if word else word for word in match.group(1, 2))
        if not all(word in {None, "*"} or word.isdigit() for word in (first, end)) or (first == "*" and end):
            raise RelayError(f"`{field}` is not a {what} that cron reads", hint=HINT)
        step = match[3] and str(int(match[3]))
        if step and not end and first != "*":
            end = str(most)
        terms.append(f"{first}{f'-{end}' if end else ''}{f'/{step}' if step else ''}")
    return ",".join(terms)


def last(line: Line, now: datetime, *, skips: bool = False) -> datetime | None:
    """Return when the line was due last, at `now` or before; `now` carries the zone in which it is read.

    What falls into a gap of the clock is due when the gap ends; `skips` says that it is not due that day at all, which
    is what systemd does.
    """
    present = now.astimezone(UTC)
    found = next((one for one in _moments(line, now, back=True, skips=skips) if one <= present), None)
    return None if found is None else found.astimezone(now.tzinfo)


def coming(line: Line, now: datetime, count: int = 1, *, skips: bool = False) -> list[datetime]:
    """Return the next times after `now` at which the line is due, in the zone of `now`; `skips` as for `last`."""
    found: list[datetime] = []
    newest = now.astimezone(UTC)
    moments = _moments(line, now, back=False, skips=skips)
    while len(found) < count and (moment := next(moments, None)) is not None:
        if moment > newest:
            newest = moment
            found.append(moment.astimezone(now.tzinfo))
    return found


def _moments(line: Line, now: datetime, *, back: bool, skips: bool) -> Iterator[datetime]:
    """Yield moments in UTC from a little beyond `now`, forwards or back: cronsim itself goes by the clock on the wall.

    There the second 02:15 of an autumn night lies before the first 02:30, so both sides of `now` are looked at.
    """
    from cronsim import CronSim

    start = (now.astimezone(UTC) + (NEAR if back else -NEAR)).astimezone(now.tzinfo)
    for moment in CronSim(line.text, start, reverse=back):
        if not (skips and _skipped(line, moment)):
            yield moment.astimezone(UTC)


def _skipped(line: Line, moment: datetime) -> bool:
    """Tell whether systemd leaves a moment out: it was moved out of a gap of the clock, or lies behind one.

    Where the day's first time is in the gap, systemd goes on from as long behind it as the gap is, so one of two hours
    swallows times that are there. Where the clock goes forward into standard time, as in Dublin, it gives the day up.
    Both were counted with systemd 252.
    """
    if moment.hour not in line.hours or moment.minute not in line.minutes:
        return True
    midnight = moment.replace(hour=0, minute=0, fold=0)
    if _offset(moment) - _offset(midnight) < timedelta(hours=1):
        return False
    first = midnight.replace(hour=line.hours[0], minute=line.minutes[0])
    there = first.astimezone(UTC).astimezone(moment.tzinfo).replace(tzinfo=None)
    moved = there > first.replace(tzinfo=None)
    return moved and (there > moment.replace(tzinfo=None) or not moment.dst())


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or timedelta()

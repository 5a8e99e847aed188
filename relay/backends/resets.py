"""When a limit ends, as services say it: what no calendar has, or nobody waits for, is no time at all."""

import math
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from relay.host import clock

FAR: Final = timedelta(days=3660)
"""No limit lasts longer, or ended longer ago."""


def wait(seconds: float | str) -> float | None:
    """Return a wait in seconds; None where nobody would wait that long, or a text says no number."""
    try:
        value = float(seconds)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and 0 <= value <= FAR.total_seconds() else None


def left(text: str) -> float | None:
    """Return the seconds until a moment that a header names, as HTTP or as ISO 8601 writes it; 0 where it is past."""
    for read in (parsedate_to_datetime, clock.parse):
        with suppress(ValueError, TypeError, OverflowError):
            return wait(max((read(text) - clock.now()).total_seconds(), 0.0))
    return None


def stamp(moment: object) -> str | None:
    """Return a moment as it stands in every file: of a text, or of seconds since 1970; None where it is none."""
    if isinstance(moment, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", moment):
        moment = float(moment)
    try:
        if isinstance(moment, str):
            found = clock.parse(moment)
        elif isinstance(moment, int | float) and not isinstance(moment, bool):
            found = datetime.fromtimestamp(moment, UTC)
        else:
            return None
        return clock.stamp(found) if abs(found - clock.now()) <= FAR else None
    except (ValueError, OverflowError, OSError):
        return None


def after(seconds: object) -> str | None:
    """Return the moment so many seconds from now; None where that is no time to wait."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or (value := wait(seconds)) is None:
        return None
    return clock.stamp(clock.now() + timedelta(seconds=value))

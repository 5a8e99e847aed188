"""The purse of a night: relay.toml's, with what was asked for on the command line, and what that allows a leg."""

from datetime import datetime, timedelta
from typing import Final

from relay.errors import RelayError
from relay.rules import night
from relay.rules.night import Allowance
from relay.terms import Nightly

MOST_USD: Final = 1e9
MOST_HOURS: Final = 24 * 366
"""What no purse is larger than: `inf` and `nan` can be written, and cannot be reckoned with."""


def of(written: Nightly, asked: Nightly) -> Nightly:
    """Return the limits of a night: each that was asked for goes before the one that is written."""
    fields = Nightly.__struct_fields__
    given = {name: getattr(asked, name) for name in fields if getattr(asked, name) is not None}
    purse = Nightly(**{name: getattr(written, name) for name in fields} | given)
    for name, most in (("usd", MOST_USD), ("hours", MOST_HOURS)):
        if not 0 < (getattr(purse, name) or 1) <= most:
            hint = f"leave `{name}` out where there is no limit"
            raise RelayError(f"`{name}` is `{getattr(purse, name)}`, not above 0 and at most {most:g}", hint=hint)
    return purse


def allowance(purse: Nightly, started: datetime, due: datetime | None = None) -> Allowance:
    """Return what the legs of a night that began then may use in all; of two ends the first one counts.

    The hour at which it ends is the next one after it was `due`: a night that the machine slept through, and that
    begins only after that hour, has its end behind it, and not a whole day before it.
    """
    hour = None if purse.until is None else _hour(purse.until, due or started)
    hours = None if purse.hours is None else started + timedelta(hours=purse.hours)
    first = min((end for end in (hour, hours) if end is not None), default=None)
    return Allowance(
        microusd=None if purse.usd is None else int(purse.usd * 1_000_000),
        tokens=purse.tokens,
        until=first,
        ends="hours" if first is not None and first == hours else "until",
    )


def _hour(text: str, begins: datetime) -> datetime:
    """Return the moment at which a night that was to begin then ends by the clock."""
    ends = night.moment(text, begins)
    if ends <= begins:
        raise RelayError(f"the night cannot end at `{text}`: that is over", hint="relay nightly --until 07:00")
    return ends

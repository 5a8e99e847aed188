"""The purse of a night: relay.toml's, with what was asked for on the command line, and what that allows a leg."""

from datetime import datetime, timedelta

from relay.errors import RelayError
from relay.rules import night
from relay.rules.night import Allowance
from relay.terms import Nightly


def of(written: Nightly, asked: Nightly) -> Nightly:
    """Return the limits of a night: each that was asked for goes before the one that is written."""
    fields = Nightly.__struct_fields__
    given = {name: getattr(asked, name) for name in fields if getattr(asked, name) is not None}
    return Nightly(**{name: getattr(written, name) for name in fields} | given)


def allowance(purse: Nightly, started: datetime) -> Allowance:
    """Return what the legs of a night that began then may use in all; of two ends the first one counts."""
    hour = None if purse.until is None else _hour(purse.until, started)
    hours = None if purse.hours is None else started + timedelta(hours=purse.hours)
    first = min((end for end in (hour, hours) if end is not None), default=None)
    return Allowance(
        microusd=None if purse.usd is None else int(purse.usd * 1_000_000),
        tokens=purse.tokens,
        until=first,
        ends="hours" if first is not None and first == hours else "until",
    )


def _hour(text: str, started: datetime) -> datetime:
    """Return the moment at which a night that began then ends by the clock."""
    ends = night.moment(text, started)
    if ends <= started:
        raise RelayError(f"the night cannot end at `{text}`: that is over", hint="relay nightly --until 07:00")
    return ends

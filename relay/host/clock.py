"""The time, from one place, so that a test can fix it.

Moments are UTC and whole seconds: a local time happens twice in the autumn (pitfalls row 121).
Durations come from a monotonic clock, which neither jumps nor counts the time a machine slept.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


def _system() -> datetime:
    return datetime.now(UTC)


_sources: list[Callable[[], datetime]] = [_system]


def now() -> datetime:
    """Return the present moment: aware, UTC, whole seconds."""
    return _sources[-1]().astimezone(UTC).replace(microsecond=0)


def stamp(moment: datetime | None = None) -> str:
    """Return `moment`, or now, as it stands in every file: `2026-11-29T02:41:07Z`.

    A moment without a zone raises `ValueError`: guessing one is how times go wrong. Years have four digits, always.
    """
    moment = now() if moment is None else moment
    if moment.tzinfo is None:
        raise ValueError(f"a moment without a zone: {moment.isoformat()}")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def parse(text: str) -> datetime:
    """Return the moment that `stamp` wrote, or any ISO 8601 time with a zone; `ValueError` for everything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {text}")
    return moment.astimezone(UTC)


def monotonic() -> float:
    """Return seconds on a clock that only goes forward; only differences mean anything."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Wait that long; a signal handler that raises ends it."""
    time.sleep(seconds)


@contextmanager
def fix(moment: datetime) -> Iterator[None]:
    """Hold the clock at `moment` inside a `with` block; for tests."""
    _sources.append(lambda: moment)
    try:
        yield
    finally:
        _sources.pop()

"""How long another machine is waited for: so long for each question, and so long for all that a command asks."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from relay.host import clock
from relay.ways.base import UnknownError

_OVER: Final = ContextVar("_OVER", default=math.inf)


@contextmanager
def until(moment: float) -> Iterator[None]:
    """Let nothing in a `with` block be waited for beyond a moment of the monotonic clock; of several, the first."""
    token = _OVER.set(min(moment, _OVER.get()))
    try:
        yield
    finally:
        _OVER.reset(token)


def rest() -> float:
    """Return how many seconds are left, which may be without end, or below nothing."""
    return _OVER.get() - clock.monotonic()


def left(seconds: float) -> float:
    """Return how long to wait at most: so many seconds, or what is left; `UnknownError` where nothing is."""
    if (least := min(seconds, rest())) <= 0:
        raise UnknownError("no time is left for it: what was asked before took it all")
    return least

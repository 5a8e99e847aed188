"""Moments in which no signal may interrupt: between the start of a program and knowing it, and while it is ended."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
"""The last asks a night to end the run that it works on; any other that came ends the night as well."""


@contextmanager
def held() -> Iterator[None]:
    """Hold back the signals that end Relay inside a `with` block; the weightiest that came is delivered when it ends.

    Python's handlers are exchanged: a mask holds for one thread, and another one would take the signal.
    """
    if current_thread() is not main_thread():  # no handler ever runs outside it
        yield
        return
    came: list[int] = []
    before = {
        number: handler for number in _ENDING if (handler := signal.getsignal(number)) not in {signal.SIG_IGN, None}
    }
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(min(came, key=_ENDING.index))

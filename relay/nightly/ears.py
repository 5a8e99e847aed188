"""The signals that ask a night to end: they wait while its record is begun or closed, or a person is told."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from relay import nights, runner
from relay.errors import Interrupted


class Ears:
    """Keeps the first signal that comes; only inside `listening` it raises `Interrupted`, at once if it came before.

    One that means a single run is heard by whoever works on a run, and between two runs by nobody.
    """

    def __init__(self) -> None:
        self.came: int | None = None
        self._listens = False

    @contextmanager
    def open(self) -> Iterator[None]:
        """Hear signals inside a `with` block."""
        before = {name: signal.signal(name, self._hear) for name in runner.SIGNALS if _heard(name)}
        before[nights.STOP] = signal.signal(nights.STOP, lambda *_: None)
        try:
            yield
        finally:
            for name, handler in before.items():
                signal.signal(name, signal.SIG_IGN if self.came is not None else handler)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Let a signal end what is done inside a `with` block."""
        self._listens = True
        try:
            if self.came is not None:
                raise Interrupted(self.came)
            yield
        finally:
            self._listens = False

    def _hear(self, signum: int, _frame: FrameType | None) -> None:
        if self.came is None:
            self.came = signum
            if self._listens:
                raise Interrupted(signum)


def _heard(name: signal.Signals) -> bool:
    return signal.getsignal(name) != signal.SIG_IGN

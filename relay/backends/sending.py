"""A turn, asked for until it comes: which faults are waited out, for how long, and which end the leg."""

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from relay.backends import resets
from relay.backends.purse import Over, Purse
from relay.backends.talk import Fault, Talk, Turn
from relay.host import clock
from relay.host.redact import Redactor
from relay.terms import EndedBy, Told

SILENCE: Final = 600.0
"""Seconds without a byte after which a stream counts as broken; a large local model may read a prompt for minutes."""
LONG: Final = 300.0
"""Seconds: a limit that lasts longer is a quota, and the run waits without an agent; an overload is given up."""
TRIES: Final = 8
"""Faults in a row that are waited out: some three minutes in all."""
TRIES_OF_LEG: Final = 40
"""Faults of a whole leg that are waited out."""
SLOWEST: Final = 60.0
"""Seconds of the longest wait between two tries."""
SHOWN: Final = 500
"""Characters of a service's own message that are shown."""
AGAIN: Final = 0.05
"""Seconds after which a connection is broken off again: it may have been in the making."""
LOOK: Final = 3600.0
"""Seconds after which the time is looked at anew, at the latest."""
ENDS: Final[dict[str, EndedBy]] = {"auth": "auth", "quota": "quota", "refusal": "refusal", "bug": "setup"}
"""Faults that no wait mends, and how they end the leg."""


@contextmanager
def bounded(talk: Talk, left: Callable[[], float]) -> Iterator[None]:
    """Break off what `talk` waits for once no seconds are `left`.

    No timeout of a read does that: a service that sends a byte now and then, of a comment, a header, half an event,
    holds one for ever. Somebody else has to look at the clock: a thread, which ends with the block.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(min(max(left(), AGAIN), LOOK)):
            if left() <= 0:
                talk.hang_up()

    thread = threading.Thread(target=watch, daemon=True, name="deadline")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Sender:
    """Sends a conversation and waits where that helps; a turn that broke off is asked for again, as it was."""

    def __init__(
        self,
        talk: Talk,
        purse: Purse,
        told: Callable[[Told], None],
        pause: Callable[[float], None],
        secrets: Mapping[str, str],
    ) -> None:
        self._talk, self._purse, self._told, self._pause = talk, purse, told, pause
        self._keys, self._redactor = tuple(secrets), Redactor(secrets)
        self._faults = 0
        self._heard_at = 0.0
        self._heard_any = False

    def send(self) -> Turn:
        """Return the next turn; a `Fault` is raised only for a conversation that is too long."""
        for tries in range(1, TRIES_OF_LEG + 1):
            limits = self._purse.limits
            silence = min(self._purse.left(), SILENCE, limits.idle or SILENCE)
            self._heard_at, self._heard_any = clock.monotonic(), False
            try:
                with bounded(self._talk, self._left):
                    return self._talk.send(self._hear, silence)
            except Fault as fault:
                if self._heard_any:
                    self._purse.missed()
                self._bear(fault, tries, silence)
        raise AssertionError  # `_bear` ends the leg before

    def _left(self) -> float:
        """Return the seconds that the service has: until the leg ends, or nothing whole came for too long."""
        idle, now = self._purse.limits.idle, clock.monotonic()
        left = self._purse.deadline - now
        return left if idle is None else min(left, self._heard_at + idle - now)

    def _hear(self, piece: str) -> None:
        """Note that something came, and end a stream that runs past the end of the leg."""
        del piece
        self._heard_at, self._heard_any = clock.monotonic(), True
        self._purse.left()

    def _bear(self, fault: Fault, tries: int, silence: float) -> None:
        """Wait where that may help; else end the leg by the name of what came back."""
        problem = self.shown(fault.problem)
        if fault.kind == "context":
            raise fault
        if fault.kind in ENDS:
            where = " and ".join(f"`{name}`" for name in self._keys)
            if fault.kind == "auth" and where:
                problem = f"the service refuses the key in {where}: {problem}"
            raise Over(ENDS[fault.kind], problem, until=fault.until)
        left = self._purse.left()
        idle = self._purse.limits.idle
        if idle is not None and silence >= idle and clock.monotonic() - self._heard_at >= idle:
            raise Over("idle", f"the service sent nothing for {idle:g} s")
        self._faults += 1
        wait = min(2.0 ** (tries - 1), SLOWEST) if fault.after is None else fault.after
        given_up = tries >= TRIES or self._faults >= TRIES_OF_LEG
        if fault.kind == "rate" and (given_up or wait > min(LONG, left)):
            raise Over("quota", problem, until=fault.until or resets.after(max(wait, 1)))
        if given_up or wait > LONG:
            raise Over("overload", f"gave up after {self._faults} faults, {tries} in a row: {problem}")
        wait += random.uniform(0, max(wait, 0.1) / 4)  # noqa: S311 - so that not everybody comes back at once
        if wait > left:
            raise Over("timeout", f"no time is left to wait out: {problem}")
        self._told(Told(type="wait", turn=self._purse.usage.turns + 1, text=f"{wait:.1f} s: {problem}"))
        self._pause(wait)

    def shown(self, problem: str) -> str:
        """Return a service's message as one short line without secrets."""
        line = " ".join(self._redactor.text(problem).split()).encode(errors="replace").decode()
        return line if len(line) <= SHOWN else f"{line[:SHOWN]}..."

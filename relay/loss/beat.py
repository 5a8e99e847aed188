"""A sign of life in the entry of each worktree that Relay works on: what changed there later, somebody else did.

A runner that is killed says nothing more. Without this nobody could tell what its commands wrote from what a person
did who came to look, and either would be kept for ever or lost.
"""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.host import touched

BEAT: Final = "relay-beat"
"""The file in the entry; its time is the sign."""
EVERY: Final = 0.1
"""Seconds from one sign to the next: sooner than a person comes."""


class _Pulse:
    """Gives the signs, from one thread while there is a place to give them in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: set[Path] = set()
        self._going = False

    def add(self, git_dir: Path) -> None:
        with self._lock:
            self._places.add(git_dir)
            if not self._going:
                threading.Thread(target=self._go_on, name=BEAT, daemon=True).start()
                self._going = True

    def drop(self, git_dir: Path) -> bool:
        """Tell whether signs were given there."""
        with self._lock:
            known = git_dir in self._places
            self._places.discard(git_dir)
        return known

    def _go_on(self) -> None:
        while True:
            with self._lock:
                if not self._places:
                    self._going = False
                    return
                for git_dir in self._places:
                    with suppress(OSError):  # it may be gone, or out of reach
                        os.utime(git_dir / BEAT, follow_symlinks=False)
            time.sleep(EVERY)


_pulse: Final = _Pulse()


def begin(git_dir: Path) -> None:
    """Give signs from now on that Relay works on the worktree of this entry, until `end` or the process's own end."""
    with suppress(OSError):
        (git_dir / BEAT).touch(mode=0o600)
    _pulse.add(git_dir)


def end(git_dir: Path) -> None:
    """Give a last sign, if any was given: what is changed from now on is somebody else's."""
    if _pulse.drop(git_dir):
        with suppress(OSError):
            os.utime(git_dir / BEAT, follow_symlinks=False)


def last(git_dir: Path) -> float:
    """Return when the last sign was given, in seconds of the epoch; where none was, when the worktree had been made.

    One that is still to come says nothing: the clock went fast then, or somebody set it.
    """
    with suppress(OSError):
        sign = (git_dir / BEAT).lstat().st_mtime
        return sign if sign <= time.time() + EVERY else 0.0
    with suppress(OSError):
        return (git_dir / touched.PRISTINE).stat().st_ctime
    return 0.0

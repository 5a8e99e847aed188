"""A sign of life in the entry of each worktree that Relay works on: what changed there later, somebody else did.

A runner that is killed says nothing more. Without this nobody could tell what its commands wrote from what a person
did who came to look, and either would be kept for ever or lost.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.host import touched

BEAT: Final = "relay-beat"
"""The file in the entry; its time is the sign."""
EVERY: Final = 0.1
"""Seconds from one sign to the next: sooner than a person comes."""

_places: set[Path] = set()
_wanted = threading.Event()


def begin(git_dir: Path) -> None:
    """Give signs from now on that Relay works on the worktree of this entry, until `end` or the process's own end."""
    _sign(git_dir)
    _places.add(git_dir)
    _wanted.set()
    if not any(thread.name == BEAT for thread in threading.enumerate()):
        threading.Thread(target=_go_on, name=BEAT, daemon=True).start()


def end(git_dir: Path) -> None:
    """Give a last sign, if any was given: what is changed from now on is somebody else's."""
    if git_dir in _places:
        _places.discard(git_dir)
        _sign(git_dir)


def last(git_dir: Path) -> float:
    """Return when the last sign was given, in seconds of the epoch; where none was, when the worktree had been made."""
    with suppress(OSError):
        return (git_dir / BEAT).stat().st_mtime
    with suppress(OSError):
        return (git_dir / touched.PRISTINE).stat().st_ctime
    return 0.0


def _sign(git_dir: Path) -> None:
    with suppress(OSError):  # it may be gone, or out of reach
        (git_dir / BEAT).touch(mode=0o600)


def _go_on() -> None:
    while True:
        _wanted.wait()
        for git_dir in tuple(_places):
            with suppress(OSError):
                os.utime(git_dir / BEAT)
        if not _places:
            _wanted.clear()
        threading.Event().wait(EVERY)

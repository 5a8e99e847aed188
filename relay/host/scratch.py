"""Temporary folders that carry the name of their process: what a killed Relay left is found, and removed."""

import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from relay.host import files, pids

HOUR: Final = 3600


@contextmanager
def folder(what: str) -> Iterator[Path]:
    """Make a folder for this user alone, by its real path, and remove it at the end."""
    _sweep(tempfile.gettempdir())
    made = Path(tempfile.mkdtemp(prefix=f"relay-{what}-{pids.signature()}-")).resolve()
    try:
        yield made
    finally:
        with suppress(OSError):
            files.remove_tree(made)


@cache
def _sweep(place: str) -> None:
    """Remove the folders of this user's Relays that are no more."""
    for path in Path(place).glob("relay-*-*.*-*"):
        found = re.fullmatch(r"relay-[a-z]+-(\d+)\.(\d+)-\w+", path.name)
        with suppress(OSError):
            seen = path.lstat()
            # An hour, since in a container of its own a Relay has a number that means nobody here.
            if (
                found
                and stat.S_ISDIR(seen.st_mode)
                and seen.st_uid == os.geteuid()
                and seen.st_mtime < time.time() - HOUR
            ):
                alive = pids.stat(int(found[1]))
                if alive is None or alive.started != int(found[2]):
                    files.remove_tree(path)

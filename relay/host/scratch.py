"""Temporary folders that carry the name of their process: what a killed Relay left is found, and removed.

In each lies a file that is locked for as long as somebody uses the folder. The kernel knows that of every process, and
of one in a container too, whose number means nobody here. A folder without such a file is not Relay's, whatever its
name is.
"""

import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files, pids

HOUR: Final = 3600
DAY: Final = 24 * HOUR
MARK: Final = ".relay-scratch"
"""The file in a folder that says who made it, in which boot of which machine."""
_NAME: Final = re.compile(r"relay-[a-z]+-(\d+\.\d+)-[a-z0-9_]{8}")
_LONGEST: Final = 200


@contextmanager
def folder(what: str) -> Iterator[Path]:
    """Make a folder for this user alone, by its real path, and remove it at the end."""
    this = pids.this()
    made = Path(tempfile.mkdtemp(prefix=f"relay-{what}-{pids.signature(this)}-")).resolve()
    try:
        with open(made / MARK, "xb", buffering=0) as mark:
            with suppress(OSError):  # on a full disk, or where nothing can be locked, what a kill leaves stays
                fcntl.flock(mark, fcntl.LOCK_EX)
                mark.write(f"{pids.signature(this)} {this.boot}".encode())
            try:
                yield made
            finally:
                _remove(made)
    finally:
        with suppress(OSError):
            made.rmdir()  # the file could not be made


def sweep(*, dry: bool = False) -> list[Path]:
    """Remove the folders that this user's Relays left when they were killed, and return them; `dry` removes nothing."""
    found = sorted(Path(tempfile.gettempdir()).glob("relay-*"))
    return [path for path in found if _left(path, dry=dry)]


def _left(path: Path, *, dry: bool) -> bool:
    """Tell whether a folder was left behind, and remove it unless `dry`; a doubt about it says no."""
    named = _NAME.fullmatch(path.name)
    try:
        seen = path.lstat()
        mine = stat.S_ISDIR(seen.st_mode) and seen.st_mode & 0o777 == stat.S_IRWXU and seen.st_uid == os.geteuid()
        if not named or not mine:
            return False
        descriptor = os.open(path / MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "r+b", buffering=0) as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            said = mark.read(_LONGEST) or b""  # a pipe that stands there says nothing yet
            maker, _, boot = said.decode("ascii", "replace").partition(" ")
            # Where a folder is shared with another machine, such as a virtual one, no lock of it is seen here.
            age = HOUR if boot == pids.this().boot else DAY
            if maker != named[1] or not boot or seen.st_mtime > time.time() - age or files.mounted_below(path):
                return False
            return dry or _remove(path)
    except OSError:
        return False


def _remove(made: Path) -> bool:
    """Remove a folder and tell whether it went; the mark goes last, so that a kill leaves what is found again."""
    try:
        if not made.is_symlink() and files.mounted_below(made) is None:
            with suppress(OSError):
                for path in made.iterdir():
                    if path.name != MARK:
                        files.remove_tree(path)
        files.remove_tree(made)
    except (OSError, RelayError):
        return False
    return True

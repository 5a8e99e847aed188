"""Who uses a folder: it must not go from under somebody (row 129)."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.host import pids

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_SLACK: Final = 2.0
"""Seconds by which two clocks of a machine may differ."""
Node = tuple[int, int]
"""A file or a folder, by device and inode: what it is called in another name space of mounts does not matter."""


def everyone() -> list[int]:
    """Return the numbers of all processes, this one and those it descends from too."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def busy(path: Path) -> str:
    """Say who uses a folder, or may; nothing where nobody does."""
    if (found := _found(path)) is None:
        return ""
    pid, sure = found
    return f"process {pid} works in it" if sure else f"process {pid} may work in it: where that stands cannot be read"


def used_by(path: Path) -> int | None:
    """Return a process that has its folder, its root or an open file in a folder, or that may."""
    found = _found(path)
    return found[0] if found is not None else None


def _found(path: Path) -> tuple[int, bool] | None:
    """Return a process that uses a folder, and whether that is sure.

    One of another name space of mounts, or behind a bind mount, has other names for what it uses. These are compared
    by what they are, which takes a walk, so that is done where there is such a process alone.
    """
    top = os.path.realpath(path)
    if not (Path(top).is_dir() and Path("/proc/self/fd").is_dir()):
        return None
    bound, closed = _bound(top), set()
    elsewhere: dict[Node, int] = {}
    for pid in everyone():
        try:
            for where, link in _named(pid, bound):
                if f"{where}/".startswith(f"{top}/"):
                    return pid, True
                with suppress(FileNotFoundError):
                    if link is not None:
                        seen = link.stat()
                        elsewhere[seen.st_dev, seen.st_ino] = pid
        except PermissionError:
            closed.add(pid)
        except OSError:
            continue  # it ended meanwhile
    for node in _nodes(top, {device for device, _ in elsewhere}):
        if node in elsewhere:
            return elsewhere[node], True
    since = _made(top)
    hidden = next((pid for pid in sorted(closed) if _hidden(pid, closed, since)), None)
    return None if hidden is None else (hidden, False)


def _named(pid: int, bound: tuple[str, ...]) -> Iterator[tuple[str, Path | None]]:
    """Yield what a process calls what it uses, or the link to it where that name says nothing here."""
    apart = Path(f"/proc/{pid}/ns/mnt").stat().st_ino != Path("/proc/self/ns/mnt").stat().st_ino
    for link in _links(pid):
        with suppress(FileNotFoundError):
            where = str(link.readlink())
            if where.startswith("/"):
                yield "" if apart else where, link if apart or where.startswith(bound) else None


def _links(pid: int) -> Iterator[Path]:
    """Yield what leads to the folder, the root, the program and the open files of a process."""
    there = Path(f"/proc/{pid}")
    yield from (there / "cwd", there / "root", there / "exe")
    yield from (there / "fd").iterdir()


def _bound(top: str) -> tuple[str, ...]:
    """Return where a part of a file system is mounted again: what lies below may have another name in `top`."""
    fields = (line.split(" ") for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines())
    places = (f"{field[4]}/" for field in fields if field[3] != "/")
    return tuple(place for place in places if not f"{top}/".startswith(place))


def _nodes(top: str, devices: set[int]) -> Iterator[Node]:
    """Yield all that lies in a folder on one of these devices, and itself."""
    folders = [top]
    while folders:
        folder = folders.pop()
        with suppress(OSError):
            seen = Path(folder).lstat()
            if seen.st_dev not in devices:
                continue
            yield seen.st_dev, seen.st_ino
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif not entry.is_symlink():
                        yield seen.st_dev, entry.inode()


def _made(top: str) -> float:
    """Return when a worktree was made, by the clock; of another folder, when something came into it."""
    for path in (Path(top, ".git"), Path(top)):
        with suppress(OSError):
            return path.lstat().st_mtime - _SLACK
    return 0.0


def _hidden(pid: int, closed: set[int], since: float) -> bool:
    """Tell whether nobody knows where a process of this user stands, and it began when the folder was there.

    One that descends from a process that can be read stands where that one does, or stood; one of another user's
    daemons, with those. Every desktop and every login has such: agents for keys, sandboxes of browsers. So it is of a
    process alone that has no such line, as where Relay has less power than what is beside it in a container.
    """
    began, at = None, pid
    while at in closed:
        found = pids.stat(at)
        try:
            mine = Path(f"/proc/{at}").stat().st_uid == os.geteuid()
        except OSError:
            return False
        if not mine or found is None:
            return False
        began = began or time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + found.started / _TICKS
        at = found.parent
    return at == 0 and began is not None and began >= since

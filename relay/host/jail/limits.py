"""What a confined program may use of the machine, and the look that ends it when it takes more.

Limits of the kernel hold for one process or one file; what a whole tree of processes takes is watched
(sandbox.md section 5). Children stay below bwrap's own process, so none hides from the look.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from relay.host import clock
from relay.host.program import How
from relay.terms import Struct

BESIDE: Final = 8
"""Processes of bwrap's own, and of the way in, which count for nobody."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SLACK: Final = 0.05
"""Seconds by which a file's time may lag behind the clock: the kernel takes it from its last tick."""
_FLOOR: Final = 256 << 20
"""Bytes of disk that are left to everybody else."""
_SELDOM: Final = 5.0
"""Seconds after which the tree is walked though the disk is no fuller: somebody else may have made room meanwhile."""
_REST: Final = 10
"""A walk over the tree is followed by so many times its duration without one."""


class Bounds(Struct, frozen=True, kw_only=True):
    """Bytes of memory in all (none given: half of the machine's), of one file, of each temporary folder, of new disk.

    The kernel counts threads as `processes`.
    """

    memory: int | None = None
    processes: int = 1024
    file: int = 4 << 30
    tmp: int = 2 << 30
    disk: int = 16 << 30


USUAL: Final = Bounds()


class _Seen(NamedTuple):
    parent: int
    resident: int


class Watch:
    """Looks at one program's processes and at the folder that it fills.

    `folder` is on the disk, and what lies `beside` counts with it; `overlay` says where a folder of the program's own
    is, in which all is new.
    """

    def __init__(
        self,
        bounds: Bounds,
        folder: Path | None,
        overlay: Callable[[], Path] | None = None,
        beside: Sequence[Path] = (),
    ) -> None:
        self._bounds, self._folder, self._overlay, self._beside = bounds, folder, overlay, beside
        self._memory = bounds.memory or os.sysconf("SC_PHYS_PAGES") * _PAGE // 2
        self._began = time.time() - _SLACK
        self._free = _free(folder) if folder else 0
        self._next_walk = clock.monotonic()

    def look(self, pid: int) -> How | None:
        """Return which bound is crossed, if any. Too many processes count as memory, of which each takes some."""
        below = _below(pid, _processes())
        if len(below) > self._bounds.processes + BESIDE:
            return "memory"
        # A page that many share is counted for each of them at first: only who seems too large is counted exactly.
        resident = sum(seen.resident for seen in below.values())
        if resident > self._memory and sum(_exact(one, seen.resident) for one, seen in below.items()) > self._memory:
            return "memory"
        return "disk" if self._fills(below) else None

    def _fills(self, below: Mapping[int, _Seen]) -> bool:
        with suppress(OSError):
            if self._overlay is not None:
                of = os.statvfs(self._overlay())
                return (of.f_blocks - of.f_bfree) * of.f_frsize > self._bounds.disk
        if self._folder is None:
            return False
        free = _free(self._folder)
        if free < min(_FLOOR, self._free // 2):
            return True
        now = clock.monotonic()
        quiet = self._free - free < self._bounds.disk // 2 and now < self._next_walk + _SELDOM
        if quiet or now < self._next_walk:
            return False
        new = _new((self._folder, *self._beside), self._began, below)
        after = clock.monotonic()
        self._next_walk = after + _REST * (after - now)
        return new > self._bounds.disk


def _processes() -> dict[int, _Seen]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                found[int(name)] = _Seen(int(fields[1]), int(fields[21]) * _PAGE)
    return found


def _below(top: int, every: Mapping[int, _Seen]) -> dict[int, _Seen]:
    children: dict[int, list[int]] = {}
    for pid, seen in every.items():
        children.setdefault(seen.parent, []).append(pid)
    found, waiting = {}, [top]
    while waiting:
        pid = waiting.pop()
        if pid in every and pid not in found:
            found[pid] = every[pid]
            waiting += children.get(pid, [])
    return found


def _exact(pid: int, resident: int) -> int:
    """Return a process's share of memory: a page that three have in common is a third for each."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        return int(file.read().partition(b"\nPss:")[2].split()[0]) << 10
    return resident


def _free(folder: Path) -> int:
    with suppress(OSError):
        of = os.statvfs(folder)
        return of.f_bavail * of.f_frsize
    return 0


def _new(folders: Sequence[Path], began: float, below: Mapping[int, _Seen]) -> int:
    """Return how many bytes of disk were filled since `began`: what changed in the folders, and files without name.

    The time of the last change is the kernel's: no program can set it.
    """
    counted: dict[tuple[int, int], int] = {}
    device = folders[0].lstat().st_dev
    for found in (*(found for folder in folders for found in _walk(str(folder))), *_nameless(below)):
        if found.st_dev == device and found.st_ctime >= began:
            counted[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(counted.values())


def _walk(top: str) -> Iterator[os.stat_result]:
    waiting = [top]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    yield entry.stat(follow_symlinks=False)


def _nameless(below: Mapping[int, _Seen]) -> Iterator[os.stat_result]:
    for pid in below:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat()
                    if found.st_nlink == 0 and stat.S_ISREG(found.st_mode):
                        yield found

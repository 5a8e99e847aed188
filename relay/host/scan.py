"""A look at a folder by lstat alone, before git reads it: what could make git hang, fail, or carry off nothing.

Links are never followed; the kind of an entry comes with the listing, so a hundred thousand files cost a moment.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from relay.terms import Struct

_READ_BY_GIT: Final = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".mailmap"})
_SHARED: Final = (
    *("HEAD", "config", "config.worktree", "index", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/grafts", "objects/info/alternates"),
)
_OPEN: Final = stat.S_IRUSR | stat.S_IXUSR
_WAITS: Final = frozenset({"a FIFO", "a socket", "a device"})
_KINDS: Final = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFREG: "a file",
}


class Scan(Struct, frozen=True, kw_only=True):
    """What stands in the way: each path with what it is. `blocking` ones make git wait for ever (sandbox.md row 17).

    `nested` are the folders, each ending in `/`, that hold a `.git` of their own.
    """

    special: dict[str, str] = {}
    unreadable: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()


def look(root: Path) -> Scan:
    """Walk `root`, leaving out the `.git` at its top."""
    unreadable: list[str] = []
    nested: list[str] = []
    special = dict(_walk(str(root), unreadable, nested))
    blocking = (path for path in special if path.rpartition("/")[2] in _READ_BY_GIT or "/.git/" in path)
    return Scan(special=special, unreadable=tuple(unreadable), blocking=tuple(blocking), nested=tuple(nested))


def _walk(root: str, unreadable: list[str], nested: list[str]) -> Iterator[tuple[str, str]]:
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(f"{root}/{folder}") as entries:
                for entry in entries:
                    path = folder + entry.name
                    if entry.name == ".git" and folder:
                        nested.append(folder)
                    if path == ".git" or entry.is_file(follow_symlinks=False) or entry.is_symlink():
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        # Whoever looks from a jail is not root there, and would pass over such a folder in silence.
                        closed = entry.stat(follow_symlinks=False).st_mode & _OPEN != _OPEN
                        (unreadable if closed else folders).append(f"{path}/")
                    else:
                        yield path, kind(f"{root}/{path}")
        except OSError:
            unreadable.append(folder or ".")


def unblock(root: Path, scan: Scan) -> None:
    """Remove what would make git wait for ever: a FIFO, a socket or a device, which holds no work.

    Only in a worktree of Relay's own, never in a user's checkout.
    """
    for path in scan.blocking:
        full = root / path
        if kind(str(full)) in _WAITS:
            full.unlink()


def trap(common: Path) -> str:
    """Return what stands in the common folder where git expects a file and would wait for ever, or nothing."""
    shared = (name for name in _SHARED if kind(f"{common}/{name}") in _WAITS)
    return next(shared, "") or next((f"refs/{name}" for name in look(common / "refs").special), "")


def kind(path: str) -> str:
    """Return what stands at `path` in words; `nothing` when it is gone, `unreadable` when it cannot be looked at."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except OSError:
        return "unreadable"
    return _KINDS.get(stat.S_IFMT(mode), "a special file")

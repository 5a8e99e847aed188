"""What set-up made in a worktree, remembered in its entry, so that what is done there later is told from it (row 39).

Of a file that git does not see name, size and time are remembered: tests may change it. Of what was copied, and of a
repository that lies in the worktree, a value that changes with it: nobody makes those anew. Caches are known by name.
"""

import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.host import names, provision, touched

MARKS: Final = "relay-marks"
"""In the worktree's entry: what must be as set-up left it, each with its value."""
_PASSING: Final = frozenset(("index", "config", "FETCH_HEAD", "ORIG_HEAD", "objects", "remotes"))
"""Of a repository, what a look, a fetch and `git submodule update` write."""
_MODULES: Final = ""
"""Stands, among paths, for what the submodules of a worktree committed: its entry's folder `modules`."""


def note(here: touched.View, git_dir: Path) -> None:
    """Remember how set-up left a worktree."""
    made = (f"{_stamp(f'{here.top}/{path}')}\n{path}" for path in unseen(here))
    provision.remember(git_dir, provision.IGNORED, made)
    provision.remember(git_dir, MARKS, (f"{value}\n{path}" for path, value in _marks(here, git_dir).items()))


def _made(git_dir: Path) -> dict[str, str]:
    """Return what set-up made unseen by git, with its stamp."""
    noted = (entry.partition("\n") for entry in provision.recall(git_dir, provision.IGNORED))
    return {path or stamp: stamp if path else "" for stamp, _, path in noted}


def beyond(here: touched.View, git_dir: Path, since: float = math.inf) -> list[str]:
    """Return what lies in a worktree unseen by git, and neither set-up nor the tools make as it is.

    Where a person may have come to it, `since` that moment of the epoch, what set-up made and somebody changed after
    it counts, too: it may have been them.
    """
    made = _made(git_dir)
    marks = dict(entry.partition("\n")[::-2] for entry in provision.recall(git_dir, MARKS))
    now = _marks(here, git_dir)
    changed = [path for path, value in now.items() if path and value not in {marks.get(path), "nothing"}]
    found = [path for path in unseen(here) if not names.cache(path)]
    other = {path for path in made.keys() - marks.keys() if made[path] not in {"", _stamp(f"{here.top}/{path}")}}
    late = {path for path in other if changed_since(str(here.top), path, since)}
    return changed + [path for path in found if path not in made or path in late]


def _stamp(path: str) -> str:
    """Return what changes with a file; nothing for a folder, which stands for all in it."""
    with suppress(OSError):
        state = os.lstat(path)
        return f"{state.st_size}:{state.st_mtime_ns}"
    return ""


def changed_since(top: str, path: str, moment: float) -> bool:
    """Tell whether a file below `top`, or one in a folder, was changed or moved there after a moment of the epoch.

    A ctime cannot be set. Of what moves with a folder, that alone has a new one.
    """
    at, parts = f"{top}/{path}".rstrip("/"), path.rstrip("/").split("/")
    below = () if os.path.islink(at) else os.walk(at)
    inside = (f"{where}/{name}" for where, *both in below for found in both for name in found if name != "index")
    for one in (*(f"{top}/{'/'.join(parts[:end])}" for end in range(1, len(parts) + 1)), *inside):
        with suppress(OSError):
            if os.lstat(one).st_ctime > moment:
                return True
    return False


def _marks(here: touched.View, git_dir: Path) -> dict[str, str]:
    """Return what must not change unseen, with a value that changes with it."""
    copied = (path for path in provision.recall(git_dir, provision.PUT) if not names.cache(path))
    marks = {path: touched.digest(f"{here.top}/{path}") for path in copied}
    marks |= {f"{folder}.git": _mark(f"{here.top}/{folder}.git") for folder in here.scan.nested}
    return marks | {_MODULES: _modules(git_dir)}


def committed_inside(git_dir: Path) -> bool:
    """Tell whether submodules of a worktree have anything in them that they had not when set-up had fetched them."""
    now = _modules(git_dir)
    return now != "nothing" and f"{now}\n{_MODULES}" not in provision.recall(git_dir, MARKS)


def _modules(git_dir: Path) -> str:
    return _mark(f"{git_dir}/modules")


def _mark(path: str) -> str:
    """Look at a repository by lstat alone: no git runs in one that an agent may have written (sandbox.md 8.1)."""
    if not os.path.isdir(path) or os.path.islink(path):
        return touched.digest(path)
    lines = []
    for where, below, found in os.walk(path):
        below[:] = set(below) - _PASSING
        for name in set(found) - _PASSING:
            with suppress(OSError):
                state = os.lstat(f"{where}/{name}")
                lines.append(f"{where}/{name} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256(os.fsencode("\0".join(sorted(lines)))).hexdigest() if lines else "nothing"


def unseen(here: touched.View) -> list[str]:
    """Return every file that is ignored, or in a repository that lies there; a cache stays one folder."""
    inside = [path for path in here.changed() if path.endswith("/")] if here.scan.nested else []
    found: list[str] = []
    for path in (*here.ignored(), *inside):
        found += _files(str(here.top), path) if path.endswith("/") and not names.cache(path) else [path]
    return found


def _files(top: str, folder: str) -> Iterator[str]:
    """Yield the files below a folder, without those in caches and in a `.git`; and each folder that cannot be read."""
    folders = [folder]
    while folders:
        below = folders.pop()
        try:
            with os.scandir(f"{top}/{below}") as entries:
                for entry in entries:
                    path = below + entry.name
                    if not entry.is_dir(follow_symlinks=False):
                        yield path
                    elif entry.name != ".git" and not names.cache(path):
                        folders.append(f"{path}/")
        except OSError:
            yield below

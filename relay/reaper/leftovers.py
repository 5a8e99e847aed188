"""Small things that a killed Relay leaves: records of locks that nobody holds, git's own locks, half-written files."""

import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay import loss
from relay.errors import RelayError
from relay.host import files, git, lock, pids, scratch, worktree
from relay.host.scratch import DAY, HOUR
from relay.host.tripwire import steering
from relay.reaper import look
from relay.reaper.look import Run
from relay.reaper.tally import Tally
from relay.record.ledger import Ledger

MINUTE: Final = 60.0
"""Seconds that a file may be half-written by a process whose number means nobody here: one in a container.

Where its process's number is in use, it is nobody's after a day.
"""
OWN_REFS: Final = ("refs/relay/", "refs/relay-ledger/", "refs/heads/relay/")
_HALF: Final = re.compile(r"\..+\.(\d+)\.(?:[0-9a-f]{8}|new)\.tmp")
"""A file that `files.write` had not yet renamed, with the number of its process."""


def settle(tally: Tally, _runs: list[Run]) -> None:
    """Remove what is nobody's; what is the person's own git's is raised."""
    _records(tally)
    if tally.alone:
        _drafts(tally)
        _git_locks(tally)
    else:
        tally.unsure("lock")
    for folder in _written(tally.ledger):
        for path in folder.glob(".*.tmp"):
            found = _HALF.fullmatch(path.name)
            if found and _old(path, DAY if pids.stat(int(found[1])) else MINUTE):
                _remove(tally, path, "a file that was never written to its end")
    for path in scratch.sweep(dry=tally.dry):  # of whatever repository
        tally.repair("temp", f"removed `{path}`: a temporary folder whose process is gone")


def records(ledger: Ledger) -> list[Path]:
    """Return the records beside locks whose holder is dead; whoever takes such a lock removes it."""
    patterns = ("lock.json", "*/*lock.json", "runs/*/lock.json", "runs/*/legs/*.lock.json")
    found = (record for pattern in patterns for record in sorted(ledger.root.glob(pattern)))
    return [record for record in found if _lock(record).exists() and not look.locked(_lock(record))]


def _lock(record: Path) -> Path:
    return record.with_name(record.name.removesuffix(".json"))


def _records(tally: Tally) -> None:
    """Take each such lock for an instant: so its record goes, and not that of who takes it meanwhile."""
    for record in tally.stale:
        try:
            if not tally.dry and record.exists() and lock.holder(_lock(record)) is None:
                with lock.hold(_lock(record), "reaping"):
                    pass
        except (OSError, RelayError):
            continue
        tally.repair("lock", f"removed `{record}`: the process that it names is gone")


def _drafts(tally: Tally) -> None:
    """Remove runs that were never made to their end: with the repository's lock held, nobody makes one."""
    for path in sorted((tally.ledger.root / "runs").glob(".new-*")):
        _remove(tally, path, "a run that was never made to its end")


def _git_locks(tally: Tally) -> None:
    """Remove the locks that a killed git left on Relay's own refs; others are raised (rows 14, 117)."""
    common = tally.ledger.repo.common
    own = {entry.git_dir.name for entry in worktree.own(tally.ledger.repo)}
    for name in steering.locks(common):
        path, parts = common / name, name.split("/")
        if (parts[0] == "worktrees" and parts[1] in own) or not _old(path, HOUR):
            continue  # a worktree goes as a whole; a git at work gets time to end
        if _opened(path) or _wanted(path, _places(tally.ledger)):
            tally.unsure("lock", name)
        elif name.startswith(OWN_REFS):
            _remove(tally, path, "a lock of a git that is gone, on a ref of Relay's")
        else:
            what = f"a git that may be gone left its lock `{path}`: others wait for it"
            tally.alert("lock", name, what, f"pgrep -lx git || rm {shlex.quote(str(path))}")


def _opened(path: Path) -> bool:
    """Tell whether a process has a file open."""
    for pid in loss.everyone():
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if Path(entry.path).readlink() == path:
                        return True
    return False


def _places(ledger: Ledger) -> list[str]:
    """Return where a git of this repository works: the folder that its checkouts share, and each of them."""
    listed = git.run(ledger.repo, "worktree", "list", "--porcelain").splitlines()
    tops = [os.fsdecode(line.removeprefix(b"worktree ")) for line in listed if line.startswith(b"worktree ")]
    return [str(ledger.repo.common), *tops]


def _wanted(path: Path, places: Iterable[str]) -> bool:
    """Tell whether a git that is older than a lock works at one of these places.

    Git closes a lock long before it is done with it, such as while an editor or a hook of a commit runs.
    """
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    made = path.lstat().st_ctime + MINUTE  # clocks are set
    for pid in loss.everyone():
        seen = pids.stat(pid)
        if seen is None or booted + seen.started / os.sysconf("SC_CLK_TCK") > made:
            continue
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended just now
            if Path(f"/proc/{pid}/comm").read_bytes().startswith(b"git") and _works(pid, places):
                return True
    return False


def _works(pid: int, places: Iterable[str]) -> bool:
    """Tell whether a git stands at one of these places, or is told of it; one that nobody may look at does."""
    try:
        where = str(Path(f"/proc/{pid}/cwd").readlink())
        words, env = (Path(f"/proc/{pid}/{name}").read_bytes().split(b"\0") for name in ("cmdline", "environ"))
    except PermissionError:
        return Path(f"/proc/{pid}").stat().st_uid == os.geteuid()
    told = os.fsdecode(b"\0".join((*words, *(entry for entry in env if entry.startswith(b"GIT_")))))
    return any(f"{where}/".startswith(f"{place}/") or place in told for place in places)


def _written(ledger: Ledger) -> Iterator[Path]:
    """Yield the folders in which Relay writes files."""
    root = ledger.root
    yield from (root, root / "queue", root / "nights", root / "alerts")
    for pattern in ("runs/*", "runs/*/legs", "runs/*/legs/*"):
        yield from (path for path in root.glob(pattern) if path.is_dir())
    yield from (entry.git_dir for entry in worktree.own(ledger.repo))


def _old(path: Path, seconds: float) -> bool:
    """Tell whether nothing changed a file for so long."""
    try:
        return path.lstat().st_mtime <= time.time() - seconds
    except OSError:
        return False


def _remove(tally: Tally, path: Path, what: str) -> None:
    kind = "temp" if path.is_dir() or path.name.startswith(".") else "lock"
    try:
        if not tally.dry:
            files.remove_tree(path)
        elif files.mounted_below(path):
            return
    except RelayError:  # another's, or a mount: it harms nobody
        return
    tally.repair(kind, f"removed `{path}`: {what}")

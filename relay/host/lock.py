"""Locks that the kernel holds, and who holds them; the only importer of filelock.

A lock is a file that stays; holding it is an flock on it, which ends with the process, however that ends. Who holds
it stands beside it in `NAME.json`, for people and for `relay status`, and as a second guard where somebody deleted
the lock file while it was held (pitfalls rows 28, 83-86).
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from relay.errors import Exit, RelayError
from relay.host import clock, files, pids
from relay.terms import Process, Struct

_RECORD_LIMIT = 64 << 10
_GLANCE = 0.5
"""Seconds for which nobody need say that a lock is theirs: a look whether it is held takes it for an instant."""


class Holder(Struct, frozen=True, kw_only=True):
    """Who holds a lock: the process, since when, for what, and for which run."""

    process: Process
    since: str
    what: str
    run: str = ""


@contextmanager
def hold(path: Path, what: str, run: str = "", *, wait: float = 0) -> Iterator[None]:
    """Hold the lock at `path` inside a `with` block, or fail after `wait` seconds, which is at once if unsaid.

    `what` says in a word or two what it is held for, such as `relay run`. `RelayError` with exit code 75 when another
    has it, saying who, and with exit code 4 when the file cannot be locked at all. The folder must exist.
    """
    import filelock  # 24 ms, and only a command that changes something needs it

    opened: list[int] = []
    lock = filelock.FileLock(
        path,
        timeout=wait,
        poll_interval=0.02,
        mode=0o600,
        preserve_lock_file=True,
        fallback_to_soft=False,
        on_acquired=opened.append,
    )
    try:
        try:
            lock.acquire()
        except filelock.Timeout:
            if (who := holder(path)) is not None:
                _held(path, who)
            lock.acquire(timeout=_GLANCE)
    except filelock.Timeout:
        _held(path, holder(path))
    except OSError as error:
        raise _unlockable(path, error) from error
    record = _record(path)
    try:
        _check(path, opened[-1])
        mine = Holder(process=pids.this(), since=clock.stamp(), what=what, run=run)
        files.write(record, msgspec.json.encode(mine))
        try:
            yield
        finally:
            with suppress(OSError):
                record.unlink()
    finally:
        lock.release()


def holder(path: Path) -> Holder | None:
    """Return who holds the lock at `path`, or None when nobody alive says so. Never takes the lock, never fails."""
    try:
        found = msgspec.json.decode(files.read(_record(path), _RECORD_LIMIT), type=Holder)
    except (OSError, RelayError, msgspec.MsgspecError, UnicodeDecodeError):
        return None  # torn, foreign or absent: it names nobody
    return found if pids.alive(found.process) else None


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _check(path: Path, descriptor: int) -> None:
    """Refuse a lock on a file that is no longer the one at `path`, and one that a living process says is its own."""
    try:
        same = os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except OSError:
        same = False
    other = holder(path)
    if not same or (other is not None and other.process != pids.this()):
        _held(path, other)


def _held(path: Path, who: Holder | None) -> NoReturn:
    """Say who holds it; the record may lag behind the lock by an instant, then nobody can be named."""
    if who is None:
        raise RelayError(f"another process holds `{path}`", hint="try again in a moment", exit_code=Exit.HELD)
    about = f" for run `{who.run}`" if who.run else ""
    hint = f"wait for it, or end it: {f'relay stop {who.run}' if who.run else f'kill {who.process.pid}'}"
    raise RelayError(
        f"`{who.what}`{about} already holds `{path}`: process {who.process.pid}, since {who.since}",
        hint=hint,
        exit_code=Exit.HELD,
    )


def _unlockable(path: Path, error: OSError) -> RelayError:
    if isinstance(error, PermissionError):
        with suppress(OSError, KeyError):
            import pwd  # only to name an owner

            owner = pwd.getpwuid(os.stat(path, follow_symlinks=False).st_uid).pw_name
            hint = f"take it back: sudo chown $USER {path}"
            return RelayError(f"the lock `{path}` belongs to `{owner}`", hint=hint, exit_code=Exit.HUMAN)
    reason = (error.strerror or str(error)).lower()
    if error.errno in {errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK}:
        hint = "keep the repository on a local disk"
        return RelayError(f"the file system of `{path}` has no locks: {reason}", hint=hint, exit_code=Exit.HUMAN)
    hint = f"see what stands there: ls -ld {path.parent} {path}"
    return RelayError(f"cannot lock `{path}`: {reason}", hint=hint, exit_code=Exit.HUMAN)

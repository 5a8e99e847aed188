"""Files that survive a crash, and reads that cannot be led astray.

Every write is a temporary file in the same folder, fsync, rename: the old content or the new one, never a torn
one (pitfalls rows 77, 78, 119). The caller says when the folder itself is synced, since one sync covers many writes.
"""

import errno
import os
import re
import stat
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from relay.errors import Exit, RelayError

LIMIT: Final = 16 << 20
"""The largest file that Relay reads into memory unless a caller says otherwise, in bytes."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # NONBLOCK: a FIFO must not hold us
_FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_TRIES: Final = 100
_MOUNTS: Final = Path("/proc/self/mountinfo")
_OCTAL: Final = re.compile(rb"\\([0-7]{3})")
_DEEP: Final = 64
"""Below this many levels a folder is lifted before it is removed, so that no path grows too long to name."""


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put `data` at `path` as a whole or not at all, with exactly the permissions `mode`.

    `RelayError` naming the path when the disk is full, the folder is not writable, or a link stands in the way.
    """
    if path.is_symlink():
        raise RelayError(
            f"`{path}` is a link, and Relay writes only plain files",
            hint=f"look where it leads, then remove it: rm {path}",
        )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        try:
            _fill(temporary, data, mode)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise _unwritable(path, error) from error


def _fill(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(data)
        while rest:  # one os.write may take less than all of it, silently, on a nearly full disk
            rest = rest[os.write(descriptor, rest) :]
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> RelayError:
    if error.errno in _FULL:
        hint = f"see what is full: df -h {path.parent}"
        return RelayError(f"no space left to write `{path}`", hint=hint, exit_code=Exit.HUMAN)
    hint = f"see who owns it: ls -ld {path.parent}"
    return RelayError(f"cannot write `{path}`: {_reason(error)}", hint=hint, exit_code=Exit.HUMAN)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def sync_folder(path: Path) -> None:
    """Make the names in the folder `path` durable: renames before it survive a loss of power (pitfalls row 78)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path, limit: int = LIMIT) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    A link, a folder, a FIFO, a device or a larger file is a `RelayError` naming it; `FileNotFoundError` passes through.
    """
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(str(path), error) from error
    return _content(descriptor, str(path), limit)


def read_below(root: Path, name: str, limit: int = LIMIT) -> bytes:
    """Return the content of the regular file `name` below the folder `root`, following no link on the way.

    Component by component, so that a folder which is swapped for a link in between leads nowhere. Errors as `read`;
    a name that is absolute or climbs out is a `RelayError`.
    """
    parts = name.split("/")
    if not name or "\0" in name or any(part in {"", ".", ".."} for part in parts):
        raise RelayError(f"`{name}` is not a plain path below `{root}`")
    where = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = os.open(part, _FOLDER, dir_fd=where)
            os.close(where)
            where = below
        descriptor = os.open(parts[-1], _READ, dir_fd=where)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(f"{root}/{name}", error) from error
    finally:
        os.close(where)
    return _content(descriptor, f"{root}/{name}", limit)


def handed(path: Path, limit: int = LIMIT) -> bytes:
    """Return what an agent left at `path`, in a folder that it was given: neither of the two may be a link.

    Errors as `read`.
    """
    return read_below(path.parents[1], f"{path.parent.name}/{path.name}", limit)


def _unreadable(name: str, error: OSError) -> RelayError:
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return RelayError(f"`{name}` leads through a link or a file, and only a plain file is read")
    return RelayError(f"cannot read `{name}`: {_reason(error)}")


def _content(descriptor: int, name: str, limit: int) -> bytes:
    """Return what the open file holds, and close it."""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RelayError(f"`{name}` is not a plain file")
        data = bytearray()
        while len(data) <= limit and (chunk := os.read(descriptor, min(1 << 20, limit + 1 - len(data)))):
            data += chunk
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise RelayError(f"`{name}` is larger than {limit} bytes")
    return bytes(data)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` in hexadecimal."""
    import hashlib  # 3 ms that most commands never need

    return hashlib.sha256(data).hexdigest()


def mounted_below(path: Path) -> Path | None:
    """Return where something is mounted, at `path` or below it; None where nothing is. A link leads nowhere here.

    The kernel's list names mounts of the same file system too, which no number of a device tells apart (proc(5),
    mountinfo). Where there is no such list, as on macOS, the numbers are compared.
    """
    top = os.path.join(os.path.realpath(path.parent), path.name)
    try:
        lines = _MOUNTS.read_bytes().split(b"\n")
    except OSError:
        return _another_device(top)
    for fields in (line.split(b" ", 5) for line in lines if line):
        at = os.fsdecode(_OCTAL.sub(lambda found: bytes((int(found[1], 8),)), fields[4]))
        if f"{at}/".startswith(f"{top}/"):
            return Path(at)
    return None


def _another_device(top: str) -> Path | None:
    below = (f"{where}/{name}" for where, folders, _ in os.walk(top) for name in folders)
    return next((Path(at) for at in chain((top,), below) if os.path.ismount(at)), None)


def remove_tree(path: Path) -> None:
    """Remove `path` and everything below it, however deep, whatever its permissions, never through a link.

    What is already gone is no failure. Where something is mounted below, nothing is removed: a `RelayError` naming
    that, and so is one for what cannot be removed (another owner).
    """
    if mount := mounted_below(path):
        import shlex  # only to say so

        hint = f"unmount it, and type that again: umount {shlex.quote(str(mount))}"
        raise RelayError(f"cannot remove `{path}`: something is mounted at `{mount}`", hint=hint)
    folders = [(str(path), 0)]  # deepest last; a folder stays until it is empty
    tries = 0
    while folders:
        folder, depth = folders[-1]
        try:
            below = _empty(folder)
            if not below:
                folders.pop()
            elif depth < _DEEP:
                folders += [(f"{folder}/{name}", depth + 1) for name in below]
            else:
                folders += [(_lift(f"{folder}/{name}", path), 1) for name in below]
        except FileNotFoundError:
            folders.pop()
        except OSError as error:
            tries += 1  # somebody still writes there: look again, but not for ever
            if error.errno != errno.ENOTEMPTY or tries > _TRIES:
                name = error.filename or folder
                hint = f"see what stands there: ls -la {path}"
                raise RelayError(f"cannot remove `{name}`: {_reason(error)}", hint=hint) from error


def _empty(folder: str) -> list[str]:
    """Remove the plain entries of `folder`, and itself when no folder is left in it; return the folders left."""
    mode = os.lstat(folder).st_mode
    if not stat.S_ISDIR(mode):
        os.unlink(folder)
        return []
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(folder, stat.S_IMODE(mode) | stat.S_IRWXU)
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        if not is_folder:
            with suppress(FileNotFoundError):
                os.unlink(f"{folder}/{name}")
    below = [name for name, is_folder in listed if is_folder]
    if not below:
        os.rmdir(folder)
    return below


def _lift(folder: str, root: Path) -> str:
    """Move `folder` up to `root`, where its path is short, and return its new path."""
    os.chmod(folder, stat.S_IRWXU)  # a folder that is moved must be writable; lstat'ed as a folder just before
    lifted = f"{root}/.{os.urandom(8).hex()}"
    os.rename(folder, lifted)
    return lifted


def state_home() -> Path:
    """Return the user's folder for state, `$XDG_STATE_HOME` or `~/.local/state`; Relay's is `relay` below it.

    It is the real folder: what lies there is shown to agents by its path, and a jail has no links of the person's.
    """
    return Path(os.path.realpath(_home("XDG_STATE_HOME", ".local/state")))


def config_home() -> Path:
    """Return the user's folder for configuration, `$XDG_CONFIG_HOME` or `~/.config`; Relay's is `relay` below it."""
    return _home("XDG_CONFIG_HOME", ".config")


def _home(variable: str, default: str) -> Path:
    """Resolve by the variable, then HOME, then the user database: each only if absolute (pitfalls row 105)."""
    if (chosen := os.environ.get(variable, "")).startswith("/"):
        return Path(chosen)
    home = os.environ.get("HOME", "")
    if not home.startswith("/"):
        import pwd  # only where HOME is unset

        with suppress(KeyError):
            home = pwd.getpwuid(os.getuid()).pw_dir
    if not home.startswith("/"):
        raise RelayError(
            f"this user has no home folder: neither `HOME` nor `{variable}` is an absolute path",
            hint=f"set it: export {variable}=/some/folder",
        )
    return Path(home) / default

"""Files of a worktree for an agent's tools: nothing outside it, nothing of git's, whatever links stand in it.

These run in Relay's own process, so a name is resolved first and then opened component by component, following no
link: what an agent swaps in between leads nowhere. A file is replaced, never written through, so that a hard link to
elsewhere stays what it is.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files

LIMIT: Final = 16 << 20
"""Bytes of the largest file that is read or edited."""
ENTRIES: Final = 500
"""Entries of a folder that are listed."""
SHOWN: Final = 200
"""Characters of a longer one that are shown."""
LONGEST: Final = 4096
"""Characters of the longest path; the system takes as many bytes."""

_FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def inside(root: Path, name: str) -> str:
    """Return the real path of `name`, relative to `root`; `RelayError` where that is outside, or git's own.

    `""` is the root itself. A name may be relative or absolute; links in it are followed here and never again.
    """
    base = os.path.realpath(root)
    if len(name) > LONGEST:
        raise RelayError(f"`{name[:SHOWN]}...` is no path: it is longer than {LONGEST} characters")
    try:
        found = os.path.realpath(os.path.join(base, name))  # noqa: PTH118 - a Path would lose `..` after a link
    except (OSError, ValueError) as error:
        raise RelayError(f"`{name}` is no path: {error}") from None
    if found == base:
        return ""
    if not found.startswith(f"{base}/"):
        raise RelayError(f"`{name}` is outside your folder")
    below = found[len(base) + 1 :]
    if any(part.casefold() == ".git" for part in below.split("/")):
        raise RelayError(f"`{name}` is git's own, and out of bounds")
    return below


def read(root: Path, name: str) -> bytes:
    """Return the content of a file; what is no plain file of a sane size is a `RelayError`."""
    base = os.path.realpath(root)
    try:
        return files.read_below(Path(base), inside(root, name), LIMIT)
    except RelayError as error:  # where the worktree is, is no business of the agent's
        raise RelayError(error.message.replace(f"`{base}/", "`")) from None
    except FileNotFoundError:
        raise RelayError(f"there is no `{name}`") from None
    except OSError as error:
        raise RelayError(f"cannot read `{name}`: {error.strerror}") from None


def listed(root: Path, name: str) -> list[str] | None:
    """Return the entries of a folder, folders with a `/`, git's own left out; None where it is no folder."""
    try:
        folder = _folder(root, inside(root, name).split("/"))
    except OSError:
        return None
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.name + "/" * entry.is_dir(follow_symlinks=False)
                for entry in entries
                if entry.name.casefold() != ".git"
            )
    finally:
        os.close(folder)


def write(root: Path, name: str, data: bytes) -> bool:
    """Put a file there, with the folders it needs; True where it is new. Its permissions stay as they were."""
    below = inside(root, name)
    if not below:
        raise RelayError(f"`{name}` is a folder")
    *folders, last = below.split("/")
    try:
        folder = _folder(root, folders, make=True)
        try:
            return _replace(folder, last, name, data)
        finally:
            os.close(folder)
    except OSError as error:
        raise RelayError(f"cannot write `{name}`: {error.strerror}") from None


def _folder(root: Path, parts: list[str], *, make: bool = False) -> int:
    """Open a folder below the root, following no link; the caller closes it."""
    where = os.open(os.path.realpath(root), _FOLDER)
    try:
        for part in filter(None, parts):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=where)
            below = os.open(part, _FOLDER, dir_fd=where)
            os.close(where)
            where = below
    except BaseException:
        os.close(where)
        raise
    return where


def _replace(folder: int, last: str, name: str, data: bytes) -> bool:
    """Put a file in an open folder, as a whole or not at all."""
    mode = None
    with suppress(FileNotFoundError):
        mode = os.stat(last, dir_fd=folder, follow_symlinks=False).st_mode
    if mode is not None and not stat.S_ISREG(mode):
        raise RelayError(f"`{name}` is not a plain file")
    temporary = f".relay-{os.urandom(8).hex()}.tmp"
    descriptor = os.open(temporary, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode) & 0o777)
        os.replace(temporary, last, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return mode is None

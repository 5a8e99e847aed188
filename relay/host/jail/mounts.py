"""What a jailed program sees of the disk: its tree, what it may read besides, and nothing else.

This says what; `bwrap.py` says how.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

from relay.errors import Exit, RelayError
from relay.host import files, git, scan
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.terms import Struct

_PROGRAMS: Final = frozenset(
    {"askpass", "alternaterefscommand", "editor", "fsmonitor", "gitproxy", "hookspath", "pager", "sshcommand"}
)
"""Settings of `core` that name a program: none is needed inside, and some start a daemon."""


_REPOSITORY: Final = (
    *("HEAD", "ORIG_HEAD", "packed-refs", "shallow", "objects", "refs", "reftable", "info", "logs", "worktrees"),
    *("modules", "lfs"),
)
"""What of the common folder is shown as it is; settings are cleaned first."""


class Access(Enum):
    """What a program may do to its tree: look; write, and it vanishes; write."""

    READ = "read"
    SCRATCH = "scratch"
    WRITE = "write"


class Mounts(Struct, frozen=True, kw_only=True):
    """What is there, by full and real path; what is not named does not exist inside.

    `pinned` are files of the tree that stay as they are, with the sha256 they must have. `readable`, `writable` and
    `fleeting` lie outside the tree; writes to the last vanish where those to the tree do. `replaced` files have another
    content inside; `masked` folders are empty. `home` is the person's home, which is empty but for what is named.
    """

    tree: Path
    access: Access
    home: Path
    pinned: dict[Path, str] = {}
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    fleeting: tuple[Path, ...] = ()
    replaced: dict[Path, bytes] = {}
    masked: tuple[Path, ...] = ()

    def check(self) -> None:
        """Refuse what leads a mount astray: `RelayError` when a pin is not what it was, a path not real, or too much.

        bwrap makes the destinations of mounts on the host, through links that an agent left (CVE-2026-87766,
        sandbox.md 4.4). So none lies where an agent writes but the pins, which are looked at just before.
        """
        for path in (self.tree, *self.readable, *self.writable, *self.fleeting, *self.replaced, *self.masked):
            if os.path.realpath(path) != str(path):
                raise _astray(path, "is reached through a link, or is not absolute")
        for path in (*self.readable, *self.writable, *self.fleeting, *self.replaced, *self.masked, self.home):
            for place in (self.tree, *self.writable):
                if path.is_relative_to(place) and path != place:
                    raise _astray(path, f"lies in `{place}`, where an agent writes")
        for path in (*self.readable, *self.writable, *self.fleeting):
            if self.home.is_relative_to(path):
                raise _astray(path, f"would show the home `{self.home}` as a whole")
        for path, sha256 in self.pinned.items():
            if path.parent != self.tree or scan.kind(str(path)) != "a file" or _sha256(path) != sha256:
                raise _astray(path, "is not what it was")


def around(
    repo: Repository,
    lease: Lease,
    access: Access,
    *,
    home: Path,
    readable: tuple[Path, ...] = (),
    writable: tuple[Path, ...] = (),
    fleeting: tuple[Path, ...] = (),
) -> Mounts:
    """Return what a leg in a worktree sees: the worktree, and the repository without its secrets and the ledger.

    The configuration is shown as far as `core.*` and `extensions.*` go: the rest may hold tokens (sandbox.md 4.6).
    """
    common = repo.common.resolve()
    return Mounts(
        tree=lease.path,
        access=access,
        home=home.resolve(),
        pinned={lease.path / ".git": lease.pointer_sha256},
        readable=(*readable, *_shown(common), *_borrowed(common)),
        writable=writable,
        fleeting=fleeting,
        replaced={path: _cleaned(repo, path) for path in _configurations(common)},
        masked=tuple(path for path in (common / "relay",) if scan.kind(str(path)) == "a folder"),
    )


def _shown(common: Path) -> Iterator[Path]:
    """Yield what git needs to look at a repository: no ledger, no daemon's socket, no file that somebody keeps there.

    A repository that is put together from links is shown whole.
    """
    kinds = {name: scan.kind(str(common / name)) for name in _REPOSITORY}
    if "a link" in kinds.values():
        yield common
        return
    yield from (common / name for name, kind in kinds.items() if kind in {"a file", "a folder"})


def _sha256(path: Path) -> str:
    try:
        return files.sha256(files.read(path))
    except (OSError, RelayError):
        return ""


def _astray(path: Path, why: str) -> RelayError:
    return RelayError(
        f"no jail is built on `{path}`: it {why}", hint=f"look at it: ls -la {path}", exit_code=Exit.HUMAN
    )


def _configurations(folder: Path) -> Iterator[Path]:
    """Yield the configuration files below a git folder: its own, its worktrees', its submodules'."""
    own = (folder / "config", folder / "config.worktree", *folder.glob("worktrees/*/config.worktree"))
    yield from (path for path in own if scan.kind(str(path)) == "a file")
    waiting = [folder / "modules"]
    while waiting:  # the name of a submodule may have slashes in it
        with suppress(OSError):
            for entry in os.scandir(waiting.pop()):
                if entry.is_dir(follow_symlinks=False):
                    found = Path(entry.path)
                    if (found / "HEAD").exists():
                        yield from _configurations(found)
                    else:
                        waiting.append(found)


def _cleaned(repo: Repository, path: Path) -> bytes:
    """Return a configuration without what a program inside does not need to know."""
    listed = git.run(repo, "config", "--file", str(path), "--no-includes", "--list", "-z")
    lines = []
    for entry in listed.split(b"\0")[:-1]:
        name, separator, value = entry.partition(b"\n")
        section, _, key = name.partition(b".")
        if section in {b"core", b"extensions"} and b"." not in key and key.decode("ascii", "replace") not in _PROGRAMS:
            quoted = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\t", b"\\t")
            lines.append(b"[%s]\n\t%s%s\n" % (section, key, b' = "%s"' % quoted if separator else b""))
    return b"".join(lines)


def _borrowed(common: Path) -> Iterator[Path]:
    """Yield the object folders of other repositories that this one borrows from (`git clone --shared`)."""
    waiting, seen = [common / "objects"], {common / "objects"}
    while waiting:
        objects = waiting.pop()
        with suppress(OSError, RelayError):
            for line in files.read(objects / "info" / "alternates").splitlines():
                found = (objects / os.fsdecode(line)).resolve()
                if not line.startswith(b"#") and found not in seen and found.is_dir():
                    seen.add(found)
                    waiting.append(found)
                    if not found.is_relative_to(common):
                        yield found

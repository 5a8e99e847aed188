"""The person's checkouts, the main one and the linked ones, and what stands in them that is not as committed.

Cost of a look: one lstat for each file in the index, one read for each file that is dirty anyway, and one lstat for
each file in ignored folders, up to a bound. Links are never followed.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from relay.errors import RelayError
from relay.host import drivers, files, git, names, scan, touched, worktree
from relay.host.repository import Repository

LINKED: Final = 4
"""So many linked worktrees of the person's are looked into, beside the one where Relay was called."""
ENTRIES: Final = 20_000
"""So many entries of a checkout's ignored folders are looked at: a quarter of a second."""
_SMALL: Final = 1 << 20
"""Ignored files up to this many bytes are compared by content; larger ones by size and times."""
_GIT: Final = frozenset({"config", "hooks", "HEAD"})
"""What is looked at in a repository that lies in an ignored folder; its index changes when somebody only looks."""
_LONG: Final = 120.0
_POINTER: Final = 64 << 10
_STATUS: Final = (
    *("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching"),
    *("--ignore-submodules=all", "--no-renames"),
)


class Checkout(NamedTuple):
    """A checkout of the person's: its name in a fingerprint, its folder, and its part of the repository."""

    name: str
    top: Path
    git_dir: Path


def find(repo: Repository) -> tuple[list[Checkout], int]:
    """Return the main checkout, the one where Relay was called, and some of the others; and how many more there are."""
    found: list[Checkout] = []
    if repo.main_top is not None:
        found.append(Checkout("checkout", repo.main_top, repo.common))
    if repo.top is not None and repo.top != repo.main_top:
        found.append(Checkout(f"checkout {len(found) + 1}" if found else "checkout", repo.top, repo.git_dir))
    others = [
        Checkout(f"worktrees/{entry.name}/checkout", top, entry)
        for entry in linked(repo)
        if entry != repo.git_dir and (top := _top(entry)) is not None
    ]
    return found + others[:LINKED], len(others[LINKED:])


def linked(repo: Repository) -> list[Path]:
    """Return the entries of the person's linked worktrees: those that Relay neither locked nor made an index for."""
    try:
        own = {entry.git_dir for entry in worktree.own(repo)}
        entries = sorted((repo.common / "worktrees").iterdir())
        return [e for e in entries if e not in own and e.is_dir() and not (e / touched.PRISTINE).exists()]
    except (OSError, RelayError):
        return []


def _top(entry: Path) -> Path | None:
    """Return the checkout that a worktree's entry names, if that names the entry too: else it may be any folder."""
    try:
        back = entry / os.fsdecode(files.read(entry / "gitdir", _POINTER)).rstrip("\r\n")
        kind, _, forth = os.fsdecode(files.read(back, _POINTER)).rstrip("\r\n").partition(": ")
    except (OSError, RelayError):
        return None
    top = Path(os.path.realpath(back.parent))
    return top if kind == "gitdir" and os.path.realpath(top / forth) == os.path.realpath(entry) else None


def look(repo: Repository, checkout: Checkout, *, deep: bool = True) -> dict[str, str]:
    """Return what is dirty, untracked or ignored, or hidden from git, as `NAME/PATH`; caches are left out.

    `deep` looks into ignored folders as well: they are out of reach of whoever is in a jail.
    """
    name, top, git_dir = checkout
    seen = scan.look(top)
    found = {git.label(f"{name}/{path}"): kind for path, kind in seen.special.items() if not names.cache(path)}
    if seen.blocking:  # a user's folder: nothing is removed there, and git would hang
        return found | {git.label(name): f"git would hang on `{git.label(seen.blocking[0])}`"}
    where, off = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(top)}, drivers.find(repo).off
    out = git.run(repo, "-C", str(top), *_STATUS, env=where, config=off, timeout=_LONG)
    folders = []
    for mark, path in map(_record, filter(None, out.split(b"\0"))):
        if mark[:1] == b"!" and names.cache(path):
            continue
        if path.endswith("/"):
            folders.append(path)
        value = _ignored(f"{top}/{path}") if mark[:1] == b"!" else touched.digest(f"{top}/{path}")
        found[git.label(f"{name}/{path}")] = f"{mark.decode()} {value}"
    if deep:
        found |= {git.label(f"{name}/{path}"): value for path, value in _folders(top, sorted(folders))}
    # what git was told not to look at (row 112) is read all the same
    flags = git.run(repo, "-C", str(top), "ls-files", "-z", "-v", env=where, config=off, timeout=_LONG)
    for entry in flags.split(b"\0"):
        if entry[:1].islower() or entry[:1] == b"S":
            path = os.fsdecode(entry[2:])
            found[git.label(f"{name}/{path}")] = f"{entry[:1].decode()} {touched.digest(f'{top}/{path}')}"
    return found


def _record(record: bytes) -> tuple[bytes, str]:
    """Split a line of `status --porcelain=v2`: the state with the staged object, and the path."""
    kind = record[:1]
    if kind == b"1":
        _, state, *_, staged, path = record.split(b" ", 8)
        return b"1 " + state + b" " + staged, os.fsdecode(path)
    if kind == b"u":
        fields = record.split(b" ", 10)
        return b" ".join(fields[:2]), os.fsdecode(fields[-1])
    return kind, os.fsdecode(record[2:])


def _ignored(path: str) -> str:
    """Return the digest of a small file, and what lstat says of a large one: nobody can set its ctime."""
    with suppress(OSError):
        if os.lstat(path).st_size > _SMALL:
            return _stat(path)
    return touched.digest(path)


def _stat(path: str) -> str:
    state = os.lstat(path)
    return f"{state.st_mode} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"


def _folders(top: Path, paths: list[str]) -> Iterator[tuple[str, str]]:
    """Return a value for each folder that git lists as one, until together they had `ENTRIES` entries."""
    left = ENTRIES
    for path in paths:
        seen, more = hashlib.sha256(), ""
        for line in _walk(f"{top}/{path}"):
            if not left:
                more = f", and more than {ENTRIES} entries are not watched"
                break
            left -= 1
            seen.update(os.fsencode(line) + b"\0")
        yield path, f"a folder {seen.hexdigest()}{more}"


def _walk(root: str) -> Iterator[str]:
    """Yield a line for each entry below `root`, in one order, by lstat alone; caches and Relay's own are left out."""
    own = os.path.realpath(files.state_home() / "relay")
    folders = [""]
    while folders:
        here = folders.pop()
        try:
            with os.scandir(root + here) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            yield f"{here} unreadable"
            continue
        for entry in listed:
            if names.cache(entry.name) or entry.path == own or (here.endswith(".git/") and entry.name not in _GIT):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{here}{entry.name}/")
                    yield f"{here}{entry.name}/"
                else:
                    yield f"{here}{entry.name} {_stat(entry.path)}"
            except OSError:
                yield f"{here}{entry.name} is gone"

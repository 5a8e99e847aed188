"""Which repository a folder belongs to, found by looking: no git is run, so it costs next to nothing.

The environment is not asked (an inherited `GIT_DIR` would lead elsewhere, pitfalls row 27), and every path is real,
so that a checkout reached through a link is the same checkout (row 89).
"""

import os
import re
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files
from relay.terms import Struct

_POINTER_LIMIT: Final = 64 << 10
_BARE: Final = re.compile(rb"^\s*bare\s*(?:=\s*(?:true|yes|on|1)\s*)?(?:[#;].*)?$", re.IGNORECASE | re.MULTILINE)


class Repository(Struct, frozen=True, kw_only=True):
    """Where a repository is.

    `common` is what all its worktrees share, `git_dir` this worktree's own part of it, `top` the checkout that the
    folder lies in and `main_top` the main checkout; both are None where there is none.
    """

    common: Path
    git_dir: Path
    top: Path | None
    main_top: Path | None


def discover(folder: Path) -> Repository:
    """Return the repository that `folder` lies in; `RelayError` when it lies in none, or in a broken one."""
    try:
        start = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise RelayError(f"there is no folder `{folder}`", hint="name one that exists: relay -C DIR") from error
    for place in (start, *start.parents):
        entry = place / ".git"
        if entry.is_file():
            return _repository(_follow(entry), top=place)
        if _is_git_dir(entry):
            return _repository(entry.resolve(), top=place)
        if _is_git_dir(place):
            return _repository(place, top=None)
    raise RelayError(f"`{start}` is not in a git repository", hint="name one: relay -C DIR, or make one: git init")


def _repository(git_dir: Path, top: Path | None) -> Repository:
    pointer = git_dir / "commondir"
    linked = pointer.is_file()
    common = (git_dir / _line(pointer)).resolve() if linked else git_dir
    bare = _is_bare(common)
    if bare and not linked:
        top = None
    main_top = top if not linked and top else common.parent if common.name == ".git" and not bare else None
    return Repository(common=common, git_dir=git_dir, top=top, main_top=main_top)


def _is_git_dir(path: Path) -> bool:
    """Tell what git itself asks: a HEAD, and objects and refs, which a linked worktree shares."""
    if not os.path.lexists(path / "HEAD"):
        return False
    shared = path
    if (path / "commondir").is_file():
        shared = path / _line(path / "commondir")
    return (shared / "objects").is_dir() and (shared / "refs").is_dir()


def _follow(entry: Path) -> Path:
    """Return the git dir that a `.git` file names; git does not look further up either when it is broken."""
    kind, _, name = _line(entry).partition(":")
    git_dir = (entry.parent / name.strip()).resolve()
    if kind != "gitdir" or not name.strip() or not _is_git_dir(git_dir):
        hint = "if the worktree was moved: git worktree repair"
        raise RelayError(f"`{entry}` does not lead to a git repository", hint=hint)
    return git_dir


def _line(path: Path) -> str:
    return os.fsdecode(files.read(path, _POINTER_LIMIT)).rstrip("\r\n")


def _is_bare(common: Path) -> bool:
    try:
        config = files.read(common / "config", _POINTER_LIMIT << 4)
    except (OSError, RelayError):
        return False
    return _BARE.search(config) is not None

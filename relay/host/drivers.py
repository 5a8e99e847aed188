"""The programs that a repository's settings would have git run: found by name, and switched off.

A .gitattributes that an agent wrote chooses among them, so a call that touches its files runs none
(sandbox.md section 8.1, rows 5 to 9).
"""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from relay.host import git, proc
from relay.host.gitenv import Config
from relay.host.repository import Repository
from relay.terms import Struct


class Drivers(Struct, frozen=True, kw_only=True):
    """`off` are the settings that silence every filter and hook; `required` filters change what a commit must hold.

    `content` are the person's settings that decide what of a file is stored, and `shown` the files that they name: a
    git in a jail sees neither by itself.
    """

    off: Config
    required: frozenset[str]
    content: Config = ()
    shown: tuple[Path, ...] = ()


_CONTENT: Final = ("autocrlf", "eol", "filemode", "ignorecase", "symlinks", "precomposeunicode", "bigfilethreshold")
_NAMING: Final = ("excludesfile", "attributesfile")


def find(repo: Repository) -> Drivers:
    """Return which filters and hooks the settings of the repository, its user and the system name.

    Asked of git once, and again after any program ran or a file of settings changed: until then nobody could name more.
    """
    return _find(repo, proc.ran(), tuple(map(_state, _settings(repo))))


def _settings(repo: Repository) -> Iterator[Path]:
    """Yield the files that git reads its settings from; what they include is somebody's who ran a program."""
    yield from (repo.common / "config", repo.common / "config.worktree", Path("/etc/gitconfig"))
    home = Path(os.environ.get("HOME") or os.sep)
    yield home / ".gitconfig"
    yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"


def _state(path: Path) -> tuple[str, int, int, int]:
    """Return what tells one state of a file from another."""
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0, 0
    return str(path), found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=8)
def _find(repo: Repository, _ran: int, _states: tuple[tuple[str, int, int, int], ...]) -> Drivers:
    """Ask git."""
    wanted = rf"^((filter|hook)\.|core\.({'|'.join((*_CONTENT, *_NAMING))})$)"
    out = git.run(repo, "config", "-z", "--get-regexp", wanted, ok=(0, 1), env={"GIT_DIR": str(repo.common)})
    off: dict[str, str] = {
        "core.sparseCheckout": "false",  # a leg has all files, or deletes what it cannot see
        "core.protectHFS": "true",  # what another machine would take for `.git` is refused by name
        "core.protectNTFS": "true",
    }
    required: set[str] = set()
    core = dict(_ignored_and_attributed())
    for record in out.split(b"\0"):
        key, said, value = record.decode("utf-8", "surrogateescape").partition("\n")
        kind, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if kind == "filter" and name:
            off |= {f"filter.{name}.{program}": "" for program in ("clean", "smudge", "process")}
            off[f"filter.{name}.required"] = "false"
            if setting == "required" and value.lower() in {"", "true", "yes", "on", "1"}:
                required.add(name)
        elif kind == "hook" and name:
            off[f"hook.{name}.enabled"] = "false"
        elif kind == "core":
            core[key] = value if said else "true"  # a name alone switches on
    for name in _NAMING:  # a jail shows the file itself, not the links that lead there
        core[f"core.{name}"] = os.path.realpath(os.path.expanduser(core[f"core.{name}"]))
    shown = (Path(core[f"core.{name}"]) for name in _NAMING)
    return Drivers(
        off=tuple(off.items()),
        required=frozenset(required),
        content=tuple(core.items()),
        shown=tuple(path for path in shown if path.is_file()),
    )


def _ignored_and_attributed() -> Iterator[tuple[str, str]]:
    """Yield where git looks for a person's own lists where no setting says so."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME") or os.sep) / ".config") / "git"
    yield from zip(
        (f"core.{name}" for name in _NAMING), (str(folder / "ignore"), str(folder / "attributes")), strict=True
    )

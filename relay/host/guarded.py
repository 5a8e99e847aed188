"""Settings and hooks that make git run a program: kept before a leg that no jail holds, put back after a breach.

What stood there instead is kept as evidence. A setting that starts no program, such as a name or a branch's upstream,
may be the person's own change meanwhile, and stays.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files, git, touched
from relay.host.repository import Repository

KEPT: Final = "guarded"
EVIDENCE: Final = "evidence"
_FILES: Final = ("config", "config.worktree", "info/attributes", "objects/info/alternates")
_HARMLESS: Final = re.compile(
    r"(user|author|committer|branch|color|column|advice|push|pull|fetch|rerere|rebase|log|status|gc|maintenance|init"
    r"|tag|notes|tar|versionsort|stash)\..*|remote\..*\.fetch|core\.(quotepath|abbrev|commentchar|autocrlf|eol|safecrlf)"
)
_NO_SETTING: Final = re.compile(r"init\.templatedir|branch\..*\.mergeoptions")


def keep(repo: Repository, folder: Path) -> None:
    """Copy what is guarded into `folder`, which the leg's record names."""
    (folder / KEPT).mkdir(exist_ok=True, mode=0o700)
    for name in _present(repo):
        target = folder / KEPT / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy2(repo.common / name, target, follow_symlinks=False)


def put_back(repo: Repository, folder: Path, before: Mapping[str, str]) -> tuple[str, ...]:
    """Put back what differs dangerously from `before`, a fingerprint, and return the names of what was put back.

    A copy that is not what the fingerprint says is not used: somebody rewrote it. Nothing is done where nothing was
    kept.
    """
    if not (folder / KEPT).is_dir():
        return ()
    done = []
    for name in sorted({*_present(repo), *_below(folder / KEPT)}):
        label, kept, present = git.label(name), folder / KEPT / name, repo.common / name
        was = before.get(label, "nothing")
        if touched.digest(str(present)) == was or (was != "nothing" and touched.digest(str(kept)) != was):
            continue
        if name.startswith("config") and not _dangerous(repo, kept, present):
            continue
        _save(present, folder / EVIDENCE / name)
        if was != "nothing":
            present.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(kept, present, follow_symlinks=False)
        done.append(label)
    return tuple(done)


def _save(present: Path, place: Path) -> None:
    """Move away what stands there, with whatever it is."""
    if not os.path.lexists(present):
        return
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.remove_tree(place)
    shutil.move(present, place)


def _present(repo: Repository) -> Iterator[str]:
    yield from (name for name in _FILES if os.path.lexists(repo.common / name))
    with suppress(OSError):
        yield from (f"hooks/{name}" for name in os.listdir(repo.common / "hooks") if not name.endswith(".sample"))


def _below(folder: Path) -> Iterator[str]:
    for where, _, names in os.walk(folder):
        yield from (os.path.relpath(os.path.join(where, name), folder) for name in names)


def _dangerous(repo: Repository, kept: Path, present: Path) -> bool:
    """Tell whether two files of settings differ in more than what starts no program; one that cannot be read does."""
    try:
        was, now = _settings(repo, kept), _settings(repo, present)
    except (OSError, RelayError):
        return True
    return any(not _HARMLESS.fullmatch(key) or _NO_SETTING.fullmatch(key) for key, _ in was ^ now)


def _settings(repo: Repository, path: Path) -> set[tuple[str, str]]:
    if not os.path.lexists(path):
        return set()
    listed = git.run(repo, "config", "--file", "-", "--no-includes", "--list", "-z", stdin=files.read(path))
    entries = (entry.partition(b"\n") for entry in listed.split(b"\0") if entry)
    return {(os.fsdecode(key).lower(), os.fsdecode(value)) for key, _, value in entries}

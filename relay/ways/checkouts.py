"""Who works on a branch: the checkouts that have it, and what a person is in the middle of there.

Read from the files that git itself reads for its question "is this branch in use" (git's branch.c): a checkout that is
being rebased or bisected has a HEAD that names no branch, and moves the branch at its end.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from relay.errors import RelayError
from relay.host import files, git
from relay.host.repository import Repository
from relay.terms import Struct

_UNDERWAY: Final = (
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer/todo", "cherry-pick"),
    ("rebase-apply/applying", "am"),
)
"""Which file says what goes on in a checkout whose HEAD still names its branch."""
_LIMIT: Final = 1 << 20


class Checkout(Struct, frozen=True, kw_only=True):
    """A checkout that works on a branch: its folder, None where nobody knows it, git's own part, and what goes on."""

    folder: Path | None
    git_dir: Path
    doing: str = ""


def of(repo: Repository, ref: str) -> list[Checkout]:
    """Return every checkout that has a branch, or will move it once what it is in the middle of ends."""
    found = [_look(repo, git_dir, folder, ref) for git_dir, folder in _all(repo)]
    return [checkout for checkout in found if checkout is not None]


def _all(repo: Repository) -> Iterator[tuple[Path, Path | None]]:
    """Yield git's part and the folder of each checkout: the main one, unless there is none, and the linked ones."""
    main = msgspec.structs.replace(repo, git_dir=repo.common)
    if git.call(main, "config", "--type=bool", "--get", "core.bare").out.strip() != b"true":
        elsewhere = os.fsdecode(git.call(main, "config", "--get", "core.worktree").out).strip()
        yield repo.common, Path(os.path.normpath(repo.common / elsewhere)) if elsewhere else repo.main_top
    for git_dir in sorted((repo.common / "worktrees").glob("*")):
        pointer = _text(git_dir / "gitdir")
        yield git_dir, Path(os.path.normpath(git_dir / pointer)).parent if pointer else None


def _look(repo: Repository, git_dir: Path, folder: Path | None, ref: str) -> Checkout | None:
    head = git.call(msgspec.structs.replace(repo, git_dir=git_dir), "symbolic-ref", "-q", "HEAD")
    attached = os.fsdecode(head.out).strip() == ref
    doing = next((word for name, word in _UNDERWAY if attached and (git_dir / name).exists()), "")
    moves = {_text(git_dir / kind / "head-name") for kind in ("rebase-merge", "rebase-apply")}
    if ref in moves.union(_text(git_dir / "rebase-merge" / "update-refs").splitlines()):
        doing = "rebase"
    elif _text(git_dir / "BISECT_START") in {ref, ref.removeprefix("refs/heads/")}:
        doing = "bisect"
    return Checkout(folder=folder, git_dir=git_dir, doing=doing) if attached or doing else None


def _text(path: Path) -> str:
    """Return what a small file of git's says; nothing where it is not there."""
    try:
        return os.fsdecode(files.read(path, _LIMIT)).strip()
    except (OSError, RelayError):
        return ""

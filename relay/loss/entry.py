"""What git keeps in a worktree's entry alone, and what goes with it: commits, what is staged, what is not finished."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files, git, inventory, worktree
from relay.host.lease import Lease
from relay.host.repository import Repository

POINTER_LIMIT: Final = 64 << 10
_UNFINISHED: Final = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "sequencer": "a row of picks",
    "MERGE_HEAD": "a merge",
    "MERGE_AUTOSTASH": "a merge",
    "CHERRY_PICK_HEAD": "a pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
}
"""What git writes while it waits for a person, who may have put work aside in it (git-rebase(1), `--autostash`)."""
_OWN_REFS: Final = ("refs/worktree", "refs/bisect", "refs/rewritten")
"""Refs that each worktree has for itself (git-worktree(1), "REFS")."""
_OID: Final = re.compile(rb"(?!0+$)[0-9a-f]{40,64}")


def lease(path: Path, git_dir: Path) -> Lease | None:
    """Return a worktree as a lease, where its `.git` names that very entry; a copied repository's does not (row 91)."""
    try:
        pointer = files.read(path / ".git", POINTER_LIMIT)
    except (OSError, RelayError):
        return None
    named = Path(os.path.realpath(path / os.fsdecode(pointer.removeprefix(b"gitdir:").strip())))
    if named != Path(os.path.realpath(git_dir)):
        return None
    return Lease(path=path, git_dir=git_dir, pointer_sha256=files.sha256(pointer))


def owner(path: Path) -> str:
    """Return the repository that a worktree belongs to, where that is there and knows it; or nothing."""
    entry = _entry(path)
    return str(entry.parent.parent) if entry is not None else ""


def git_dir(repo: Repository, path: Path) -> Path:
    """Return where git keeps what it knows of a worktree of this repository; its `.git` where that leads elsewhere."""
    entry = _entry(path)
    here = Path(os.path.realpath(repo.common / "worktrees"))
    return entry if entry is not None and entry.parent == here else path / ".git"


def _entry(path: Path) -> Path | None:
    """Return the entry that the `.git` of a worktree names, where that leads back: names are alike in many clones."""
    try:
        pointer = files.read(path / ".git", POINTER_LIMIT).removeprefix(b"gitdir:").strip()
        entry = Path(os.path.realpath(path / os.fsdecode(pointer)))
        back = os.fsdecode(files.read(entry / "gitdir", POINTER_LIMIT).strip())
    except (OSError, RelayError, ValueError):
        return None
    same = os.path.realpath(entry / back) == os.path.realpath(path / ".git")
    return entry if same and entry.parent.name == "worktrees" else None


def locked(git_dir: Path) -> str:
    """Say that a worktree is locked, so that git itself would not remove it; nothing where it is not."""
    try:
        reason = files.read(git_dir / "locked", POINTER_LIMIT).decode("utf-8", "replace").strip()
    except (OSError, RelayError):
        return ""
    return f"it is locked: `{reason}`" if reason else "it is locked"


def locked_by_another(repo: Repository, git_dir: Path) -> str:
    """Say that somebody other than Relay locked a worktree."""
    return "" if any(entry.git_dir == git_dir for entry in worktree.own(repo)) else locked(git_dir)


def away(git_dir: Path) -> str:
    """Say that not only a worktree is gone but what it lay in: then it may only be out of sight."""
    try:
        back = git_dir / os.fsdecode(files.read(git_dir / "gitdir", POINTER_LIMIT).strip())
    except (OSError, RelayError, ValueError):
        return ""
    return out_of_sight(back.parent)


def out_of_sight(path: Path) -> str:
    """Say that the folder around a worktree is gone as well, as when a disk is not mounted; nothing where it is not.

    Relay itself removes that folder after all that lies in it, and what git knows of that.
    """
    around = path.parent
    return "" if path.is_dir() or around.is_dir() else f"so is `{around}`, as when a disk is not mounted"


def on_a_ref(repo: Repository, commit: str) -> bool:
    """Tell whether a ref keeps a commit from being pruned (row 41)."""
    return bool(git.run(repo, "for-each-ref", "--count=1", "--format=x", f"--contains={commit}", ok=(0, 129)).strip())


def head(repo: Repository, git_dir: Path) -> str:
    """Return the commit that HEAD of a worktree names; nothing where it names none."""
    answer = git.call(repo, "rev-parse", "--verify", "-q", "HEAD^{commit}", env={"GIT_DIR": str(git_dir)})
    return os.fsdecode(answer.out.strip()) if answer.code == 0 else ""


def alone(repo: Repository, git_dir: Path) -> list[str]:
    """Return the commits that this entry names, or named once, and no ref keeps; of these, the newest of each line."""
    named = {os.fsencode(at): None for at in (head(repo, git_dir), *_own_refs(repo, git_dir).values()) if at}
    for path in (git_dir / "ORIG_HEAD", *sorted((git_dir / "logs").rglob("*"))):
        if path.is_file():
            lines = files.read(path).splitlines()
            named |= dict.fromkeys(word for line in lines for word in line.split(b" ")[:2] if _OID.fullmatch(word))
    if not named:
        return []
    asked = b"".join(b"%s\n" % oid for oid in named)
    ask = ("rev-list", "--topo-order", "--parents", "--ignore-missing", "--stdin", "--not", "--glob=refs/*")
    found = [line.split(" ") for line in os.fsdecode(git.run(repo, *ask, stdin=asked)).splitlines()]
    inner = {parent for _, *parents in found for parent in parents}
    return [oid for oid, *_ in found if oid not in inner]


def _own_refs(repo: Repository, git_dir: Path) -> dict[str, str]:
    """Return the refs that only this worktree sees."""
    if not (any(path.is_file() for path in (git_dir / "refs").rglob("*")) or (git_dir / "reftable").is_dir()):
        return {}
    ask = ("for-each-ref", "--format=%(objectname) %(refname)", *_OWN_REFS)
    lines = os.fsdecode(git.run(repo, *ask, env={"GIT_DIR": str(git_dir)})).splitlines()
    return {name: oid for oid, name in (line.split(" ", 1) for line in lines)}


def put_aside(repo: Repository, git_dir: Path, name: str, start: str) -> dict[str, str]:
    """Keep under refs what an agent committed by itself: HEAD as `NAME.agent`, what it left again beside that.

    Returns the refs. What cannot be read stays in the worktree, and `holds` says so.
    """
    refs: dict[str, str] = {}
    try:
        if (own := head(repo, git_dir)) not in {"", start}:
            refs[f"{name}.agent"] = own
            git.put_ref(repo, f"{name}.agent", own)
        left = alone(repo, git_dir)
    except (OSError, RelayError):
        return refs
    for commit in left:
        refs[f"{name}.agent-{commit[:12]}"] = commit
        git.put_ref(repo, f"{name}.agent-{commit[:12]}", commit)
    return refs


def holds(repo: Repository, git_dir: Path, but: str = "") -> str:
    """Say what only a worktree's entry holds, its index and the commit `but` apart; nothing where it may go."""
    for name, what in _UNFINISHED.items():
        if os.path.lexists(git_dir / name):
            return f"{what} in it is not finished"
    if left := [commit for commit in alone(repo, git_dir) if commit != but]:
        return f"its commit `{left[0][:12]}` is on no ref"
    for name, oid in _own_refs(repo, git_dir).items():
        if git.run(repo, "cat-file", "-t", oid, ok=(0, 128)) != b"commit\n":
            return f"what its ref `{git.label(name)}` names is on no other"
    if inventory.committed_inside(git_dir):
        return "it has submodules with commits of their own"
    return ""


def stepped(repo: Repository, git_dir: Path, since: float) -> str:
    """Say what was put into an entry after a moment: commits, what is staged, what is not finished."""
    if any(inventory.changed_since(str(git_dir), name, since) for name in ("HEAD", "logs/HEAD")):
        return "something was committed in it"
    names = [path.name for path in git_dir.iterdir() if not path.name.startswith("relay-") and path.name != "modules"]
    if not any(inventory.changed_since(str(git_dir), name, since) for name in names):
        return ""
    at = head(repo, git_dir)
    return holds(repo, git_dir, but=at) or staged(repo, git_dir, [at], {})


def staged(repo: Repository, git_dir: Path, commits: Iterable[str], baseline: Mapping[str, str]) -> str:
    """Say which file stands in its index as neither set-up made it nor any of these commits has it."""
    if not (git_dir / "index").exists():
        return ""
    only: set[tuple[bytes, bytes]] | None = None
    for commit in commits:
        ask = ("diff-index", "--cached", "--no-renames", "--diff-filter=d", "-z", commit, "--")
        words = git.run(repo, *ask, env={"GIT_DIR": str(git_dir)}).split(b"\0")
        here = {(path, what.split(b" ")[3]) for what, path in zip(words[::2], words[1::2], strict=False)}
        only = here if only is None else only & here
    for path, blob in sorted(only or ()):
        name = git.label(os.fsdecode(path))
        if blob.strip(b"0") and not _as_made(repo, os.fsdecode(blob), baseline.get(name, "")):
            return f"`{name}` is staged in it and kept nowhere else"
    return ""


def _as_made(repo: Repository, blob: str, made: str) -> bool:
    """Tell whether what is staged is what set-up made: see `touched.digest`."""
    return bool(made) and made[1:] == files.sha256(git.run(repo, "cat-file", "blob", blob, ok=(0, 128)))

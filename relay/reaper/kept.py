"""Whether everything in a worktree is kept elsewhere: only then may it go. Looked at, never changed.

What is kept: a commit on a ref holds it, set-up put it there, or tools make it again by themselves (pitfalls rows 39,
40). When in doubt, it is not.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from relay.errors import RelayError
from relay.host import files, git, names, provision, scan, touched, worktree
from relay.host.jail.rungs import Rung
from relay.host.lease import Lease
from relay.host.repository import Repository

POINTER_LIMIT = 64 << 10


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


def on_a_ref(repo: Repository, commit: str) -> bool:
    """Tell whether a ref keeps a commit from being pruned (row 41)."""
    return bool(git.run(repo, "for-each-ref", "--count=1", "--format=x", f"--contains={commit}", ok=(0, 129)).strip())


def entry_holds(repo: Repository, git_dir: Path) -> str:
    """Say what only a worktree's entry holds: a commit that an agent made by itself, or what it staged."""
    env = {"GIT_DIR": str(git_dir)}
    answer = git.call(repo, "rev-parse", "--verify", "-q", "HEAD^{commit}", env=env)
    head = os.fsdecode(answer.out.strip())
    if answer.code:
        return ""  # it names none, so it keeps none
    if not on_a_ref(repo, head):
        return f"its commit `{head[:12]}` is on no ref"
    staged = (git_dir / "index").exists()
    if staged and git.call(repo, "diff-index", "--cached", "--quiet", head, "--", env=env).code:
        return "something is staged in it and not committed"
    modules = git_dir / "modules"
    return "it has submodules with commits of their own" if modules.is_dir() and any(modules.iterdir()) else ""


def missing(
    repo: Repository,
    lease: Lease,
    commits: Iterable[str],
    baseline: Mapping[str, str],
    rung: Rung | None,
) -> str:
    """Say what a worktree holds that none of these commits does; nothing where it may go."""
    try:
        seen = scan.look(lease.path)
        if seen.unreadable or seen.blocking:
            return f"`{git.label((*seen.unreadable, *seen.blocking)[0])}` in it cannot be looked at"
        head = worktree.head(repo, lease)
        if head is not None and not on_a_ref(repo, head):
            return f"its commit `{head[:12]}` is on no ref"
        modules = lease.git_dir / "modules"
        if modules.is_dir() and any(modules.iterdir()):
            return "it has submodules with commits of their own"
        commits = tuple(commits)
        said = _left(repo, lease) or _staged(repo, lease, commits, baseline)
        for commit in () if said else commits:
            more = _beyond(repo, lease, commit, baseline, rung)
            if not more:
                return ""
            said = said or f"`{git.label(more)}` in it is kept nowhere else"
    except (OSError, RelayError) as error:
        return f"it cannot be looked at: {error.message if isinstance(error, RelayError) else error}"
    return said or "no ref keeps what was done in it"


def _left(repo: Repository, lease: Lease) -> str:
    """Say which commit its HEAD once named, and no ref keeps: the log of HEAD goes with the worktree."""
    if not (lease.git_dir / "logs" / "HEAD").exists():
        return ""
    log = files.read(lease.git_dir / "logs" / "HEAD")
    named = dict.fromkeys(word for line in log.splitlines() for word in line.split(b" ")[:2] if word.strip(b"0"))
    asked = b"".join(b"%s\n" % word for word in named)
    found = git.run(
        repo, "rev-list", "--max-count=1", "--ignore-missing", "--stdin", "--not", "--glob=refs/*", stdin=asked
    )
    return f"its commit `{os.fsdecode(found.strip())[:12]}` is on no ref" if found.strip() else ""


def _staged(repo: Repository, lease: Lease, commits: Iterable[str], baseline: Mapping[str, str]) -> str:
    """Say which file stands in its index as none of these commits has it."""
    if not (lease.git_dir / "index").exists():
        return ""
    only: set[tuple[bytes, bytes]] | None = None
    for commit in commits:
        ask = ("diff-index", "--cached", "--no-renames", "--diff-filter=d", "-z", commit, "--")
        words = git.run(repo, *ask, env={"GIT_DIR": str(lease.git_dir)}).split(b"\0")
        here = {(path, what.split(b" ")[3]) for what, path in zip(words[::2], words[1::2], strict=False)}
        only = here if only is None else only & here
    names = sorted(git.label(os.fsdecode(path)) for path, blob in only or () if blob.strip(b"0"))
    left = next((name for name in names if name not in baseline), "")
    return f"`{left}` is staged in it and kept nowhere else" if left else ""


def _beyond(repo: Repository, lease: Lease, commit: str, baseline: Mapping[str, str], rung: Rung | None) -> str:
    """Return the first path that a worktree has beyond a commit; what is missing there is no loss."""
    put = set(provision.recall(lease.git_dir, provision.PUT))
    before = put | set(provision.recall(lease.git_dir, provision.IGNORED))
    with touched.view(repo, lease, commit, rung=rung) as here:
        for path in here.changed():
            as_made = baseline.get(git.label(path)) == touched.digest(f"{lease.path}/{path}")
            if not as_made and path not in put and here.kind(path) != "nothing":
                return path
        return next((path for path in here.ignored() if path not in before and not names.cache(path)), "")


def everyone() -> list[int]:
    """Return the numbers of all processes, this one and those it descends from too."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def used_by(path: Path) -> int | None:
    """Return a process that stands in a folder: it must not go from under somebody (row 129)."""
    top = os.path.realpath(path)
    for pid in everyone():
        with suppress(OSError):
            where = str(Path(f"/proc/{pid}/cwd").readlink())
            if where == top or where.startswith(f"{top}/"):
                return pid
    return None

"""Worktrees: one for each leg, detached, locked, outside every checkout, and given back only by its own entry.

Git's own `worktree remove` and `prune` are not used: the first deletes what it should not and stops half-way, the
second takes entries that are not Relay's (pitfalls rows 13, 39, 70, 92, 130). What they do is remove two folders,
and that is done here after looking at who owns them.
"""

import glob
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.errors import Exit, RelayError
from relay.host import drivers, files, git, inventory, provision, scan, signals, touched
from relay.host.jail.cell import Cell
from relay.host.lease import CACHE, Lease
from relay.host.repository import Repository
from relay.terms import Struct, Worktree

GOING: Final = ".going-"
"""What stands in the name of a folder that is being removed, or whose removal was cut short."""
_OURS: Final = "relay "
"""How the reason of a lock begins that Relay set."""
_LONG: Final = 600.0
_SMALL: Final = 1 << 16
"""No file of a worktree's administrative folder that is read here is longer, in bytes."""


class Entry(Struct, frozen=True, kw_only=True):
    """A worktree that the repository knows as Relay's. `complete` is false for one whose making was cut short.

    `path` is the entry's own where that does not say any more where the worktree is.
    """

    path: Path
    git_dir: Path
    reason: str
    complete: bool

    @property
    def said(self) -> dict[str, str]:
        """Return what the reason says: the `run`, the `leg`, and what a checkout beside one is `for`."""
        return dict(word.partition("=")[::2] for word in self.reason.split())


def lease(repo: Repository, path: Path, commit: str, reason: str) -> Lease:
    """Check `commit` out into the new folder `path`, locked, and return it once it is known to be whole.

    `reason` says who owns it; it is marked as Relay's. `RelayError` when the folder exists, would lie in the
    repository, or the checkout is not exactly the commit; nothing half-made is left then.
    """
    path = _free(repo, path)
    found = drivers.find(repo)
    add = (
        "worktree",
        "add",
        "--detach",
        "--lock",
        "--reason",
        _OURS + " ".join(reason.split()),
        "--",
        str(path),
        commit,
    )
    env = {"GIT_DIR": str(repo.common)}
    try:
        git.run(repo, *add, env=env, config=found.off, timeout=_LONG)
        made = _made(repo, path)
        _whole(repo, made, commit, found)
        shutil.copy2(made.git_dir / "index", made.git_dir / touched.PRISTINE)  # last: its presence says "complete"
    except BaseException:
        _drop(repo, path)
        raise
    return made


def _free(repo: Repository, path: Path) -> Path:
    """Return the real path of a folder that can be made; a leg's work must not stand in the way of another's."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = path.parent.resolve() / path.name
    if os.path.lexists(path):
        raise RelayError(
            f"`{path}` exists already", hint=f"look at it, then move it away: ls -la {path}", exit_code=Exit.HUMAN
        )
    refuse_inside(repo, path)
    return path


def refuse_inside(repo: Repository, path: Path) -> None:
    """Refuse a place for worktrees inside the repository: its tools would find everything twice (row 45)."""
    for top in (repo.common, repo.main_top, repo.top):
        if top is not None and path.resolve().is_relative_to(top.resolve()):
            raise RelayError(
                f"a worktree at `{path}` would lie inside `{top}`",
                hint="set XDG_STATE_HOME to a folder outside the repository",
            )


def _made(repo: Repository, path: Path) -> Lease:
    pointer = files.read(path / ".git", _SMALL)
    git_dir = Path(os.fsdecode(pointer.removeprefix(b"gitdir:").strip()))
    if not git_dir.is_absolute():
        git_dir = path / git_dir
    made = Lease(path=path, git_dir=git_dir.resolve(), pointer_sha256=files.sha256(pointer))
    if wrong := _joined(repo, made):
        raise RelayError(f"the new worktree `{path}` is damaged: {wrong}", exit_code=Exit.HUMAN)
    return made


def _whole(repo: Repository, made: Lease, commit: str, found: drivers.Drivers) -> None:
    """Judge by looking, not by git's exit code: HEAD, index and files must be the commit's (pitfalls rows 113, 116)."""
    env = {"GIT_DIR": str(made.git_dir), "GIT_WORK_TREE": str(made.path)}
    at = git.run(repo, "rev-parse", "--verify", "HEAD^{commit}", env=env).strip().decode()
    staged = git.call(repo, "diff-index", "--cached", "--quiet", "--ignore-submodules=all", commit, "--", env=env)
    missing = git.run(repo, "-C", str(made.path), "ls-files", "-z", "-d", env=env, config=found.off)
    if at != git.resolve(repo, commit) or staged.code or missing:
        raise RelayError(f"the worktree `{made.path}` does not hold `{commit}` as a whole", exit_code=Exit.HUMAN)


def intact(repo: Repository, lease: Lease) -> str:
    """Return what is wrong with a worktree, or nothing: its `.git` and its entry must still name each other."""
    if scan.kind(str(lease.path)) != "a folder":
        return f"`{lease.path}` is {scan.kind(str(lease.path))}, not a folder"
    pointer = lease.path / ".git"
    if scan.kind(str(pointer)) != "a file":
        return f"`{pointer}` is {scan.kind(str(pointer))}, not the file that git made"
    if files.sha256(_read(pointer)) != lease.pointer_sha256:
        return f"`{pointer}` was changed"
    if wrong := _joined(repo, lease):
        return wrong
    if scan.kind(str(lease.git_dir / touched.PRISTINE)) != "a file":
        return f"`{lease.path}` was never made to the end"
    return ""


def _joined(repo: Repository, lease: Lease) -> str:
    """Check both directions: a copied repository's entry points to the original's worktree (pitfalls row 91)."""
    if lease.git_dir.parent != repo.common.resolve() / "worktrees" or scan.kind(str(lease.git_dir)) != "a folder":
        return f"`{lease.git_dir}` is no worktree entry of `{repo.common}`"
    back = _target(lease.git_dir, "gitdir")
    if back is None or back.resolve() != lease.path / ".git":
        return f"`{lease.git_dir / 'gitdir'}` does not point to `{lease.path}`"
    common = _target(lease.git_dir, "commondir")
    if common is None or common.resolve() != repo.common.resolve():
        return f"`{lease.git_dir / 'commondir'}` does not point to `{repo.common}`"
    return ""


def _read(path: Path) -> bytes:
    try:
        return files.read(path, _SMALL)
    except (OSError, RelayError):
        return b""


def _target(git_dir: Path, name: str) -> Path | None:
    text = os.fsdecode(_read(git_dir / name).strip())
    return Path(os.path.normpath(git_dir / text)) if text and "\0" not in text else None


def own(repo: Repository) -> list[Entry]:
    """Return the worktrees that carry Relay's lock, half-made and missing ones too; git itself is not asked."""
    found = []
    with suppress(FileNotFoundError):
        for entry in sorted((repo.common / "worktrees").iterdir()):
            if reason := _ours(entry):
                back = _target(entry, "gitdir")
                path = back.parent if back else entry
                whole = scan.kind(str(entry / touched.PRISTINE)) == "a file" and scan.kind(str(path)) == "a folder"
                found.append(Entry(path=path, git_dir=entry, reason=reason, complete=whole))
    return found


def _ours(entry: Path) -> str:
    """Return the reason of a lock that Relay set, which names run and leg; only such a worktree is ever unlocked."""
    reason = _read(entry / "locked").decode("utf-8", "replace").strip()
    named = {word.partition("=")[0] for word in reason.split()}
    return reason.removeprefix(_OURS) if reason.startswith(_OURS) and {"run", "leg"} <= named else ""


def head(repo: Repository, lease: Lease) -> str | None:
    """Return the commit that the worktree's HEAD names: an agent that commits by itself moves it. None when lost."""
    answer = git.call(repo, "rev-parse", "--verify", "-q", "HEAD^{commit}", env={"GIT_DIR": str(lease.git_dir)})
    return os.fsdecode(answer.out.strip()) if answer.code == 0 else None


def prepare(
    repo: Repository,
    lease: Lease,
    settings: Worktree,
    log: Path,
    cell: Callable[[], Cell | None] = lambda: None,
    base: str | None = None,
) -> str:
    """Make a fresh worktree fit to work in, as [worktree] and `.worktreeinclude` say; return what failed, or nothing.

    Submodules and LFS are fetched from where the commit `base` says alone. What was copied or linked is remembered in
    the worktree's entry, and so is what git does not see afterwards.
    """
    within = cell()
    problem = provision.fit(repo, lease.path, lease.git_dir, settings, log, within, base)
    with touched.view(repo, lease, rung=within.rung if within is not None else None) as here:
        inventory.note(here, lease.git_dir)
    return problem


def release(repo: Repository, lease: Lease) -> None:
    """Remove the worktree and its entry, whatever became of either; what is already gone is no failure.

    Its caches go along. An entry that is another worktree's, or that a person locked, stays. `RelayError` naming what
    cannot be removed. The entry goes last: it tells of a removal that was cut short, and a further call finishes that.
    """
    try:
        _remove(lease.cache)
        _remove(lease.path)
    except RelayError:
        if scan.kind(str(lease.path)) == "nothing":  # set aside, and no worktree any more: the next leg sees no entry
            _entries(repo, lease)
        raise
    _entries(repo, lease)


def _entries(repo: Repository, lease: Lease) -> None:
    """Have git forget a worktree that is gone."""
    _forget(repo, lease.path, lease.git_dir)
    for entry in own(repo):
        if entry.path == lease.path:
            _forget(repo, lease.path, entry.git_dir)


def clear(repo: Repository, path: Path) -> None:
    """Remove what a Relay that was killed left of a checkout at `path` that is nobody's and held no work."""
    real = path.parent.resolve() / path.name
    for entry in own(repo):
        if entry.path == real:
            release(repo, Lease(path=real, git_dir=entry.git_dir, pointer_sha256=""))
    for left in (real.with_name(f"{real.name}{CACHE}"), real):
        _remove(left)


def going(path: Path) -> list[Path]:
    """Return what a removal of `path` set aside and, being cut short, did not remove."""
    return sorted(path.parent.glob(f".{glob.escape(path.name)}{GOING}*"))


def _remove(path: Path) -> None:
    """Remove a folder, set aside in one step first: no half of it is ever taken for the whole."""
    try:
        if files.mounted_below(path) is None:  # else it stays as it is, and `remove_tree` says why
            path.rename(path.with_name(f".{path.name}{GOING}{os.urandom(4).hex()}"))
    except FileNotFoundError:
        pass
    except OSError as error:
        hint = f"see what stands there: ls -la {path}"
        raise RelayError(f"cannot remove `{path}`: {(error.strerror or str(error)).lower()}", hint=hint) from error
    for left in (*going(path), path):
        files.remove_tree(left)


def _forget(repo: Repository, path: Path, git_dir: Path) -> None:
    inside = git_dir.parent == repo.common.resolve() / "worktrees" and scan.kind(str(git_dir)) == "a folder"
    back = _target(git_dir, "gitdir") if inside else None
    theirs = back is not None and back.parent != path  # an emptied `gitdir` names nobody (row 80)
    if inside and not theirs and _ours(git_dir):
        with signals.held():  # a part of an entry belongs to nobody, so what says whose it is goes last
            for name in set(os.listdir(git_dir)) - {"gitdir", "locked"}:
                files.remove_tree(git_dir / name)
            files.remove_tree(git_dir)
        with suppress(OSError):
            git_dir.parent.rmdir()  # as git does when the last worktree goes


def _drop(repo: Repository, path: Path) -> None:
    """Take back what a failed `lease` made: the folder was free when it began."""
    with suppress(RelayError):
        _remove(path)
    for entry in own(repo):
        if entry.path == path:
            _forget(repo, path, entry.git_dir)

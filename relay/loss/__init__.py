"""Whether a worktree may go: only where everything in it is kept elsewhere, and nobody uses it. Looked at, not changed.

One gate for all who remove one: the end of a leg, the sealing of one that was killed, the reaper. What is kept: a
commit on a ref holds it, set-up put it there, or tools make it again by themselves (pitfalls rows 39, 40). When in
doubt, it is not.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files, git, inventory, modules, names, provision, scan, snapshot, touched
from relay.host.jail.rungs import Rung
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.loss import beat, entry
from relay.loss.entry import git_dir, head, lease, locked, on_a_ref, out_of_sight, owner, put_aside
from relay.loss.use import busy, everyone, used_by

__all__ = [
    "beat",
    "busy",
    "carried",
    "carry",
    "entry_holds",
    "everyone",
    "gate",
    "git_dir",
    "head",
    "held",
    "lease",
    "locked",
    "missing",
    "on_a_ref",
    "out_of_sight",
    "owner",
    "put_aside",
    "unseen",
    "used_by",
    "worked_in",
]

CARRIED: Final = "relay-carried"
"""In the entry: when its agent was over, nothing was there that a commit cannot carry."""
_EMPTY: Final = hashlib.sha256().hexdigest()
"""What `modules.look` says of a submodule's folder without a file."""


def gate(repo: Repository, lease: Lease) -> str:
    """Say why the worktree of a leg that came to its end may not go; nothing where it may.

    Its work became a commit, and what git does not see was looked at then (`unseen`); since then nobody but Relay's
    own commands changed anything in it, and what they did is no work.
    """
    try:
        return held(repo, lease) or _apart(lease.path) or entry.holds(repo, lease.git_dir)
    except (OSError, RelayError) as error:
        return _unlooked(error)


def held(repo: Repository, lease: Lease) -> str:
    """Say who else has a hand on a worktree, whatever it holds: a person who locked it, a process, a mount."""
    return entry.locked_by_another(repo, lease.git_dir) or busy(lease.path) or _mounted(lease.path)


def _mounted(path: Path) -> str:
    mount = files.mounted_below(path)
    return f"something is mounted at `{mount}`" if mount is not None else ""


def entry_holds(
    repo: Repository, git_dir: Path, commits: Iterable[str] = (), baseline: Mapping[str, str] | None = None
) -> str:
    """Say what only the entry of a worktree that is gone holds, or that more is gone than that; else nothing."""
    try:
        own = entry.head(repo, git_dir)
        said = entry.away(git_dir) or entry.holds(repo, git_dir)
        return said or (entry.staged(repo, git_dir, [own, *commits], baseline or {}) if own else "")
    except (OSError, RelayError) as error:
        return _unlooked(error)


def missing(
    repo: Repository,
    lease: Lease,
    commits: Iterable[str],
    baseline: Mapping[str, str],
    rung: Rung | None,
) -> str:
    """Say what a worktree holds that none of these commits does; nothing where it holds no more.

    `baseline` is what set-up made, as `snapshot.baseline` saw it. Once Relay gives no more signs of life there, a
    person may have changed any of that.
    """
    commits = tuple(commits)
    try:
        said = _mounted(lease.path) or _shut(lease.path) or entry.holds(repo, lease.git_dir)
        if said := said or entry.staged(repo, lease.git_dir, commits, baseline):
            return said
        if not commits:
            return "no ref keeps what was done in it"
        with touched.view(repo, lease, rung=rung) as here:
            return _only(_beyond(here, lease, commits, baseline))
    except (OSError, RelayError) as error:
        return _unlooked(error)


def unseen(repo: Repository, lease: Lease, rung: Rung | None, since: float = math.inf) -> str:
    """Say what a worktree holds that git does not see, and neither set-up nor a tool makes again.

    What set-up made counts where it was changed `since` that moment of the epoch, from when it was a person's.
    """
    try:
        with touched.view(repo, lease, rung=rung) as here:
            return _only(inventory.beyond(here, lease.git_dir, since))
    except (OSError, RelayError) as error:
        return _unlooked(error)


def carry(git_dir: Path) -> None:
    """Note in the entry that git sees all that the agent left; from now on only commands run there."""
    provision.remember(git_dir, CARRIED, [])


def carried(git_dir: Path) -> bool:
    """Tell whether `carry` noted that."""
    return scan.kind(str(git_dir / CARRIED)) == "a file"


def worked_in(repo: Repository, lease: Lease, rung: Rung | None) -> str:
    """Say what was done in a worktree since Relay gave its last sign of life there; nothing where nothing was.

    For places of which all that Relay did is known to be kept, or no work: what else is in them does not count.
    """
    since = beat.last(lease.git_dir)
    try:
        if said := _mounted(lease.path) or _shut(lease.path) or entry.stepped(repo, lease.git_dir, since):
            return said
        with touched.view(repo, lease, rung=rung) as here:
            here.against(entry.head(repo, lease.git_dir))
            unseen = (path for path in inventory.unseen(here) if not names.cache(path))
            found = (*here.changed(), *modules.look(here), *unseen)
            return _only([path for path in found if inventory.changed_since(str(here.top), path, since)])
    except (OSError, RelayError) as error:
        return _unlooked(error)


def _only(left: list[str]) -> str:
    return f"`{git.label(left[0])}` in it is kept nowhere else" if left else ""


def _shut(path: Path) -> str:
    """Say what of a worktree nobody can look at."""
    seen = scan.look(path)
    shut = (*seen.unreadable, *seen.blocking)
    return _apart(path) or (f"`{git.label(shut[0])}` in it cannot be looked at" if shut else "")


def _apart(path: Path) -> str:
    return "it is a repository of its own" if scan.kind(str(path / ".git")) == "a folder" else ""


def _unlooked(error: OSError | RelayError) -> str:
    return f"it cannot be looked at: {error.message if isinstance(error, RelayError) else error}"


def _beyond(here: touched.View, lease: Lease, commits: Iterable[str], baseline: Mapping[str, str]) -> list[str]:
    """Return what a worktree has beyond each of these commits; nothing where one has it all.

    What is missing there is no loss. Where each lacks something else, what the last one lacks is named.
    """
    put = frozenset(provision.recall(lease.git_dir, provision.PUT))
    common: list[str] | None = None
    left: list[str] = []
    for commit in commits:
        here.against(commit)
        left = [*_changed(here, put, baseline), *inventory.beyond(here, lease.git_dir, beat.last(lease.git_dir))]
        if not left:
            return []
        both = set(left).intersection(left if common is None else common)
        common = [path for path in left if path in both]
    return common or left


def _changed(here: touched.View, put: frozenset[str], baseline: Mapping[str, str]) -> list[str]:
    """Return what differs from the commit, and not as set-up made it differ."""
    found = []
    for path in here.changed():
        as_made = baseline.get(git.label(path)) == touched.digest(f"{here.top}/{path}")
        if not as_made and path not in put and here.kind(path) != "nothing":
            found.append(path)
    inside = modules.look(here).items()
    return found + [path for path, value in inside if baseline.get(f"{snapshot.MODULE}{path}", _EMPTY) != value]

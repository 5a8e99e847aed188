"""Whether a worktree may go: only where everything in it is kept elsewhere, and nobody uses it. Looked at, not changed.

One gate for all who remove one: the end of a leg, the sealing of one that was killed, the reaper. What is kept: a
commit on a ref holds it, set-up put it there, or tools make it again by themselves (pitfalls rows 39, 40). When in
doubt, it is not.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files, git, inventory, modules, provision, scan, snapshot, touched
from relay.host.jail.rungs import Rung
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.loss import entry
from relay.loss.entry import git_dir, head, lease, locked, on_a_ref, out_of_sight, owner, put_aside
from relay.loss.use import busy, everyone, used_by

__all__ = [
    "busy",
    "entry_holds",
    "everyone",
    "fresh",
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
    "wait",
    "worked_in",
]

FRESH: Final = "relay-fresh"
"""In the entry of a clean checkout: what set-up made of what git sees, each with its value."""
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
    since: float = math.inf,
) -> str:
    """Say what a worktree holds that none of these commits does; nothing where it holds no more.

    `baseline` is what set-up made, as `snapshot.baseline` saw it. `since` is when a person may have come to it, who
    may have changed anything: seconds of the epoch.
    """
    commits = tuple(commits)
    try:
        said = _mounted(lease.path) or _shut(lease.path) or entry.holds(repo, lease.git_dir)
        if said := said or entry.staged(repo, lease.git_dir, commits, baseline):
            return said
        if not commits:
            return "no ref keeps what was done in it"
        with touched.view(repo, lease, rung=rung) as here:
            return _only(_beyond(here, lease, commits, baseline, since))
    except (OSError, RelayError) as error:
        return _unlooked(error)


def unseen(repo: Repository, lease: Lease, rung: Rung | None) -> str:
    """Say what a worktree holds that git does not see, and neither set-up nor a tool makes again."""
    try:
        with touched.view(repo, lease, rung=rung) as here:
            return _only(inventory.beyond(here, lease.git_dir))
    except (OSError, RelayError) as error:
        return _unlooked(error)


def wait(repo: Repository, lease: Lease, rung: Rung | None, since: float = math.inf) -> None:
    """Note how a worktree stands that waits for a person, who may have come to it `since` that moment of the epoch.

    What set-up made counts as theirs once it changes again.
    """
    with suppress(OSError, RelayError), touched.view(repo, lease, rung=rung) as here:
        inventory.again(here, lease.git_dir, since)


def fresh(repo: Repository, lease: Lease, rung: Rung | None, *, setup: bool) -> None:
    """Note how set-up, where there was any, left what git sees in a clean checkout, before commands run there."""
    made = snapshot.baseline(repo, lease, rung) if setup else {}
    provision.remember(lease.git_dir, FRESH, (f"{value}\n{path}" for path, value in made.items()))


def worked_in(repo: Repository, lease: Lease, rung: Rung | None) -> str:
    """Say what git sees that was done in a clean checkout since it was `fresh`; nothing where that is as it was.

    What git does not see there tests make, and one that never was fresh held nothing but a part of its set-up.
    """
    if scan.kind(str(lease.git_dir / FRESH)) == "nothing":
        return ""
    made = dict(entry.partition("\n")[::-2] for entry in provision.recall(lease.git_dir, FRESH))
    put = frozenset(provision.recall(lease.git_dir, provision.PUT))
    at = entry.head(repo, lease.git_dir)
    try:
        said = _mounted(lease.path) or _shut(lease.path) or entry.stepped(repo, lease.git_dir)
        said = said or entry.holds(repo, lease.git_dir, but=at)
        if said := said or entry.staged(repo, lease.git_dir, [at], made):
            return said
        with touched.view(repo, lease, rung=rung) as here:
            here.against(at)
            return _only(_changed(here, put, made))
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


def _beyond(
    here: touched.View, lease: Lease, commits: Iterable[str], baseline: Mapping[str, str], since: float
) -> list[str]:
    """Return what a worktree has beyond each of these commits; nothing where one has it all.

    What is missing there is no loss. Where each lacks something else, what the last one lacks is named.
    """
    put = frozenset(provision.recall(lease.git_dir, provision.PUT))
    common: list[str] | None = None
    left: list[str] = []
    for commit in commits:
        here.against(commit)
        left = [*_changed(here, put, baseline), *inventory.beyond(here, lease.git_dir, since)]
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

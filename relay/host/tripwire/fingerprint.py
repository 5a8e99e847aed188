"""What an agent could reach besides its own tree, as names and values: two of these tell what changed in between.

It never fails and never hangs, whatever an agent did: what cannot be read is a value too. A linked worktree shares
refs, stash, config and hooks with every other one (pitfalls rows 48 to 52). Cost: that of `checkouts`, one read for
each file of `steering`. Names are labels, so they can stand in JSON.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import git, scan, touched
from relay.host.jail.rungs import Rung
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.host.tripwire import checkouts, steering

_SHARED: Final = ("HEAD", "config", "config.worktree", "shallow", "objects/info/alternates")
_ADMIN: Final = ("commondir", "gitdir", "locked", "config.worktree", touched.PRISTINE)


def take(  # the interface of all legs
    repo: Repository, lease: Lease, *, tree: bool, rung: Rung | None = None
) -> dict[str, str]:
    """Return the state of the repository around a leg; with `tree`, of the leg's own HEAD and files as well.

    Names: `refs/...` (all but refs/relay/), `stash`, `config`, `HEAD`, `hooks/...`, `info/...`, `modules/...` (the
    settings and hooks of submodules), `config include FILE`, `home/...` (the person's own settings), `hooks path/...`
    (where core.hooksPath leads), `locks/...` (of a git that is gone), `worktree/...` (the leg's entry and its
    `.git`), `worktrees/NAME/...` (the others), `checkout/PATH` and `worktrees/NAME/checkout/PATH` (what is dirty,
    untracked or ignored in the person's checkouts), and what `own` names. Each folder that steers git has a name too.
    """
    deep = rung is None or not rung.holds
    return _around(repo, lease, deep=deep) | (own(repo, lease, rung) if tree else {})


def own(repo: Repository, lease: Lease, rung: Rung | None = None) -> dict[str, str]:
    """Return the state of a leg's own HEAD and files, as `tree/HEAD` and `tree/PATH`."""
    found = {"tree/HEAD": touched.digest(str(lease.git_dir / "HEAD"))}
    _into(found, "tree", partial(_tree, repo, lease, rung))
    return found


def _around(repo: Repository, lease: Lease, *, deep: bool) -> dict[str, str]:
    found = {name: steering.digest(f"{repo.common}/{name}") for name in _SHARED}
    found["stash"] = touched.digest(f"{repo.common}/logs/refs/stash")
    settings = list(steering.settings(repo))
    found |= _looks((*settings, *steering.hooks(repo)))
    found |= _info(repo.common / "info") | _entries(repo, lease)
    found |= {name: steering.digest(str(path)) for name, path in steering.home().items()}
    found |= {git.label(f"locks/{name}"): "it stands still" for name in steering.locks(repo.common)}
    if trap := scan.trap(repo.common):
        return found | {"git": f"would hang on {git.label(trap)}"}
    _into(found, "refs", partial(_refs, repo))
    _into(found, "hooks path", lambda: _looks(steering.named_hooks(repo)))
    paths = [folder.path / name for folder in settings for name in folder.files()]
    _into(found, "config include", lambda: steering.included(repo, [*paths, *steering.home().values()]))
    mine, more = checkouts.find(repo)
    for checkout in mine:
        _into(found, git.label(checkout.name), partial(checkouts.look, repo, checkout, deep=deep))
    return found | ({"worktrees": f"{more} more are not looked into"} if more else {})


def _looks(folders: Iterable[steering.Folder]) -> dict[str, str]:
    return {name: value for folder in folders for name, value in folder.look().items()}


def _into(found: dict[str, str], name: str, look: Callable[[], dict[str, str]]) -> None:
    """Add what `look` sees; that it cannot see is worth one line of its own."""
    try:
        found |= look()
    except (OSError, RelayError, ValueError) as error:
        found[name] = f"cannot be read: {error}"


def _refs(repo: Repository) -> dict[str, str]:
    listed = git.refs(repo)
    return {git.label(name): oid for name, oid in listed.items() if not name.startswith("refs/relay/")}


def _info(folder: Path) -> dict[str, str]:
    """Digest what git is told beside the settings: what it ignores, attributes, grafts."""
    found: dict[str, str] = {}
    if not folder.is_symlink():
        with suppress(OSError):
            for entry in sorted(os.listdir(folder))[: steering.MANY]:
                if entry != "refs":  # git makes it from the refs, when somebody packs
                    found[git.label(f"info/{entry}")] = steering.digest(f"{folder}/{entry}")
    return found


def _entries(repo: Repository, lease: Lease) -> dict[str, str]:
    """Digest the administrative files of this worktree, and where each other worktree stands."""
    found = {f"worktree/{name}": touched.digest(str(lease.git_dir / name)) for name in _ADMIN}
    found["worktree/.git"] = touched.digest(str(lease.path / ".git"))
    with suppress(OSError):
        for entry in sorted((repo.common / "worktrees").iterdir()):
            if entry != lease.git_dir:
                for name in ("HEAD", "gitdir", "locked"):
                    found[git.label(f"worktrees/{entry.name}/{name}")] = touched.digest(str(entry / name))
    return found


def _tree(repo: Repository, lease: Lease, rung: Rung | None) -> dict[str, str]:
    with touched.view(repo, lease, rung=rung) as here:
        found = {git.label(f"tree/{path}"): kind for path, kind in here.scan.special.items()}
        for path, new in here.changed().items():
            found[git.label(f"tree/{path}")] = f"{'?' if new else 'M'} {touched.digest(f'{lease.path}/{path}')}"
    return found

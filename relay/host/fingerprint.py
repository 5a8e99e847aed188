"""What an agent could reach besides its own tree, as names and values: two of these tell what changed in between.

It never fails and never hangs, whatever an agent did: what cannot be read is a value too. A linked worktree shares
refs, stash, config and hooks with every other one (pitfalls rows 48 to 52). Cost: one lstat for each file in the index,
one read for each file that is dirty anyway. Names are labels, so they can stand in JSON.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import drivers, git, names, scan, touched
from relay.host.jail.rungs import Rung
from relay.host.lease import Lease
from relay.host.repository import Repository

_FOLDERS: Final = ("hooks", "info")
_SHARED: Final = ("HEAD", "config", "config.worktree", "shallow", "objects/info/alternates")
_ADMIN: Final = ("commondir", "gitdir", "locked", "config.worktree", touched.PRISTINE)
_MANY: Final = 1000
"""At most so many files of a folder of hooks are read."""
_LONG: Final = 120.0


def take(  # the interface of all legs
    repo: Repository, lease: Lease, *, tree: bool, rung: Rung | None = None
) -> dict[str, str]:
    """Return the state of the repository around a leg; with `tree`, of the leg's own HEAD and files as well.

    Names: `refs/...` (all but refs/relay/), `stash`, `config`, `HEAD`, `hooks/...`, `info/...`, `worktree/...` (the
    leg's entry and its `.git`), `worktrees/NAME/...` (the others), `checkout/PATH` (what is dirty, untracked or
    ignored in the user's checkout), and what `own` names.
    """
    return _around(repo, lease) | (own(repo, lease, rung) if tree else {})


def own(repo: Repository, lease: Lease, rung: Rung | None = None) -> dict[str, str]:
    """Return the state of a leg's own HEAD and files, as `tree/HEAD` and `tree/PATH`."""
    found = {"tree/HEAD": touched.digest(str(lease.git_dir / "HEAD"))}
    _into(found, "tree", partial(_tree, repo, lease, rung))
    return found


def _around(repo: Repository, lease: Lease) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _SHARED:
        found[name] = touched.digest(f"{repo.common}/{name}")
    found["stash"] = touched.digest(f"{repo.common}/logs/refs/stash")
    for name in _FOLDERS:
        found |= _files(repo.common / name, name)
    found |= _entries(repo, lease)
    if trap := scan.trap(repo.common):
        return found | {"git": f"would hang on {git.label(trap)}"}
    _into(found, "refs", partial(_refs, repo))
    _into(found, "hooks path", partial(_hooks, repo))
    for number, (top, git_dir) in enumerate(_checkouts(repo)):
        name = "checkout" if number == 0 else f"checkout {number + 1}"
        _into(found, name, partial(_checkout, repo, top, git_dir, name))
    return found


def _into(found: dict[str, str], name: str, look: Callable[[], dict[str, str]]) -> None:
    """Add what `look` sees; that it cannot see is worth one line of its own."""
    try:
        found |= look()
    except (OSError, RelayError, ValueError) as error:
        found[name] = f"cannot be read: {error}"


def _refs(repo: Repository) -> dict[str, str]:
    listed = git.refs(repo)
    return {git.label(name): oid for name, oid in listed.items() if not name.startswith("refs/relay/")}


def _files(folder: Path, name: str) -> dict[str, str]:
    """Digest each file of one folder, links and modes included."""
    found: dict[str, str] = {}
    with suppress(OSError):
        for entry in sorted(os.listdir(folder))[:_MANY]:
            if f"{name}/{entry}" == "info/refs":
                continue  # git makes it from the refs, when somebody packs
            found[git.label(f"{name}/{entry}")] = touched.digest(f"{folder}/{entry}")
    return found


def _hooks(repo: Repository) -> dict[str, str]:
    """Digest the hooks that core.hooksPath names outside the checkout; inside it they are files like others."""
    out = git.run(repo, "config", "-z", "--type=path", "--get-all", "core.hooksPath", ok=(0, 1))
    named = [os.fsdecode(path) for path in out.split(b"\0") if path]
    return {key: value for path in named if os.path.isabs(path) for key, value in _files(Path(path), path).items()}


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


def _checkouts(repo: Repository) -> Iterator[tuple[Path, Path]]:
    """Return the checkouts that are the user's: the main one, and the linked one where Relay was called."""
    if repo.main_top is not None:
        yield repo.main_top, repo.common
    if repo.top is not None and repo.top != repo.main_top:
        yield repo.top, repo.git_dir


def _checkout(repo: Repository, top: Path, git_dir: Path, name: str) -> dict[str, str]:
    seen = scan.look(top)
    found = {git.label(f"{name}/{path}"): kind for path, kind in seen.special.items() if not names.cache(path)}
    if seen.blocking:  # a user's folder: nothing is removed there, and git would hang
        return found | {name: f"git would hang on `{git.label(seen.blocking[0])}`"}
    where = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(top)}
    off = drivers.find(repo).off
    shape = (
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--ignored=matching",
        "--ignore-submodules=all",
        "--no-renames",
    )
    out = git.run(repo, "-C", str(top), "status", *shape, env=where, config=off, timeout=_LONG)
    for record in filter(None, out.split(b"\0")):
        mark, path = _record(record)
        if mark[:1] != b"!" or not names.cache(path):
            found[git.label(f"{name}/{path}")] = f"{mark.decode()} {touched.digest(f'{top}/{path}')}"
    # what git was told not to look at (row 112) is read all the same
    flags = git.run(repo, "-C", str(top), "ls-files", "-z", "-v", env=where, config=off, timeout=_LONG)
    for entry in flags.split(b"\0"):
        if entry[:1].islower() or entry[:1] == b"S":
            path = os.fsdecode(entry[2:])
            found[git.label(f"{name}/{path}")] = f"{entry[:1].decode()} {touched.digest(f'{top}/{path}')}"
    return found


def _record(record: bytes) -> tuple[bytes, str]:
    """Split a line of `status --porcelain=v2`: the state with the staged object, and the path."""
    kind = record[:1]
    if kind == b"1":
        _, state, *_, staged, path = record.split(b" ", 8)
        return b"1 " + state + b" " + staged, os.fsdecode(path)
    if kind == b"u":
        fields = record.split(b" ", 10)
        return b" ".join(fields[:2]), os.fsdecode(fields[-1])
    return kind, os.fsdecode(record[2:])


def _tree(repo: Repository, lease: Lease, rung: Rung | None) -> dict[str, str]:
    with touched.view(repo, lease, rung=rung) as here:
        found = {git.label(f"tree/{path}"): kind for path, kind in here.scan.special.items()}
        for path, new in here.changed().items():
            found[git.label(f"tree/{path}")] = f"{'?' if new else 'M'} {touched.digest(f'{lease.path}/{path}')}"
    return found

"""A worktree that an agent touched becomes a commit, and nothing that was planted there runs or gets in.

`git add` is not used: what changed is listed, each path is judged by lstat, and only what is kept is stored, in a
scratch index, with no filter and no hook (sandbox.md sections 8.1 and 8.2). What is refused is named with the reason;
the rest of the work is kept.
"""

import os
from collections.abc import Mapping, Sequence

from relay.host import git, modules, refusal, touched
from relay.host.git import Identity
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.terms import Refused, Struct

MODULE = "module:"
"""How a name in a baseline begins that stands for all that lies in a submodule's folder."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """The commit that holds the work (the parent where there is none), its tree, and what was left out."""

    commit: str
    tree: str
    refused: tuple[Refused, ...] = ()


def baseline(repo: Repository, lease: Lease) -> dict[str, str]:
    """Return what differs from the commit before an agent began, with a hash, and what is ignored by then (row 108)."""
    with touched.view(repo, lease.path, lease.git_dir) as here:
        dirty = {git.label(path): touched.digest(f"{lease.path}/{path}") for path in here.changed()}
        inside = {f"{MODULE}{path}": value for path, value in modules.look(here).items()}
        return dirty | inside | {git.label(path): "ignored" for path in here.ignored()}


def take(
    repo: Repository, lease: Lease, parent: str, message: str, baseline: Mapping[str, str], identity: Identity
) -> Snapshot:
    """Commit what the worktree holds on top of `parent`, and say what was refused.

    The worktree's own `.git`, HEAD and index do not matter. `RelayError` when the folder is gone, the disk is full or
    git takes too long.
    """
    with touched.view(repo, lease.path, lease.git_dir, parent) as here:
        known = refusal.known(here, lease.git_dir, baseline)
        refused = refusal.obstacles(known) | refusal.hidden(known)
        add: list[str] = []
        remove: list[str] = []
        for path, new in here.changed().items():
            if baseline.get(git.label(path)) == touched.digest(f"{lease.path}/{path}"):
                continue
            where, why = refusal.why(known, path, new=new)
            if why:
                refused[where] = why
            elif here.kind(path) in {"nothing", "a folder"}:
                remove.append(path)
            else:
                add.append(path)
        refused |= refusal.filtered(known, add)
        for path, value in modules.look(here).items():
            if baseline.get(f"{MODULE}{path}", value) != value:
                refused.setdefault(path, "changed inside the submodule")
        _remove(here, remove)
        refused |= _add(here, [path for path in add if path not in refused])
        named = tuple(Refused(path=git.label(path), why=why) for path, why in sorted(refused.items()))
        tree = os.fsdecode(here.run("write-tree").strip())
    if tree == git.tree(repo, parent):
        return Snapshot(commit=parent, tree=tree, refused=named)
    commit = git.commit_tree(repo, tree, [parent], message, identity)
    return Snapshot(commit=commit, tree=tree, refused=named)


def _remove(here: touched.View, paths: Sequence[str]) -> None:
    if paths:
        here.run("update-index", "--force-remove", "-z", "--stdin", stdin=_listed(paths))


def _listed(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _add(here: touched.View, paths: Sequence[str]) -> dict[str, str]:
    """Store the files; where git refuses one, halve until it is found, so that the others are kept."""
    if not paths:
        return {}
    answer = here.call("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=_listed(paths))
    if answer.code == 0:  # git passes over a name like `.GIT` in silence
        stored = set(here.run("ls-files", "-z").split(b"\0"))
        lost = (path for path in paths if os.fsencode(path) not in stored and here.kind(path) != "nothing")
        return dict.fromkeys(lost, "git cannot store it")
    if len(paths) == 1:
        return {paths[0]: "git cannot store it"}
    half = len(paths) // 2
    return _add(here, paths[:half]) | _add(here, paths[half:])

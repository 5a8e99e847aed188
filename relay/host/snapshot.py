"""A worktree that an agent touched becomes a commit, and nothing that was planted there runs or gets in.

`git add` is not used: what changed is listed, each path is judged by lstat, and only what is kept is stored, in a
scratch index, with no filter and no hook, in a jail where one holds (sandbox.md section 8). What is refused is named
with the reason; the rest of the work is kept.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

from relay.errors import Exit, RelayError
from relay.host import git, modules, refusal, touched
from relay.host.git import Identity
from relay.host.jail.rungs import Rung
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.terms import Refused, Struct

_FAULTS: Final = 5
"""How often files are left out because git finds fault with them, before a person is asked."""
MODULE = "module:"
"""How a name in a baseline begins that stands for all that lies in a submodule's folder."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """The commit that holds the work (the parent where there is none), its tree, and what was left out."""

    commit: str
    tree: str
    refused: tuple[Refused, ...] = ()


def baseline(repo: Repository, lease: Lease, rung: Rung | None = None) -> dict[str, str]:
    """Return what differs from the commit before an agent began, with a hash, and what is ignored by then (row 108)."""
    with touched.view(repo, lease, rung=rung) as here:
        dirty = {git.label(path): touched.digest(f"{lease.path}/{path}") for path in here.changed()}
        inside = {f"{MODULE}{path}": value for path, value in modules.look(here).items()}
        return dirty | inside | {git.label(path): "ignored" for path in here.ignored()}


def take(
    repo: Repository,
    lease: Lease,
    parent: str,
    message: str,
    baseline: Mapping[str, str],
    identity: Identity,
    rung: Rung | None = None,
) -> Snapshot:
    """Commit what the worktree holds on top of `parent`, and say what was refused.

    Where `rung` holds, git works on it in a jail. The worktree's own `.git`, HEAD and index do not matter.
    `RelayError` when the folder is gone, the disk is full or git takes too long.
    """
    with touched.view(repo, lease, parent, rung=rung) as here:
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
        tree = _stored(here, parent, refused)
    named = tuple(Refused(path=git.label(path), why=why) for path, why in sorted(refused.items()))
    if tree == git.tree(repo, parent):
        return Snapshot(commit=parent, tree=tree, refused=named)
    commit = git.commit_tree(repo, tree, [parent], message, identity)
    return Snapshot(commit=commit, tree=tree, refused=named)


def _stored(here: touched.View, parent: str, refused: dict[str, str]) -> str:
    """Write the tree and take it into the repository; a file that git finds fault with stays as it was, and is named.

    A `.gitmodules` that no git would follow is such a file.
    """
    for _ in range(_FAULTS):
        tree = os.fsdecode(here.run("write-tree").strip())
        faults = here.carry(tree, parent)
        if not faults:
            return _checked(here.repo, parent, tree)
        entries = (entry.partition(b"\t") for entry in here.run("ls-files", "-z", "-s").split(b"\0") if entry)
        wrong = {os.fsdecode(path): faults.get(os.fsdecode(head.split(b" ")[1])) for head, _, path in entries}
        back = {path: f"git finds fault with it: {why}" for path, why in wrong.items() if why}
        if not back:
            break
        refused |= back
        here.run("update-index", "--force-remove", "-z", "--stdin", stdin=_listed([*back]))
        before = here.run("ls-tree", "-r", "-z", parent, "--", *back)
        here.run("update-index", "-z", "--index-info", stdin=before)
    raise RelayError("git finds fault with the tree and names no file", exit_code=Exit.HUMAN)


def _checked(repo: Repository, parent: str, tree: str) -> str:
    """Refuse what is no tree of this repository, or brings a submodule that its parent lacks (sandbox.md 8.3)."""
    if not re.fullmatch("[0-9a-f]{40,64}", tree) or git.run(repo, "cat-file", "-t", tree) != b"tree\n":
        raise RelayError(f"what git stored is no tree: `{tree[:80]}`", exit_code=Exit.HUMAN)
    raw = git.run(repo, "diff-tree", "-r", "-z", "--no-renames", "--diff-filter=AT", parent, tree).split(b"\0")
    new = [os.fsdecode(path) for head, path in zip(raw[::2], raw[1::2], strict=False) if b" 160000 " in head]
    if new:
        raise RelayError(f"the tree has a submodule that nobody added: `{new[0]}`", exit_code=Exit.HUMAN)
    return tree


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

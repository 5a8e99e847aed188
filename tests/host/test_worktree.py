"""Worktrees: whole or not at all, recognised when damaged, given back without touching anything else."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import git, repository, snapshot, worktree
from relay.host.lease import Lease
from relay.host.repository import Repository
from tests.world import World


@pytest.fixture
def project(tmp_path: Path) -> World:
    return World(tmp_path, {"a.txt": "a\n", "sub/b.txt": "b\n", ".gitignore": "*.log\n.env*\nnode_modules/\n*.local\n"})


@pytest.fixture
def repo(project: World) -> Repository:
    return repository.discover(project.root)


def leased(project: World, repo: Repository, name: str = "01-implement") -> Lease:
    return worktree.lease(
        repo, project.folder / "trees" / name, project.git("rev-parse", "HEAD"), "run=x leg=01-implement"
    )


def planted(project: World, marker: str = "ran") -> Path:
    """Write a program that leaves a mark when anybody runs it."""
    tool = project.folder / "tool"
    tool.write_text(f"#!/bin/sh\ntouch {project.folder}/{marker}\ncat\n", encoding="utf-8")
    tool.chmod(0o755)
    return tool


def test_a_lease_holds_the_commit_detached_locked_and_outside_the_checkout(project: World, repo: Repository) -> None:
    config = (project.root / ".git/config").read_bytes()
    lease = leased(project, repo)
    assert (lease.path / "sub/b.txt").read_text() == "b\n"
    assert worktree.intact(repo, lease) == ""
    assert worktree.head(repo, lease) == project.git("rev-parse", "HEAD")
    assert project.git("symbolic-ref", "-q", "HEAD") == "refs/heads/main"
    listed = project.git("worktree", "list", "--porcelain")
    assert f"worktree {lease.path}\n" in listed
    assert "detached\nlocked relay run=x leg=01-implement" in listed
    assert worktree.own(repo) == [
        worktree.Entry(path=lease.path, git_dir=lease.git_dir, reason="run=x leg=01-implement", complete=True)
    ]
    assert project.git("status", "--porcelain", "--ignored") == ""
    assert (project.root / ".git/config").read_bytes() == config
    assert project.refs("refs/heads") == {"refs/heads/main": project.git("rev-parse", "HEAD")}


def test_a_folder_that_exists_is_refused_by_name_and_kept(project: World, repo: Repository) -> None:
    place = project.folder / "trees/01-implement"
    place.mkdir(parents=True)
    (place / "mine.txt").write_text("mine")
    with pytest.raises(RelayError, match="01-implement` exists already"):
        leased(project, repo)
    assert (place / "mine.txt").read_text() == "mine"
    assert worktree.own(repo) == []


@pytest.mark.parametrize("place", [".relay/trees/x", ".git/relay/x", "x"])
def test_a_worktree_inside_the_repository_is_refused(project: World, repo: Repository, place: str) -> None:
    with pytest.raises(RelayError, match="would lie inside"):
        worktree.lease(repo, project.root / place, "HEAD", "run=x leg=01-implement")
    assert worktree.own(repo) == []


def test_a_link_to_the_repository_is_no_way_around(project: World, repo: Repository) -> None:
    (project.folder / "link").symlink_to(project.root)
    with pytest.raises(RelayError, match="would lie inside"):
        worktree.lease(repo, project.folder / "link/x", "HEAD", "run=x leg=01-implement")


def test_a_lease_that_fails_leaves_nothing_behind(
    project: World, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RelayError, match="worktree"):
        worktree.lease(repo, project.folder / "trees/1", "0" * 40, "run=x leg=01-implement")
    monkeypatch.setattr(shutil, "copy2", lambda *_args, **_more: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        leased(project, repo)
    assert list((project.folder / "trees").iterdir()) == []
    assert worktree.own(repo) == []
    assert not (project.root / ".git/worktrees").exists()


def test_a_checkout_that_is_not_whole_is_refused_whatever_git_says(
    project: World, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("git")
    place = project.folder / "trees/01-implement"
    wrapper = project.folder / "bin/git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\n{real} "$@"\ncode=$?\n[ $1 = worktree ] && rm {place}/a.txt\nexit $code\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    with pytest.raises(RelayError, match=r"does not hold .* as a whole"):
        leased(project, repo)
    assert not place.exists()
    assert worktree.own(repo) == []


def test_neither_a_hook_nor_a_filter_runs_when_a_worktree_is_made(project: World, repo: Repository) -> None:
    tool = planted(project)
    hooks = project.root / ".husky"
    hooks.mkdir()
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        shutil.copy(tool, hooks / hook)
    project.commit({".gitattributes": "*.txt filter=evil\n"})
    for key in ("core.hooksPath", "filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "core.fsmonitor"):
        project.git("config", key, str(hooks if key == "core.hooksPath" else tool))
    project.git("config", "filter.evil.required", "true")
    (project.folder / "ran").unlink(missing_ok=True)
    lease = leased(project, repo)
    assert snapshot.baseline(repo, lease) == {}
    assert not (project.folder / "ran").exists()
    assert (lease.path / "a.txt").read_text() == "a\n"


def test_a_sparse_checkout_of_the_user_still_gives_a_full_worktree(project: World, repo: Repository) -> None:
    project.git("sparse-checkout", "set", "--cone", "other")
    assert not (project.root / "sub").exists()
    lease = leased(project, repo)
    assert (lease.path / "sub/b.txt").exists()
    project.git("-C", str(lease.path), "reset", "-q", "--hard")
    assert (lease.path / "sub/b.txt").exists()
    assert not (project.root / "sub").exists()


def test_a_linked_worktree_and_a_bare_repository_lease_as_well(project: World) -> None:
    project.git("worktree", "add", "-q", "-b", "side", str(project.folder / "side"))
    linked = repository.discover(project.folder / "side")
    assert worktree.intact(linked, leased(project, linked)) == ""
    project.git("clone", "-q", "--bare", str(project.root), str(project.folder / "hub.git"))
    bare = repository.discover(project.folder / "hub.git")
    lease = worktree.lease(bare, project.folder / "trees/of-the-hub", "HEAD", "run=x leg=01-implement")
    assert worktree.intact(bare, lease) == ""
    before = snapshot.baseline(bare, lease)
    (lease.path / "new.py").write_text("x = 1\n")
    made = snapshot.take(bare, lease, project.git("rev-parse", "HEAD"), "work", before, git.NOBODY)
    assert git.blob(bare, made.commit, "new.py") == b"x = 1\n"


def _no_pointer(lease: Lease) -> None:
    (lease.path / ".git").unlink()


def _private_repository(lease: Lease) -> None:
    (lease.path / ".git").unlink()
    shutil.copytree(lease.git_dir.parent.parent, lease.path / ".git")


def _other_pointer(lease: Lease) -> None:
    (lease.path / ".git").write_text("gitdir: /elsewhere\n")


def _link(lease: Lease) -> None:
    (lease.path / ".git").rename(lease.path / "moved")
    (lease.path / ".git").symlink_to("moved")


def _gone(lease: Lease) -> None:
    shutil.rmtree(lease.path)


def _swapped(lease: Lease) -> None:
    lease.path.rename(lease.path.with_name("moved"))
    lease.path.symlink_to("moved")


def _back(lease: Lease) -> None:
    (lease.git_dir / "gitdir").write_text("/elsewhere/.git\n")


def _emptied(lease: Lease) -> None:
    (lease.git_dir / "gitdir").write_text("")


def _common(lease: Lease) -> None:
    (lease.git_dir / "commondir").write_text("/elsewhere\n")


def _unregistered(lease: Lease) -> None:
    shutil.rmtree(lease.git_dir)


def _half_made(lease: Lease) -> None:
    (lease.git_dir / "relay-index").unlink()


DAMAGE: dict[Callable[[Lease], None], str] = {
    _no_pointer: r"\.git` is nothing, not the file",
    _private_repository: r"\.git` is a folder, not the file",
    _other_pointer: r"\.git` was changed",
    _link: r"\.git` is a link, not the file",
    _gone: r"` is nothing, not a folder",
    _swapped: r"` is a link, not a folder",
    _back: r"gitdir` does not point to",
    _emptied: r"gitdir` does not point to",
    _common: r"commondir` does not point to",
    _unregistered: r"is no worktree entry",
    _half_made: r"was never made to the end",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__.strip("_"))
def test_damage_is_seen_and_the_worktree_can_be_given_back_all_the_same(
    project: World, repo: Repository, damage: Callable[[Lease], None]
) -> None:
    lease = leased(project, repo)
    damage(lease)
    assert re.search(DAMAGE[damage], worktree.intact(repo, lease))
    worktree.release(repo, lease)
    assert not os.path.lexists(lease.path)
    assert [entry for entry in worktree.own(repo) if entry.path == lease.path] == []
    again = leased(project, repo)
    assert worktree.intact(repo, again) == ""


def test_a_worktree_whose_making_was_cut_short_is_known_as_such(project: World, repo: Repository) -> None:
    lease = leased(project, repo)
    (lease.git_dir / "relay-index").unlink()
    assert [entry.complete for entry in worktree.own(repo)] == [False]
    shutil.rmtree(lease.path)
    assert [entry.complete for entry in worktree.own(repo)] == [False]


def test_a_copied_repository_is_not_taken_for_the_original(project: World, repo: Repository) -> None:
    lease = leased(project, repo)
    shutil.copytree(project.root, project.folder / "copy")
    copy = repository.discover(project.folder / "copy")
    assert "is no worktree entry" in worktree.intact(copy, lease)
    moved = Lease(path=lease.path, git_dir=copy.common / "worktrees/01-implement", pointer_sha256=lease.pointer_sha256)
    worktree.release(copy, Lease(path=project.folder / "none", git_dir=moved.git_dir, pointer_sha256=""))
    assert moved.git_dir.exists()
    assert worktree.intact(repo, lease) == ""


def test_only_the_own_entry_is_removed(project: World, repo: Repository) -> None:
    theirs = project.folder / "theirs"
    project.git("worktree", "add", "-q", "--lock", "--reason", "on a stick", "--detach", str(theirs))
    project.git("worktree", "add", "-q", "--detach", str(project.folder / "missing"))
    shutil.rmtree(project.folder / "missing")
    first, second = leased(project, repo, "01"), leased(project, repo, "02")
    worktree.release(repo, first)
    worktree.release(repo, first)
    listed = project.git("worktree", "list")
    assert all(name in listed for name in ("theirs", "missing", str(second.path)))
    assert [entry.path for entry in worktree.own(repo)] == [second.path]
    worktree.release(
        repo, Lease(path=project.folder / "none", git_dir=repo.common / "worktrees/theirs", pointer_sha256="")
    )
    assert "theirs" in project.git("worktree", "list")


def test_a_release_follows_no_link_and_minds_no_mode(project: World, repo: Repository) -> None:
    lease = leased(project, repo)
    (lease.path / "out").symlink_to(project.root)
    (lease.path / "closed").mkdir()
    (lease.path / "closed/x").write_text("x")
    (lease.path / "closed").chmod(0)
    os.mkfifo(lease.path / "pipe")
    worktree.release(repo, lease)
    assert not lease.path.exists()
    assert (project.root / "a.txt").read_text() == "a\n"
    assert "01-implement" not in project.git("worktree", "list")

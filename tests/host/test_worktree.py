"""Worktrees: whole or not at all, recognised when damaged, given back without touching anything else."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import git, repository, snapshot, worktree
from relay.host.repository import Repository
from relay.host.worktree import Lease
from relay.terms import Worktree
from tests.world import World


@pytest.fixture
def project(tmp_path: Path) -> World:
    return World(tmp_path, {"a.txt": "a\n", "sub/b.txt": "b\n", ".gitignore": "*.log\n.env*\nnode_modules/\n*.local\n"})


@pytest.fixture
def repo(project: World) -> Repository:
    return repository.discover(project.root)


def leased(project: World, repo: Repository, name: str = "01-implement") -> Lease:
    return worktree.lease(repo, project.folder / "trees" / name, project.git("rev-parse", "HEAD"), "run=x pid=1 boot=y")


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
    assert "detached\nlocked relay run=x pid=1 boot=y" in listed
    assert worktree.own(repo) == [
        worktree.Entry(path=lease.path, git_dir=lease.git_dir, reason="run=x pid=1 boot=y", complete=True)
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
        worktree.lease(repo, project.root / place, "HEAD", "run=x")
    assert worktree.own(repo) == []


def test_a_link_to_the_repository_is_no_way_around(project: World, repo: Repository) -> None:
    (project.folder / "link").symlink_to(project.root)
    with pytest.raises(RelayError, match="would lie inside"):
        worktree.lease(repo, project.folder / "link/x", "HEAD", "run=x")


def test_a_lease_that_fails_leaves_nothing_behind(
    project: World, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RelayError, match="worktree"):
        worktree.lease(repo, project.folder / "trees/1", "0" * 40, "run=x")
    monkeypatch.setattr(shutil, "copy2", lambda *_args, **_more: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        leased(project, repo)
    assert list((project.folder / "trees").iterdir()) == []
    assert worktree.own(repo) == []
    assert not (project.root / ".git/worktrees").exists()


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
    lease = worktree.lease(bare, project.folder / "trees/of-the-hub", "HEAD", "run=x")
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


def prepared(project: World, repo: Repository, lease: Lease, settings: Worktree) -> tuple[str, str]:
    log = project.folder / "setup.log"
    problem = worktree.prepare(repo, lease, settings, log)
    return problem, log.read_text() if log.exists() else ""


def test_set_up_copies_ignored_files_and_never_overwrites(project: World, repo: Repository) -> None:
    project.write({".env.test": "A=1\n", "sub/deep/.env.test": "B=2\n", "a.log": "main\n", "notes.txt": "untracked\n"})
    lease = leased(project, repo)
    (lease.path / "a.log").write_text("here already\n")
    problem, log = prepared(project, repo, lease, Worktree(copy=(".env.test", "*.log")))
    assert problem == ""
    assert (lease.path / ".env.test").read_text() == "A=1\n"
    assert (lease.path / "sub/deep/.env.test").read_text() == "B=2\n"
    assert (lease.path / "a.log").read_text() == "here already\n"
    assert "copied .env.test" in log
    assert "kept a.log" in log
    assert not (lease.path / "notes.txt").exists()


@pytest.mark.parametrize("pattern", ["a.txt", "notes.txt", "none", "../outside.log", "/etc/passwd"])
def test_what_is_not_an_ignored_file_of_the_checkout_is_not_copied(
    project: World, repo: Repository, pattern: str
) -> None:
    project.write({"notes.txt": "untracked\n"})
    (project.folder / "outside.log").write_text("x")
    problem, _ = prepared(project, repo, leased(project, repo), Worktree(copy=(pattern,)))
    assert f"`copy` names `{pattern}`" in problem


def test_the_list_of_the_checkout_is_read_like_a_gitignore(project: World, repo: Repository) -> None:
    project.write({".worktreeinclude": "# secrets of mine\n*.local\n!not.local\na.txt\n"})
    project.write({"db.local": "db\n", "not.local": "no\n", ".env": "A=1\n"})
    lease = leased(project, repo)
    assert prepared(project, repo, lease, Worktree())[0] == ""
    assert (lease.path / "db.local").read_text() == "db\n"
    assert not (lease.path / "not.local").exists()
    assert not (lease.path / ".env").exists()


def test_a_link_that_set_up_made_is_never_committed(project: World, repo: Repository) -> None:
    project.write({"node_modules/x/index.js": "x\n", ".env": "KEY=1\n"})
    lease = leased(project, repo)
    assert prepared(project, repo, lease, Worktree(link=("node_modules",), copy=(".env",)))[0] == ""
    assert (lease.path / "node_modules/x/index.js").read_text() == "x\n"
    before = snapshot.baseline(repo, lease)
    head = project.git("rev-parse", "HEAD")
    (lease.path / ".gitignore").write_text("")
    (lease.path / ".env").write_text("KEY=2\n")
    (lease.path / "new.py").write_text("x = 1\n")
    made = snapshot.take(repo, lease, head, "work", before, git.NOBODY)
    assert git.paths(repo, made.commit) == [".gitignore", "a.txt", "new.py", "sub/b.txt"]
    assert [(refused.path, refused.why) for refused in made.refused] == [(".env", "put there by the set-up")]


def test_a_tracked_link_leads_no_copy_out_of_the_worktree(project: World, repo: Repository) -> None:
    (project.root / "out").symlink_to(project.folder)
    project.git("add", "out")
    project.git("commit", "-qm", "a link")
    lease = leased(project, repo)
    (project.root / "out").unlink()
    project.write({"out/x.log": "x\n"})
    with pytest.raises(RelayError, match="outside the worktree"):
        worktree.prepare(repo, lease, Worktree(copy=("x.log",)), project.folder / "log")
    assert not (project.folder / "x.log").exists()


def test_a_set_up_command_that_fails_is_named_with_its_code_and_its_output_is_kept(
    project: World, repo: Repository
) -> None:
    lease = leased(project, repo)
    settings = Worktree(setup=("echo made >made.log", "echo said; exit 3", "touch never.log"))
    problem, log = prepared(project, repo, lease, settings)
    assert problem == "`echo said; exit 3` exited 3"
    assert "$ echo said; exit 3\nsaid\nexited 3\n" in log
    assert (lease.path / "made.log").exists()
    assert not (lease.path / "never.log").exists()


def test_a_set_up_command_that_takes_too_long_is_ended(project: World, repo: Repository) -> None:
    problem, _ = prepared(project, repo, leased(project, repo), Worktree(setup=("sleep 1000",), minutes=0.005))
    assert problem.startswith("`sleep 1000` was ended: timeout")


def test_set_up_sees_its_own_worktree_whatever_is_inherited(
    project: World, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = leased(project, repo)
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    problem, log = prepared(
        project, repo, lease, Worktree(setup=("git rev-parse --show-toplevel", "test -z $VIRTUAL_ENV"))
    )
    assert problem == ""
    assert f"{lease.path}\n" in log


def test_submodules_are_filled_and_given_back(project: World, repo: Repository) -> None:
    library = World(project.folder / "library", {"lib.txt": "lib\n"})
    project.git("config", "--global", "protocol.file.allow", "always")
    project.git("submodule", "--quiet", "add", str(library.root), "vendor/lib")
    project.git("commit", "-qm", "a submodule")
    lease = leased(project, repo)
    assert prepared(project, repo, lease, Worktree(submodules=True))[0] == ""
    assert (lease.path / "vendor/lib/lib.txt").read_text() == "lib\n"
    assert snapshot.baseline(repo, lease) == {}
    worktree.release(repo, lease)
    assert not lease.path.exists()
    assert not lease.git_dir.exists()


def test_large_files_are_fetched_when_asked_for_and_said_when_they_cannot_be(
    project: World, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = leased(project, repo, "01")
    problem, _ = prepared(project, repo, first, Worktree(lfs=True))
    assert problem.startswith("`git lfs pull` exited ")
    program = project.folder / "bin/git-lfs"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n[ $1 = pull ] && echo large >big.local\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    second = leased(project, repo, "02")
    assert prepared(project, repo, second, Worktree(lfs=True))[0] == ""
    assert (second.path / "big.local").read_text() == "large\n"


def test_leftovers_are_what_an_agent_made_and_git_ignores(project: World, repo: Repository) -> None:
    project.write({".env": "A=1\n"})
    lease = leased(project, repo)
    prepared(project, repo, lease, Worktree(copy=(".env",), setup=("echo db >db.local",)))
    for name in ("notes.local", "node_modules/x.js", "run.log", "sub/deep/more.local"):
        path = lease.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    (lease.path / "new.py").write_text("x = 1\n")
    assert worktree.leftovers(repo, lease) == ("notes.local", "sub/deep/more.local")

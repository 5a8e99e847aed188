"""Set-up: a fresh worktree gets what its work needs, and none of it is ever committed or overwritten."""

import os
import secrets
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import git, inventory, redact, repository, snapshot, touched, worktree
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.terms import Worktree
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


def test_the_log_of_set_up_holds_no_secret_and_is_for_the_person_alone(
    project: World, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = secrets.token_urlsafe(24)
    monkeypatch.setenv("PACKAGE_TOKEN", held)
    redact.forget()
    settings = Worktree(setup=("echo got $PACKAGE_TOKEN",), env=("PACKAGE_TOKEN", "NOT_SET"))
    problem, log = prepared(project, repo, leased(project, repo), settings)
    assert (problem, held in log) == ("", False)
    assert "got [redacted PACKAGE_TOKEN]" in log
    assert (project.folder / "setup.log").stat().st_mode & 0o777 == 0o600


def test_set_up_gets_what_is_named_and_what_is_harmless(
    project: World, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NAMED", "UNNAMED"):
        monkeypatch.setenv(name, "is here")
    settings = Worktree(setup=('echo "$NAMED, ${UNNAMED-absent}, $HOME"',), env=("NAMED",))
    _, log = prepared(project, repo, leased(project, repo), settings)
    assert f"is here, absent, {os.environ['HOME']}\n" in log


def test_submodules_are_filled_and_given_back(project: World, repo: Repository) -> None:
    library = World(project.folder / "library", {"lib.txt": "lib\n"})
    project.git("config", "--global", "protocol.file.allow", "always")
    project.git("submodule", "--quiet", "add", str(library.root), "vendor/lib")
    project.git("commit", "-qm", "a submodule")
    lease = leased(project, repo)
    assert prepared(project, repo, lease, Worktree(submodules=True))[0] == ""
    assert (lease.path / "vendor/lib/lib.txt").read_text() == "lib\n"
    assert list(snapshot.baseline(repo, lease)) == ["module:vendor/lib"]
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
    with touched.view(repo, lease) as here:
        assert inventory.beyond(here, lease.git_dir) == ["notes.local", "sub/deep/more.local"]


def test_a_submodule_is_fetched_from_where_the_base_says_alone(project: World, repo: Repository) -> None:
    lib = World(project.folder / "lib", {"l.py": "l\n"})
    project.git("config", "--global", "protocol.file.allow", "always")
    for name in ("one", "two"):
        project.git("submodule", "--quiet", "add", str(lib.root), name)
    project.git("commit", "-q", "-m", "two submodules")
    base = project.git("rev-parse", "HEAD")
    modules = (project.root / ".gitmodules").read_text()
    project.commit({".gitmodules": modules.replace(str(lib.root), str(project.folder / "elsewhere"), 1)})
    lease = leased(project, repo)
    log = project.folder / "setup.log"
    assert worktree.prepare(repo, lease, Worktree(submodules=True), log, base=base) == ""
    assert "elsewhere" not in log.read_text()
    assert not (lease.path / "one/l.py").exists()
    assert (lease.path / "two/l.py").is_file()


def test_large_files_are_not_fetched_from_where_a_change_says(project: World, repo: Repository) -> None:
    base = project.git("rev-parse", "HEAD")
    project.commit({".lfsconfig": "[lfs]\n\turl = http://127.0.0.1:9/evil\n"})
    lease = leased(project, repo)
    problem = worktree.prepare(repo, lease, Worktree(lfs=True), project.folder / "log", base=base)
    assert problem.startswith("`.lfsconfig` is not the base's")

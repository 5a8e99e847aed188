"""A touched worktree becomes a commit: all of the work, nothing that was planted, and no planted program runs."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import git, refusal, repository, snapshot, worktree
from relay.host.repository import Repository
from relay.host.snapshot import Snapshot
from relay.host.worktree import Lease
from tests.world import SAFETY, World

FILES = {"a.py": "a = 1\n", "sub/b.py": "b = 1\n", "docs/c.md": "c\n", ".gitignore": "*.log\n__pycache__/\n"}


@dataclass
class Leg:
    """A worktree in the hands of an agent."""

    project: World
    repo: Repository
    lease: Lease
    start: str
    before: dict[str, str]

    @property
    def top(self) -> Path:
        return self.lease.path

    def write(self, name: str, text: str | bytes = "new = 1\n") -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def git(self, *args: str) -> str:
        return self.project.git("-C", str(self.top), *args)

    def take(self) -> Snapshot:
        return snapshot.take(self.repo, self.lease, self.start, "the work", self.before, git.NOBODY)

    def changed(self, made: Snapshot) -> set[str]:
        return {change.path for change in git.numstat(self.repo, self.start, made.commit)}


@pytest.fixture
def project(tmp_path: Path) -> World:
    return World(tmp_path, FILES)


def begin(project: World) -> Leg:
    repo = repository.discover(project.root)
    start = project.git("rev-parse", "HEAD")
    lease = worktree.lease(repo, project.folder / "trees/01", start, "run=x")
    return Leg(project, repo, lease, start, snapshot.baseline(repo, lease))


@pytest.fixture
def leg(project: World) -> Leg:
    return begin(project)


def why(made: Snapshot) -> dict[str, str]:
    return {refused.path: refused.why for refused in made.refused}


def program(path: Path, marker: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n", encoding="utf-8")
    path.chmod(0o755)


def test_all_of_the_work_is_in_the_commit_and_the_checkout_is_untouched(leg: Leg) -> None:
    leg.write("a.py", "a = 2\n")
    leg.write("deep/er/new.py")
    leg.write("sub/b.py").chmod(0o755)
    (leg.top / "docs/c.md").unlink()
    (leg.top / "link").symlink_to("sub/b.py")
    made = leg.take()
    assert made.refused == ()
    assert leg.changed(made) == {"a.py", "deep/er/new.py", "sub/b.py", "docs/c.md", "link"}
    modes = leg.project.git("ls-tree", "-r", made.commit)
    assert "100755" in modes.split("sub/b.py")[0].splitlines()[-1]
    assert "120000" in modes
    assert git.tree(leg.repo, made.commit) == made.tree
    assert leg.project.git("rev-parse", f"{made.commit}^") == leg.start
    assert leg.project.git("rev-parse", "HEAD") == leg.start
    assert leg.project.git("status", "--porcelain") == ""
    assert worktree.intact(leg.repo, leg.lease) == ""


def test_no_change_gives_the_parent(leg: Leg) -> None:
    os.utime(leg.top / "a.py")
    made = leg.take()
    assert made == Snapshot(commit=leg.start, tree=git.tree(leg.repo, leg.start))


def test_a_change_of_the_same_size_and_time_is_seen(leg: Leg) -> None:
    found = (leg.top / "a.py").stat()
    leg.write("a.py", "a = 2\n")
    os.utime(leg.top / "a.py", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert leg.changed(leg.take()) == {"a.py"}


def test_a_second_snapshot_stands_on_the_first(leg: Leg) -> None:
    leg.write("a.py", "a = 2\n")
    first = leg.take()
    leg.start = first.commit
    assert leg.take().commit == first.commit
    leg.write("a.py", FILES["a.py"])
    assert git.tree(leg.repo, leg.take().commit) == git.tree(leg.repo, f"{first.commit}^")


# --- what an agent does to git ------------------------------------------------------------------------------------


def _nothing(leg: Leg) -> None:
    del leg


def _deletes_git(leg: Leg) -> None:
    (leg.top / ".git").unlink()


def _makes_a_repository(leg: Leg) -> None:
    (leg.top / ".git").unlink()
    leg.git("init", "-q")
    leg.git("config", "core.fsmonitor", "/bin/false")
    leg.git("config", "core.worktree", "/elsewhere")


def _commits(leg: Leg) -> None:
    leg.git("add", "-A")
    leg.git("commit", "-qm", "mine")


def _rewrites_history(leg: Leg) -> None:
    leg.git("checkout", "-q", "--orphan", "mine")
    leg.git("add", "-A")
    leg.git("commit", "-qm", "mine")


def _stages(leg: Leg) -> None:
    leg.git("add", "-A")


def _stages_what_is_no_more(leg: Leg) -> None:
    leg.write("staged.py")
    leg.git("add", "-A")
    (leg.top / "staged.py").unlink()


def _leaves_a_lock(leg: Leg) -> None:
    (leg.lease.git_dir / "index.lock").touch()


def _breaks_the_index(leg: Leg) -> None:
    (leg.lease.git_dir / "index").write_bytes(b"DIRC")


def _breaks_both_indexes(leg: Leg) -> None:
    (leg.lease.git_dir / "index").write_bytes(b"DIRC")
    (leg.lease.git_dir / "relay-index").write_bytes(b"DIRC")


def _hides_changes(leg: Leg) -> None:
    leg.git("update-index", "--assume-unchanged", "a.py")
    leg.git("update-index", "--skip-worktree", "sub/b.py")


def _deletes_the_entry(leg: Leg) -> None:
    shutil.rmtree(leg.lease.git_dir)


def _pretends_to_be_bare(leg: Leg) -> None:
    leg.git("config", "core.bare", "true")


DEEDS = [
    _nothing,
    _deletes_git,
    _makes_a_repository,
    _commits,
    _rewrites_history,
    _stages,
    _stages_what_is_no_more,
    _leaves_a_lock,
    _breaks_the_index,
    _breaks_both_indexes,
    _hides_changes,
    _deletes_the_entry,
    _pretends_to_be_bare,
]


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__.strip("_"))
def test_the_work_is_kept_whatever_an_agent_does_to_git(leg: Leg, deed: Callable[[Leg], None]) -> None:
    leg.write("a.py", "a = 2\n")
    leg.write("sub/b.py", "b = 2\n")
    leg.write("new.py")
    (leg.top / "docs/c.md").unlink()
    deed(leg)
    made = leg.take()
    assert made.refused == ()
    assert leg.changed(made) == {"a.py", "sub/b.py", "new.py", "docs/c.md"}
    assert git.blob(leg.repo, made.commit, "a.py") == b"a = 2\n"
    assert git.run(leg.repo, "rev-list", "--parents", "-1", made.commit).decode().split()[1:] == [leg.start]


def test_a_worktree_that_is_gone_is_an_error_and_not_a_deletion_of_everything(leg: Leg) -> None:
    shutil.rmtree(leg.top)
    with pytest.raises(RelayError, match="is gone"):
        leg.take()
    leg.top.symlink_to(leg.project.folder)
    with pytest.raises(RelayError, match="is gone"):
        leg.take()


# --- planted programs ---------------------------------------------------------------------------------------------


def test_hooks_filters_and_monitors_that_an_agent_plants_never_run(project: World) -> None:
    marker = project.folder / "ran"
    project.git("config", "core.hooksPath", ".husky")
    for name in ("filter.local.clean", "filter.local.smudge", "filter.local.process", "diff.local.textconv"):
        project.git("config", name, "./tool")
    for name in ("filter.global.clean", "filter.global.process", "diff.global.command", "diff.external"):
        project.git("config", "--global", name, "./tool")
    project.git("config", "--global", "filter.odd=name.clean", "./tool")
    project.git("config", "--global", "hook.planted.command", "./tool")
    project.git("config", "--global", "hook.planted.event", "post-index-change")
    leg = begin(project)
    leg.git("config", "core.fsmonitor", "./tool")
    program(leg.top / "tool", marker)
    for hook in ("pre-commit", "post-index-change", "reference-transaction", "post-checkout", "post-commit"):
        program(leg.top / ".husky" / hook, marker)
    leg.write(".gitattributes", "*.py filter=local diff=local\n*.md filter=global diff=global\n*.txt filter=odd=name\n")
    for name in ("a.py", "docs/c.md", "x.txt"):
        leg.write(name, "changed = 1\n")
    made = leg.take()
    git.update_ref(leg.repo, "refs/relay/x/01", made.commit, None)
    git.diff(leg.repo, leg.start, made.commit)
    assert not marker.exists()
    assert git.blob(leg.repo, made.commit, "a.py") == b"changed = 1\n"
    assert leg.changed(made) >= {"a.py", "docs/c.md", "x.txt", "tool", ".gitattributes", ".husky/pre-commit"}


def test_a_planted_program_does_run_under_plain_git(project: World) -> None:
    marker = project.folder / "ran"
    project.git("config", "filter.local.clean", "./tool")
    leg = begin(project)
    program(leg.top / "tool", marker)
    leg.write(".gitattributes", "*.py filter=local\n")
    leg.write("a.py", "changed = 1\n")
    leg.git("add", "-A")
    assert marker.exists()


def test_an_embedded_repository_is_named_and_nothing_in_it_runs(leg: Leg) -> None:
    marker = leg.project.folder / "ran"
    inner = World(leg.project.folder / "inner", {"i.py": "i\n", ".gitattributes": "*.py filter=own\n"})
    shutil.copytree(inner.root, leg.top / "vendor/inner")
    program(leg.top / "vendor/inner/tool", marker)
    for key in ("filter.own.clean", "filter.own.process", "core.fsmonitor"):
        leg.project.git("-C", str(leg.top / "vendor/inner"), "config", key, "./tool")
    (leg.top / "vendor/inner/i.py").write_text("changed\n")
    leg.write("vendor/plain.py")
    made = leg.take()
    assert why(made) == {"vendor/inner/": "an embedded repository"}
    assert leg.changed(made) == {"vendor/plain.py"}
    assert not marker.exists()
    leg.git("-c", "core.fsmonitor=false", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor/inner")
    assert leg.take().tree == made.tree
    assert not marker.exists()


def test_a_submodule_that_was_moved_on_is_named(project: World) -> None:
    library = World(project.folder / "library", {"lib.txt": "lib\n"})
    project.git("config", "--global", "protocol.file.allow", "always")
    project.git("submodule", "--quiet", "add", str(library.root), "vendor/lib")
    project.git("commit", "-qm", "a submodule")
    leg = begin(project)
    leg.git("submodule", "--quiet", "update", "--init")
    leg.write("new.py")
    assert leg.take().refused == ()
    leg.write("vendor/lib/lib.txt", "changed\n")
    leg.project.git(
        "-C", str(leg.top / "vendor/lib"), "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qam", "x"
    )
    made = leg.take()
    assert why(made) == {"vendor/lib": "a submodule at another commit"}
    assert leg.changed(made) == {"new.py"}


# --- what stands in the way ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "sub/.gitignore", "new/.gitattributes"])
def test_a_fifo_where_git_reads_hangs_nothing_and_the_rest_is_kept(leg: Leg, name: str) -> None:
    leg.write("sub/new.py")
    leg.write("new/new.py")
    (leg.top / name).unlink(missing_ok=True)
    os.mkfifo(leg.top / name)
    made = leg.take()
    assert why(made) == {name: "a FIFO, removed because git would wait on it for ever"}
    assert leg.changed(made) >= {"sub/new.py", "new/new.py"}


def test_special_files_are_named_and_stay_out(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(leg.top)
    os.mkfifo("pipe")
    (leg.top / "a.py").unlink()
    os.mkfifo("a.py")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sub/socket")
    leg.write("new.py")
    made = leg.take()
    assert why(made) == {"pipe": "a FIFO", "a.py": "a FIFO", "sub/socket": "a socket"}
    assert leg.changed(made) == {"new.py"}


def test_a_link_that_leads_out_is_named(leg: Leg) -> None:
    for name, target in {
        "absolute": "/etc/passwd",
        "inside-absolute": str(leg.top / "a.py"),
        "up": "../x",
        "sub/up": "../../x",
        "loop": "loop",
        "dangling": "sub/none",
        "sub/fine": "../docs/c.md",
        "twice": "sub/up/y",
    }.items():
        (leg.top / name).symlink_to(target)
    (leg.top / "a.py").unlink()
    (leg.top / "a.py").symlink_to("/etc/passwd")
    made = leg.take()
    out = {"absolute", "inside-absolute", "up", "sub/up", "twice", "a.py"}
    assert why(made) == dict.fromkeys(out, "a link that leads out of the tree")
    assert leg.changed(made) == {"loop", "dangling", "sub/fine"}


def test_a_folder_that_became_a_link_does_not_bring_in_what_is_outside(leg: Leg) -> None:
    outside = leg.project.folder / "outside"
    outside.mkdir()
    (outside / "b.py").write_text("secret\n")
    shutil.rmtree(leg.top / "sub")
    (leg.top / "sub").symlink_to(outside)
    made = leg.take()
    assert why(made) == {"sub": "a link that leads out of the tree"}
    assert leg.changed(made) == {"sub/b.py"}
    assert git.blob(leg.repo, made.commit, "sub/b.py") is None


def test_a_file_becomes_a_folder_and_a_folder_a_file(leg: Leg) -> None:
    (leg.top / "a.py").unlink()
    leg.write("a.py/inner.py")
    shutil.rmtree(leg.top / "sub")
    leg.write("sub")
    made = leg.take()
    assert made.refused == ()
    assert git.paths(leg.repo, made.commit) == [".gitignore", "a.py/inner.py", "docs/c.md", "sub"]


def test_a_file_that_is_too_large_is_named(leg: Leg) -> None:
    with leg.write("big.bin").open("wb") as file:
        file.truncate(refusal.LARGEST + 1)
    with leg.write("fits.bin").open("wb") as file:
        file.truncate(1 << 20)
    made = leg.take()
    assert why(made) == {"big.bin": "50 MB, more than 50 MB"}
    assert leg.changed(made) == {"fits.bin"}


def test_new_secrets_are_named_and_tracked_ones_are_the_projects_business(project: World) -> None:
    project.commit({".env.ci": "A=1\n"})
    leg = begin(project)
    leg.write(".env.ci", "A=2\n")
    for name in (".env", "sub/.env.local", "server.PEM", "keys/id_rsa", ".netrc", ".env.example", "environment.py"):
        leg.write(name)
    made = leg.take()
    secret = {".env", "sub/.env.local", "server.PEM", "keys/id_rsa", ".netrc"}
    assert why(made) == dict.fromkeys(secret, "looks like a secret")
    assert leg.changed(made) == {".env.ci", ".env.example", "environment.py"}


def test_installed_packages_that_are_not_ignored_are_named_once(project: World) -> None:
    project.commit({"web/node_modules/vendored/x.js": "x\n"})
    leg = begin(project)
    for name in (
        "node_modules/x/index.js",
        "node_modules/y/index.js",
        "api/.venv/lib/z.py",
        "web/node_modules/more.js",
    ):
        leg.write(name)
    made = leg.take()
    assert why(made) == dict.fromkeys(("node_modules", "api/.venv"), "installed or cached, and not ignored")
    assert leg.changed(made) == {"web/node_modules/more.js"}


def test_source_that_is_ignored_is_named_and_what_was_ignored_before_is_not(project: World) -> None:
    project.commit({".gitignore": "generated/\n*.log\n__pycache__/\n"})
    leg = begin(project)
    leg.write("generated/old.py")
    leg.before = snapshot.baseline(leg.repo, leg.lease)
    leg.write(".gitignore", "generated/\n*.log\n__pycache__/\nsecretly/\nhidden.py\n*.dat\nempty/\n")
    for name in (
        "secretly/deep/x.py",
        "hidden.py",
        "run.log",
        "sub/__pycache__/b.pyc",
        "x.dat",
        "empty/y.bin",
        "seen.py",
    ):
        leg.write(name)
    made = leg.take()
    assert why(made) == dict.fromkeys(("secretly/", "hidden.py"), "ignored, but looks like source")
    assert leg.changed(made) == {".gitignore", "seen.py"}


def test_conflict_markers_of_an_unfinished_merge_are_named(leg: Leg) -> None:
    leg.write("a.py", "a = 2\n")
    leg.git("commit", "-qam", "mine")
    leg.git("checkout", "-q", "--detach", leg.start)
    leg.write("a.py", "a = 3\n")
    leg.git("commit", "-qam", "other")
    done = subprocess.run(
        ["git", "merge", "-q", "HEAD@{2}"], cwd=leg.top, check=False, timeout=SAFETY, capture_output=True
    )
    assert done.returncode == 1
    leg.write("new.py")
    made = leg.take()
    assert why(made) == {"a.py": "holds conflict markers of an unfinished merge"}
    assert leg.changed(made) == {"new.py"}


def test_text_about_conflict_markers_is_no_conflict(leg: Leg) -> None:
    leg.write("docs/merging.md", "<<<<<<< ours\n=======\n>>>>>>> theirs\n")
    made = leg.take()
    assert made.refused == ()
    assert leg.changed(made) == {"docs/merging.md"}


def test_a_file_that_needs_a_required_filter_is_named(project: World) -> None:
    project.git("config", "--global", "filter.lfs.clean", "git-lfs clean -- %f")
    project.git("config", "--global", "filter.lfs.required", "true")
    project.git("config", "--global", "filter.tidy.clean", "tidy")
    project.commit({".gitattributes": "*.psd filter=lfs\n*.nb filter=tidy\n"})
    leg = begin(project)
    leg.write("art.psd")
    leg.write("notes.nb")
    made = leg.take()
    assert why(made) == {"art.psd": "needs the filter `lfs`, which Relay does not run"}
    assert leg.changed(made) == {"notes.nb"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_what_cannot_be_read_is_named_and_not_taken_for_deleted(leg: Leg) -> None:
    leg.write("new.py")
    leg.write("closed.py").chmod(0)
    (leg.top / "sub").chmod(0)
    made = leg.take()
    (leg.top / "sub").chmod(0o700)
    assert why(made) == dict.fromkeys(("closed.py", "sub/", "sub/b.py"), "cannot be read")
    assert leg.changed(made) == {"new.py"}


# --- names and contents -------------------------------------------------------------------------------------------


def test_odd_names_are_all_committed(leg: Leg) -> None:
    odd = [
        "new\nline",
        'quo"te',
        "-rf",
        ":(top)magic",
        "with blank ",
        "tab\there",
        "ünï",
        os.fsdecode(b"\xff"),
        "*",
        "#x",
    ]
    for name in odd:
        leg.write(name)
        leg.write(f"dir/{name}")
    made = leg.take()
    assert made.refused == ()
    assert set(git.paths(leg.repo, made.commit)) >= {*odd, *(f"dir/{name}" for name in odd)}


def test_a_name_that_git_refuses_costs_only_itself(leg: Leg) -> None:
    for name in ("one.py", "two.py", "three.py"):
        leg.write(name)
    leg.write("sub/.GIT/x.py")
    leg.write("last/.Git")
    made = leg.take()
    assert why(made) == dict.fromkeys(("sub/.GIT/x.py", "last/.Git"), "git cannot store it")
    assert leg.changed(made) == {"one.py", "two.py", "three.py"}


def test_what_was_dirty_from_the_start_is_not_the_agents_change(project: World) -> None:
    project.commit({"win.txt": b"a\r\nb\r\n", "other.txt": b"a\r\n"})
    project.commit({".gitattributes": "*.txt text\n"})
    leg = begin(project)
    assert set(leg.before) == {"win.txt", "other.txt"}
    leg.write("new.py")
    made = leg.take()
    assert leg.changed(made) == {"new.py"}
    leg.write("other.txt", b"a\r\nc\r\n")
    assert leg.changed(leg.take()) == {"new.py", "other.txt"}


def test_the_users_own_ignore_file_counts(project: World) -> None:
    ignore = Path(os.environ["XDG_CONFIG_HOME"]) / "git/ignore"
    ignore.parent.mkdir(parents=True)
    ignore.write_text(".idea/\n")
    leg = begin(project)
    leg.write(".idea/workspace.xml")
    leg.write("new.py")
    assert leg.changed(leg.take()) == {"new.py"}


def test_many_files_are_one_commit(leg: Leg) -> None:
    for number in range(300):
        leg.write(f"many/{number}.py")
    made = leg.take()
    assert len(leg.changed(made)) == 300

"""A touched worktree becomes a commit: all of the work, nothing that was planted, and no planted program runs."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import git, worktree
from relay.host.jail import Rung
from relay.host.snapshot import Snapshot
from tests.host.leg import FILES, Leg, begin, program, why
from tests.world import World


@pytest.fixture
def project(tmp_path: Path) -> World:
    return World(tmp_path, FILES)


@pytest.fixture
def leg(project: World, rung: Rung) -> Leg:
    return begin(project, rung)


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


def test_hooks_filters_and_monitors_that_an_agent_plants_never_run(project: World, rung: Rung) -> None:
    marker = project.folder / "ran"
    project.git("config", "core.hooksPath", ".husky")
    for name in ("filter.local.clean", "filter.local.smudge", "filter.local.process", "diff.local.textconv"):
        project.git("config", name, "./tool")
    for name in ("filter.global.clean", "filter.global.process", "diff.global.command", "diff.external"):
        project.git("config", "--global", name, "./tool")
    project.git("config", "--global", "filter.odd=name.clean", "./tool")
    project.git("config", "--global", "hook.planted.command", "./tool")
    project.git("config", "--global", "hook.planted.event", "post-index-change")
    leg = begin(project, rung)
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


def test_a_planted_program_does_run_under_plain_git(project: World, rung: Rung) -> None:
    marker = project.folder / "ran"
    project.git("config", "filter.local.clean", "./tool")
    leg = begin(project, rung)
    program(leg.top / "tool", marker)
    leg.write(".gitattributes", "*.py filter=local\n")
    leg.write("a.py", "changed = 1\n")
    leg.git("add", "-A")
    assert marker.exists()


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


def test_what_was_dirty_from_the_start_is_not_the_agents_change(project: World, rung: Rung) -> None:
    project.commit({"win.txt": b"a\r\nb\r\n", "other.txt": b"a\r\n"})
    project.commit({".gitattributes": "*.txt text\n"})
    leg = begin(project, rung)
    assert set(leg.before) == {"win.txt", "other.txt"}
    leg.write("new.py")
    made = leg.take()
    assert leg.changed(made) == {"new.py"}
    leg.write("other.txt", b"a\r\nc\r\n")
    assert leg.changed(leg.take()) == {"new.py", "other.txt"}


def test_many_files_are_one_commit(leg: Leg) -> None:
    for number in range(300):
        leg.write(f"many/{number}.py")
    made = leg.take()
    assert len(leg.changed(made)) == 300

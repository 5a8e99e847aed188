"""A worktree goes where everything in it is kept elsewhere; else it is raised, once, with the command that ends it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.loop.faults import untouched
from tests.reaper.scenes import (
    again,
    alerts,
    command,
    reap,
    repaired,
    standing,
    with_a_worktree_kept,
    worktrees,
)
from tests.world import World


def _type(world: World, text: str) -> None:
    """Do what an alert says."""
    subprocess.run(text, shell=True, cwd=world.root, check=True, timeout=60)  # noqa: S602 - a person types it


def test_a_worktree_whose_work_is_kept_under_a_ref_goes(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    with untouched(world):
        events = reap(world)
    assert (repaired(events), alerts(events)) == (["worktree", "worktree"], [])
    assert worktrees() == []
    assert str(place) not in world.git("worktree", "list")
    assert world.show(f"refs/relay/{world.only_run()}/01-implement.cut", "calc.py") == "half\n"
    again(world)


def test_an_ignored_file_is_not_lost_and_told_of_once_until_a_person_settles_it(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path, beside="found.local")
    events = reap(world)
    assert alerts(events) == ["worktree"]
    assert any("`found.local` in it is kept nowhere else" in event["what"] for event in events)
    assert (place / "found.local").read_text() == "mine\n"
    again(world)
    assert standing(world) == ["worktree"]
    _type(world, command(events, "worktree"))
    assert not place.exists()
    reap(world)
    assert standing(world) == []
    again(world)


@pytest.mark.parametrize(
    ("name", "text"), [("new.txt", "untracked\n"), ("README.md", "changed after the leg was sealed\n")]
)
def test_what_a_person_did_in_a_worktree_later_is_not_lost(tmp_path: Path, name: str, text: str) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    (place / name).write_text(text)
    assert alerts(reap(world)) == ["worktree"]
    assert (place / name).read_text() == text
    again(world)


def test_a_commit_that_is_on_no_ref_is_not_lost(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    world.git("commit", "-q", "-a", "--allow-empty", "-m", "by hand", folder=place)
    events = reap(world)
    assert any("is on no ref" in event["what"] for event in events)
    world.git("branch", "kept", world.git("rev-parse", "HEAD", folder=place))
    assert "worktree" in repaired(reap(world))
    assert (worktrees(), standing(world)) == ([], [])


def test_a_worktree_that_somebody_stands_in_is_left(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    with subprocess.Popen(["sleep", "600"], cwd=place) as there:
        try:
            events = reap(world)
            assert any(f"process {there.pid} works in it" in event["what"] for event in events)
            assert place.is_dir()
        finally:
            there.kill()
    reap(world)
    assert (worktrees(), standing(world)) == ([], [])


def test_an_entry_whose_folder_is_gone_is_forgotten_and_a_persons_own_is_not(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    mine, locked = tmp_path / "mine", tmp_path / "locked"
    world.git("worktree", "add", "-q", "--detach", str(mine))
    world.git("worktree", "add", "-q", "--detach", "--lock", "--reason", "on a stick", str(locked))
    for gone in (place, mine, locked):
        shutil.rmtree(gone)
    events = reap(world)
    assert alerts(events) == []
    assert any("forgot git's entry" in event["what"] for event in events)
    listed = world.git("worktree", "list")
    assert (str(place) in listed, str(mine) in listed, str(locked) in listed) == (False, True, True)
    again(world)


def test_a_folder_that_git_no_longer_knows_goes_only_where_a_commit_holds_it(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    shutil.rmtree(world.root / ".git" / "worktrees")
    (place / "new.txt").write_text("mine\n")
    events = reap(world)
    assert command(events, "worktree").startswith("rm -r ")
    assert (place / "new.txt").exists()
    again(world)
    (place / "new.txt").unlink()
    assert "worktree" in repaired(reap(world))
    assert (worktrees(), standing(world)) == ([], [])


def test_refs_branch_and_worktree_of_a_run_that_is_gone_are_raised_and_nothing_is_deleted(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path, beside="found.local")
    shutil.rmtree(world.runs / world.only_run())
    world.git("branch", "relay/my-own-idea")
    refs = world.refs()
    events = reap(world)
    assert alerts(events) == ["branch", "ref", "worktree"]
    assert world.refs() == refs
    assert place.is_dir()
    again(world)
    for kind in ("branch", "ref"):
        _type(world, command(events, kind))
    reap(world)
    assert standing(world) == ["worktree"]
    assert set(world.refs()) == {"refs/heads/main", "refs/heads/relay/my-own-idea"}


def test_a_copied_repository_leaves_the_worktrees_of_the_original_alone(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path / "one")
    shutil.copytree(world.root, tmp_path / "two", symlinks=True)
    ran = world.relay("reap", folder=tmp_path / "two")
    assert (ran.code, place.is_dir()) == (0, True), ran
    assert f"this ledger came with a copy of `{world.root / '.git'}`" in ran.out
    assert world.relay("reap", folder=tmp_path / "two").out == ""
    assert "worktree" in repaired(reap(world))


def test_in_a_repository_that_was_moved_the_worktrees_are_named_with_what_joins_them_again(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path / "one")
    moved = tmp_path / "two"
    world.root.rename(moved)
    world.root = moved
    events = reap(world)
    assert command(events, "worktree") == f"git worktree repair {place}"
    again(world)
    _type(world, command(events, "worktree"))
    assert any(event["what"].startswith(f"removed `{place}`") for event in reap(world))
    assert (worktrees(), standing(world)) == ([], [])


def test_the_worktrees_of_another_repository_are_not_looked_at(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    other = Path(os.environ["XDG_STATE_HOME"], "relay", "worktrees", "other-01234567", "261129-0230-x", "01-implement")
    other.mkdir(parents=True)
    again(world)
    assert other.is_dir()

"""Worktrees that are out of sight for a while: a disk that is not mounted, a volume that a container lacks."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.loop.test_salvaged import COMMIT, killed
from tests.reaper.scenes import alerts, reap, repaired, standing, with_a_worktree_kept, worktrees


@contextmanager
def _away(*, empty: bool) -> Iterator[None]:
    """Take the folder for state away; `empty` leaves one of the same name there, as a mount point is."""
    state = Path(os.environ["XDG_STATE_HOME"])
    off = state.with_name("off")
    state.rename(off)
    if empty:
        state.mkdir()
    try:
        yield
    finally:
        shutil.rmtree(state, ignore_errors=True)
        off.rename(state)


@pytest.mark.parametrize("there", ["an empty folder", "nothing"])
@pytest.mark.parametrize("verb", ["reap", "resume"])
def test_a_killed_leg_whose_worktree_is_out_of_sight_is_not_sealed_until_it_is_back(
    tmp_path: Path, verb: str, there: str
) -> None:
    world, place = killed(tmp_path, "seq 1000 > nightwork.txt")
    with _away(empty=there != "nothing"):
        ran = world.relay(verb)
        assert (ran.code != 0) == (verb == "resume"), ran
        assert str(place.parent) in ran.out + ran.err
        assert world.receipts() == []
    assert world.relay("resume").code == 0
    first, second = world.receipts()[:2]
    assert (first["ended_by"], first["head"]) == ("interrupted", second["start"])
    assert world.show(second["start"], "nightwork.txt").endswith("1000\n")
    reap(world)
    assert standing(world) == []


def test_a_killed_leg_whose_worktree_is_lost_for_good_is_done_again_once_a_person_says_so(tmp_path: Path) -> None:
    world, place = killed(tmp_path, "seq 1000 > nightwork.txt")
    shutil.rmtree(place.parents[2])
    refused = world.relay("resume")
    assert (refused.code, f"mkdir -p {place.parent} && relay resume {world.only_run()}" in refused.err) == (4, True)
    place.parent.mkdir(parents=True)
    assert world.relay("resume").code == 0


def test_git_does_not_forget_a_kept_worktree_that_is_out_of_sight(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    (place / "more.txt").write_text("mine\n")
    with _away(empty=True):
        events = reap(world)
        assert alerts(events) == ["worktree"]
        assert "as when a disk is not mounted" in str(events)
    assert "more.txt" in world.git("status", "--porcelain", folder=place)
    (place / "more.txt").unlink()
    assert "worktree" in repaired(reap(world))
    assert (worktrees(), standing(world)) == ([], [])


def test_the_entry_of_a_worktree_that_was_moved_by_hand_stays_while_only_its_log_names_a_commit(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    world.git("checkout", "-q", "--", ".", folder=place)
    (place / "thought.txt").write_text("a thought\n")
    world.git("add", "thought.txt", folder=place)
    world.git("commit", "-q", "-m", "by hand", folder=place)
    commit = world.git("rev-parse", "HEAD", folder=place)
    world.git("checkout", "-q", "--detach", "HEAD~1", folder=place)
    place.rename(tmp_path / "saved")
    events = reap(world)
    assert f"its commit `{commit[:12]}` is on no ref" in str(events)
    world.git("log", "-1", commit, folder=tmp_path / "saved")
    world.git("branch", "kept", commit)
    assert any("forgot git's entry" in event["what"] for event in reap(world))


def test_an_entry_whose_worktree_is_lost_for_good_goes_by_what_its_alert_says(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    shutil.rmtree(place.parent)
    assert f"git worktree remove -f -f {place}" in str(reap(world))
    world.git("worktree", "remove", "-f", "-f", str(place))
    reap(world)
    assert standing(world) == []
    assert str(place) not in world.git("worktree", "list")


def test_a_worktree_that_alone_was_removed_by_hand_is_done_again_at_once(tmp_path: Path) -> None:
    world, place = killed(tmp_path, f"{COMMIT} --allow-empty -m mine")
    shutil.rmtree(place)
    assert world.relay("resume").code == 0
    assert world.receipts()[0]["head"] == world.receipts()[0]["start"]
    assert world.receipts()[1]["ended_by"] == "reply"

"""A worktree that somebody moved or locked anew is theirs; one that git's entry lost is found, or raised."""

import subprocess
from pathlib import Path

from tests.reaper.scenes import again, alerts, command, reap, repaired, standing, with_a_worktree_kept, worktrees
from tests.world import SAFETY, World


def _type(world: World, line: str) -> None:
    """Do what an alert says."""
    subprocess.run(["sh", "-c", line], cwd=world.root, check=True, timeout=SAFETY)


def _moved(world: World, place: Path) -> Path:
    """Move a worktree into a folder of the person's own, where a branch of theirs begins."""
    mine = world.folder / "my-fix"
    world.git("checkout", "-q", "--", ".", folder=place)
    world.git("worktree", "move", "--force", "--force", str(place), str(mine))
    world.git("switch", "-q", "-c", "my-fix", folder=mine)
    return mine


def test_a_worktree_that_a_person_moved_is_theirs_although_all_in_it_is_kept(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    mine = _moved(world, place)
    events = reap(world)
    assert (alerts(events), mine.is_dir()) == (["worktree"], True)
    assert f"the worktree of {world.only_run()}/01-implement was moved to `{mine}`" in str(events)
    again(world)
    _type(world, command(events, "worktree"))
    assert alerts(reap(world)) == []
    assert standing(world) == []
    assert world.git("status", "--short", "--branch", folder=mine) == "## my-fix"


def test_a_worktree_that_was_moved_goes_nowhere_to_make_room_either(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    mine = _moved(world, place)
    world.save(reap={"max_disk": "1B"})
    reap(world)
    assert (mine / "calc.py").exists()


def test_the_newest_leg_of_a_run_that_goes_on_is_spared_wherever_somebody_moved_it(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.shell("worker", "echo half > calc.py; exit 126", phase="implement", reply="exit")
    world.save()
    assert world.relay("run", world.spec()).code == 4
    [place] = worktrees()
    again(world)
    mine = _moved(world, place)
    again(world)
    assert (mine / "calc.py").exists()


def test_a_worktree_that_was_moved_and_is_gone_is_raised_until_a_person_says_so(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    mine = _moved(world, place)
    mine.rename(tmp_path / "away")
    events = reap(world)
    assert (alerts(events), repaired(events)) == (["worktree"], ["worktree"]), "what lay beside it goes"
    assert str(mine) in world.git("worktree", "list")
    again(world)
    _type(world, command(events, "worktree"))
    reap(world)
    assert standing(world) == []


def test_a_person_may_give_a_lock_a_reason_that_begins_with_the_word_relay(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    world.git("worktree", "unlock", str(place))
    world.git("worktree", "lock", "--reason", "relay race timing, do not touch", str(place))
    events = reap(world)
    assert alerts(events) == ["worktree"]
    assert "relay race timing" in str(events)
    assert place.is_dir()
    _type(world, command(events, "worktree"))
    reap(world)
    assert worktrees() == []


def _emptied(world: World) -> Path:
    """Empty what git's entry says of where its worktree is, as a full disk does; return the entry."""
    [entry] = (world.root / ".git" / "worktrees").iterdir()
    (entry / "gitdir").write_text("")
    return entry


def test_a_worktree_whose_entry_does_not_say_where_it_is_goes_as_any_other(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    entry = _emptied(world)
    reap(world)
    assert (place.exists(), entry.exists(), standing(world)) == (False, False, [])
    again(world)


def test_what_is_staged_in_a_worktree_whose_entry_does_not_say_where_it_is_is_not_lost(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    (place / "thought.txt").write_text("staged, and then taken away\n")
    world.git("add", "thought.txt", folder=place)
    (place / "thought.txt").unlink()
    _emptied(world)
    events = reap(world)
    assert (alerts(events), place.is_dir()) == (["worktree"], True)
    assert f"`{place}` is nobody's, and `thought.txt` is staged in it" in str(events)
    again(world)


def test_an_entry_without_any_worktree_is_raised_by_its_own_path(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    entry = _emptied(world)
    place.rename(tmp_path / "away")
    events = reap(world)
    assert alerts(events) == ["worktree"]
    assert f"git's entry `{entry}` does not say any more where" in str(events)
    again(world)
    _type(world, command(events, "worktree"))
    reap(world)
    assert standing(world) == []
    again(world)

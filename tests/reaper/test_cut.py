"""A removal that is cut in the middle is finished by the next pass, in silence, and is not taken for a move."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reaper.scenes import again, alerts, command, reap, repaired, standing, with_a_worktree_kept, worktrees
from tests.world import CHECKOUT, SAFETY, World

APART = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private")
DYING = """
import os, signal, sys
from relay import cli

left = int(sys.argv[2])

def hook(event, args):
    global left
    if event == "os.remove" and sys.argv[1] in str(args[0]):
        left -= 1
        if not left:
            os.kill(os.getpid(), int(sys.argv[3]))

sys.addaudithook(hook)
sys.exit(cli.main(["reap"]))
"""
"""The command line, which ends itself by a signal when it is about to remove yet another file of a worktree."""


def _dies(world: World, place: Path, number: int, signum: int = signal.SIGKILL) -> bool:
    """Let a reaper die when it removes the file with this number of a run's worktrees; tell whether it came to that."""
    ran = subprocess.run(
        [sys.executable, "-c", DYING, str(place.parent), str(number), str(int(signum))],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        timeout=SAFETY,
        check=False,
    )
    return ran.returncode != 0


def _with_modules(folder: Path) -> tuple[World, Path]:
    """Make a worktree that was kept, with what tools fetched into it."""
    world, place = with_a_worktree_kept(folder)
    for number in range(5):
        path = place / "node_modules" / f"m{number}" / "x.log"
        path.parent.mkdir(parents=True)
        path.write_text("x")
    return world, place


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_a_pass_that_died_while_it_removed_a_worktree_is_finished_by_the_next(tmp_path: Path, signum: int) -> None:
    world, place = _with_modules(tmp_path)
    assert _dies(world, place, 5, signum)
    assert not place.exists(), "no half of it stands in its place"
    [left] = worktrees()
    assert not (left / ".git").exists()
    events = reap(world)
    assert (alerts(events), standing(world)) == ([], [])
    assert "its removal was cut short" in str(events)
    assert (place.parent.exists(), str(place) in world.git("worktree", "list")) == (False, False)
    again(world)


def test_passes_that_die_at_every_second_file_come_to_the_end_all_the_same(tmp_path: Path) -> None:
    world, place = _with_modules(tmp_path)
    deaths = 0
    while _dies(world, place, 2):
        deaths += 1
        assert standing(world) == []
    assert deaths > 5
    assert (place.parent.exists(), standing(world)) == (False, [])
    again(world)


def test_what_a_removal_set_aside_goes_whatever_is_in_it_and_whosever_run_it_was(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path, beside="found.local")
    going = place.with_name(f".{place.name}.going-0a1b2c3d")
    other = place.parent.with_name("261130-0000-other") / f".{place.name}.going-0a1b2c3d"
    shutil.copytree(place, other, symlinks=True)
    place.rename(going)
    events = reap(world, "--dry-run")
    assert (alerts(events), going.is_dir()) == ([], True)
    events = reap(world)
    assert (alerts(events), worktrees(), standing(world)) == ([], [], [])
    assert f"removed what was left of `{place}`: its removal was cut short" in str(events)
    assert f"removed `{other}`: its removal was cut short" in str(events)
    assert str(place) not in world.git("worktree", "list")
    again(world)


def test_of_a_worktree_without_its_git_file_only_what_is_kept_elsewhere_goes(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path, beside="found.local")
    (place / ".git").unlink()
    events = reap(world)
    assert alerts(events) == ["worktree"]
    assert "`found.local` in it is kept nowhere else" in str(events)
    assert "moved" not in str(events)
    again(world)
    (place / "found.local").unlink()
    assert alerts(reap(world)) == []
    assert (worktrees(), standing(world)) == ([], [])


def test_a_repository_of_a_persons_own_in_the_place_of_a_worktree_is_not_called_moved(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    (place / ".git").unlink()
    world.git("init", "-q", str(place))
    events = reap(world)
    assert command(events, "worktree") == f"rm -r {place}"
    assert "its `.git` is a folder" in str(events)
    again(world)


def test_the_caches_of_a_worktree_go_with_it_and_after_it(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    cache = place.with_name(f"{place.name}.cache")
    for path in (cache, place.with_name(f".{cache.name}.going-0a1b2c3d")):
        path.mkdir(exist_ok=True)
        (path / "fetched").write_text("x")
    events = reap(world)
    assert alerts(events) == []
    assert "worktree" in repaired(events)
    assert not place.parent.exists()
    again(world)


def test_a_worktree_with_something_mounted_in_it_stays_where_it_is_until_that_is_unmounted(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    precious, at = tmp_path / "precious", place / "target.local"
    for folder in (precious, at):
        folder.mkdir()
    (precious / "thesis").write_text("years")
    reaping = shlex.join([sys.executable, "-m", "relay", "reap"])
    ran = subprocess.run(
        [*APART, "sh", "-euc", f"mount --bind {precious} {at}; {reaping}"],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=SAFETY,
        check=False,
    )
    if ran.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"nothing can be mounted here: {ran.stderr}")
    assert f"something is mounted at `{at}`\n      hint: umount {at}\n" in ran.stdout
    assert (worktrees(), (precious / "thesis").read_text()) == ([place], "years")
    assert alerts(reap(world)) == []
    assert (place.exists(), standing(world)) == (False, [])

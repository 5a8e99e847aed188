"""A place that is gone together with what it lay in may only be out of sight: nothing is forgotten, nothing sealed."""

import os
import shutil
from pathlib import Path

import pytest

from tests.loop import doomed
from tests.reaper.scenes import (
    again,
    alerts,
    command,
    killed,
    reap,
    repaired,
    with_a_worktree_kept,
    worktrees,
)
from tests.world import World


def _unmounted() -> tuple[Path, Path]:
    """Take away the folder of all worktrees, as when its disk is not mounted; return where it was, and where it is."""
    top = Path(os.environ["XDG_STATE_HOME"], "relay", "worktrees")
    return top, top.rename(top.with_name("unmounted"))


def test_a_worktree_that_is_out_of_sight_is_remembered_until_it_is_back(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path, beside="found.local")
    top, away = _unmounted()
    events = reap(world)
    assert (alerts(events), repaired(events)) == (["worktree"], [])
    assert command(events, "worktree") == f"ls -ld {place.parent}"
    assert str(place) in world.git("worktree", "list")
    again(world)
    away.rename(top)
    assert "found.local" in str(reap(world))
    assert world.git("status", "--short", folder=place) == " M calc.py"


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_leg_whose_worktree_is_out_of_sight_is_not_sealed(tmp_path: Path, options: tuple[str, ...]) -> None:
    world = doomed.build(tmp_path / "world")
    doomed.end(killed(world))
    top, away = _unmounted()
    events = reap(world, *options)
    assert ("run" in alerts(events), "leg" in repaired(events), world.receipts()) == (True, False, [])
    away.rename(top)
    assert "leg" in repaired(reap(world))
    assert world.show(f"refs/relay/{world.only_run()}/01-implement.cut", "calc.py") == doomed.HALF + "\n"


def test_the_folder_of_a_run_stays_while_git_knows_of_a_worktree_in_it(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.python("implementer", 'write({"calc.py": os.environ["RELAY_LEG"]})', phase="implement", vendor="north")
    assert world.relay("run", world.spec()).code == 4
    *older, newest = worktrees()
    assert older
    for path in (newest, newest.with_name(f"{newest.name}.io")):
        shutil.rmtree(path)
    reap(world)
    assert (worktrees(), newest.parent.is_dir()) == ([], True)
    again(world)

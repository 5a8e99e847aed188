"""A branch of a run that the ledger does not know: what its alert says to type ends it, checked out or not."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reaper.scenes import alerts, command, reap, standing
from tests.world import SAFETY, World

GONE = "relay/261129-0000-old"


def _nowhere(_world: World, _beside: Path) -> None:
    pass


def _in_the_main_checkout(world: World, _beside: Path) -> None:
    world.git("switch", "-q", GONE)


def _in_another(world: World, beside: Path) -> None:
    world.git("worktree", "add", "-q", str(beside), GONE)


def _in_one_that_is_gone(world: World, beside: Path) -> None:
    world.git("worktree", "add", "-q", str(beside), GONE)
    shutil.rmtree(beside)


@pytest.mark.parametrize(
    "checked_out",
    [_nowhere, _in_the_main_checkout, _in_another, _in_one_that_is_gone],
    ids=lambda how: how.__name__.strip("_"),
)
def test_the_hint_deletes_a_branch_that_is_checked_out(
    world: World, checked_out: Callable[[World, Path], None]
) -> None:
    (world.root / ".git" / "relay").mkdir(exist_ok=True)
    world.git("branch", GONE)
    checked_out(world, world.folder / "a place beside")
    events = reap(world)
    assert alerts(events) == ["branch"]
    subprocess.run(
        ["sh", "-euc", command(events, "branch")], cwd=world.root, env=dict(os.environ), check=True, timeout=SAFETY
    )
    assert world.git("branch", "--list", GONE).strip() == ""
    reap(world)
    assert standing(world) == []

"""Runs to look at: made once by the real command line, then copied for each test that reads or damages one."""

import copy
import shutil
from pathlib import Path

import pytest

from tests.world import World

HALF = "def add(a, b):\n    return b\n"
WHOLE = "def add(a, b):\n    return a + b\n"

_made: dict[str, World] = {}


@pytest.fixture
def accepted(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return a repository with an accepted run: a try, a review that sends it back, a second try, two approvals."""
    if "accepted" not in _made:
        world = World.simple(tmp_path_factory.mktemp("accepted") / "world")
        world.implementer({"calc.py": HALF}, {"calc.py": WHOLE})
        world.reviser("review", path="calc.py", quote="return b")
        ran = world.inside("run", world.spec())
        assert ran.code == 0, ran
        _made["accepted"] = world
    return copied(_made["accepted"], tmp_path / "copy")


def copied(world: World, folder: Path) -> World:
    """Copy a world with its ledger; Relay refuses a copy, so each start is made to name the new folder."""
    shutil.copytree(world.folder, folder, symlinks=True)
    for start in folder.glob("*/.git/relay/runs/*/legs/*/start.json"):
        start.write_text(start.read_text().replace(str(world.folder), str(folder)))
    twin = copy.copy(world)
    twin.folder, twin.root = folder, folder / world.root.name
    return twin

"""Temporary folders: those that a killed Relay left go and are told; a person's stay, whatever name they have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host import held
from tests.loop.faults import through
from tests.reaper.scenes import again, own_temp, reap, repaired
from tests.world import CHECKOUT, SAFETY, World

NAMES = (
    "relay-server-1.4-src",
    "relay-backup-2025.1130-final",
    "relay-notes-1.0-beta",
    f"relay-stage-{os.getpid()}.17-abcdefgh",
    "relay-demo-abcd_123",
    "relay-notes",
)
"""What people call theirs, and what a Relay before the mark did."""


@pytest.fixture
def top(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    return own_temp(world, monkeypatch)


def _mine(top: Path) -> list[Path]:
    for name in NAMES:
        (top / name).mkdir(0o700)
        (top / name / "thesis").write_text("years")
        held.age(top / name)
    return [top / name / "thesis" for name in NAMES]


def _asked(world: World, *words: str) -> str:
    """Run the program as a process of its own, so that it begins with everything still to be looked at."""
    done = subprocess.run(
        [sys.executable, "-m", "relay", *words],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SAFETY,
    )
    assert done.returncode == 0, done
    return done.stdout + done.stderr


@pytest.mark.parametrize("words", [("reap", "--dry-run"), ("reap",)], ids=" ".join)
def test_the_reaper_neither_removes_nor_names_what_a_person_keeps_in_the_temporary_folder(
    world: World, top: Path, words: tuple[str, ...]
) -> None:
    through(world.relay("run", world.spec()))
    mine = _mine(top)
    said = _asked(world, *words)
    assert [path.exists() for path in mine] == [True] * len(mine)
    assert [path.parent.name for path in mine if path.parent.name in said] == []


def test_a_run_removes_nothing_from_the_temporary_folder(world: World, top: Path) -> None:
    mine, dead = _mine(top), held.left(top)
    _asked(world, "run", str(world.spec()))
    assert [path.exists() for path in (*mine, dead)] == [True] * (len(mine) + 1)


def test_a_folder_that_a_killed_relay_left_is_announced_and_then_goes(world: World, top: Path) -> None:
    through(world.relay("run", world.spec()))
    dead = held.left(top)
    announced = reap(world, "--dry-run")
    assert dead.exists()
    done = reap(world)
    assert not dead.exists()
    assert repaired(announced) == repaired(done) == ["temp"]
    assert [event["what"] for event in announced] == [event["what"] for event in done]
    assert str(dead) in done[0]["what"]
    again(world)


def test_a_folder_that_a_relay_in_a_container_has_stays_until_that_is_killed(world: World, top: Path) -> None:
    through(world.relay("run", world.spec()))
    with held.held(top, held.APART) as (folder, program):
        again(world)
        assert (folder / "sub" / "socket").exists()
        program.kill()
    held.age(folder)
    assert repaired(reap(world)) == ["temp"]
    assert not folder.exists()

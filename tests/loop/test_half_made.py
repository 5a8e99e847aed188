"""Worktrees whose making was cut short are recognised and never committed from, and their git is waited for."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from relay import salvage
from relay.errors import Exit
from tests.loop import doomed
from tests.loop.crash import Crasher, Death
from tests.world import FIXED, World

LEG = "01-implement"


@pytest.fixture
def stage(tmp_path: Path) -> World:
    return doomed.build(tmp_path / "world")


@pytest.fixture
def crasher(tmp_path: Path) -> Iterator[Crasher]:
    with Crasher(tmp_path) as made:
        yield made


def _die(crasher: Crasher, world: World, point: str, when: str) -> Path:
    """Let a run die at a point of its first leg; return where that leg's worktree is or would be."""
    spec = world.spec()
    kept = world.folder.parent / "kept"
    shutil.copytree(world.folder, kept, symlinks=True)
    points = crasher.relay(world.root, "run", spec).points
    number = min(one.number for one in points if one.name.startswith(point))
    shutil.rmtree(world.folder)
    kept.rename(world.folder)
    assert crasher.relay(world.root, "run", spec, death=Death(number, when)).code == -signal.SIGKILL
    return _home(world)


def _home(world: World) -> Path:
    [home] = (Path(os.environ["XDG_STATE_HOME"]) / "relay" / "worktrees").glob(f"*/{world.only_run()}")
    return home / LEG


def _goes_on(world: World, *, stays: bool = False) -> None:
    """Assert that the run ends as it should, and that of the first leg its receipt is left, and what `stays`."""
    resumed = world.relay("resume")
    assert resumed.code == 0, resumed
    first = world.receipts()[0]
    assert (first["leg"], first["ended_by"], first["head"]) == (LEG, "interrupted", first["base"])
    assert doomed.replies(world) == doomed.REPLIES
    assert [leg["breaches"] for leg in world.receipts() if leg["breaches"]] == []
    assert world.show(f"relay/{world.only_run()}", "calc.py") == FIXED
    assert (LEG in doomed.worktrees(world)) == stays
    assert stays or doomed.worktrees(world) == []
    assert world.git("log", "--all", "--format=%H", "--", "planted.py") == ""


def test_a_folder_that_git_does_not_know_is_not_committed_from(stage: World, crasher: Crasher) -> None:
    home = _die(crasher, stage, "run worktree", "before")
    home.mkdir()
    (home / "planted.py").write_text("half\n")
    _goes_on(stage)


def test_an_entry_without_its_folder_is_given_back(stage: World, crasher: Crasher) -> None:
    home = _die(crasher, stage, "run worktree", "after")
    shutil.rmtree(home)
    _goes_on(stage)


def test_a_worktree_that_was_never_made_to_the_end_is_not_committed_from(stage: World, crasher: Crasher) -> None:
    home = _die(crasher, stage, "run worktree", "after")
    (home / "planted.py").write_text("half\n")
    (home / "calc.py").unlink()
    (stage.root / ".git" / "worktrees" / LEG / "index.lock").write_bytes(b"")
    _goes_on(stage)


def test_a_worktree_whose_set_up_was_cut_short_is_given_back(stage: World, crasher: Crasher) -> None:
    _die(crasher, stage, "lease", "after")
    _goes_on(stage)


def test_what_somebody_put_where_set_up_was_cut_short_stays_and_is_not_committed_from(
    stage: World, crasher: Crasher
) -> None:
    home = _die(crasher, stage, "lease", "after")
    (home / "planted.py").write_text("half\n")
    _goes_on(stage, stays=True)
    assert (home / "planted.py").read_text() == "half\n"


def test_a_git_that_is_killed_while_it_fills_a_large_worktree_leaves_nothing(stage: World) -> None:
    stage.commit({f"many/{number}.txt": f"{number}\n" for number in range(1000)})
    running = stage.start("run", stage.spec())
    doomed.await_that(_filling, "git never began to fill the worktree")
    running.kill()
    running.communicate()
    for pid in doomed.carriers(f"RELAY_GIT={_signature(stage)}"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not (stage.root / ".git" / "worktrees" / LEG / "relay-index").exists()
    _goes_on(stage)


def _filling() -> bool:
    homes = (Path(os.environ["XDG_STATE_HOME"]) / "relay" / "worktrees").glob(f"*/*/{LEG}/many/*")
    return any(True for _ in homes)


def _signature(world: World) -> str:
    """Return the mark of the Relay that began the first leg."""
    runner = json.loads((world.legs()[0] / "start.json").read_bytes())["relay"]
    return f"{runner['pid']}.{runner['started']}"


@pytest.fixture
def slow_git(stage: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a git on PATH that waits, before it makes the first leg's worktree, until the file `on` is there."""
    folder = stage.folder / "bin"
    folder.mkdir()
    (folder / "git").write_text(
        "#!/bin/sh\n"
        f'case "$*" in *"worktree add"*{LEG}*)\n'
        f"touch {folder}/waits; while ! test -e {folder}/on; do sleep 0.05; done;; esac\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    running = stage.start("run", stage.spec())
    doomed.await_that((folder / "waits").exists, "git was never asked for a worktree")
    running.kill()
    running.communicate()
    return folder


def test_a_git_that_outlives_its_killed_runner_is_waited_for(stage: World, slow_git: Path) -> None:
    resuming = stage.start("resume")
    doomed.await_that((stage.legs()[0].parent / f"{LEG}.lock.json").exists, "resume never came to the leg")
    assert (stage.legs()[0] / "receipt.json").exists() is False
    (slow_git / "on").touch()
    assert resuming.wait() == 0, resuming.communicate()
    resuming.communicate()
    _goes_on(stage)


def test_a_git_that_never_ends_is_named_and_nothing_is_done(
    stage: World, slow_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(salvage, "PATIENCE", 0.1)
    refused = stage.inside("resume")
    assert refused.code == Exit.HELD, refused
    [line] = [line for line in refused.err.splitlines() if line.startswith("error: git, process ")]
    named = int(line.split("process ")[1].split(",")[0])
    assert named in doomed.carriers(f"RELAY_GIT={_signature(stage)}")
    assert stage.receipts() == []
    (slow_git / "on").touch()
    _goes_on(stage)

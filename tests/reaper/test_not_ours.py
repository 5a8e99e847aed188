"""What only looks as if it were Relay's, or as if nobody had it: the reaper leaves it, whatever it is called."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.loop import dusk
from tests.loop.faults import through
from tests.loop.test_queue import ledger
from tests.reaper.scenes import (
    again,
    alerts,
    command,
    killed,
    own_temp,
    reap,
    repaired,
    standing,
    with_a_worktree_kept,
    worktrees,
)
from tests.world import CHECKOUT, SAFETY, World

LONG_AGO = time.time() - 100_000


def test_a_temporary_folder_that_names_no_process_of_a_relay_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    through(world.relay("run", world.spec()))
    top = own_temp(world, monkeypatch)
    folders = [top / f"relay-{name}" for name in ("ledger-20261130", "ledger-saturday", "index-abcd_123", "sign")]
    for folder in folders:
        folder.mkdir(0o700)
        os.utime(folder, (LONG_AGO, LONG_AGO))
    assert reap(world) == []
    assert [folder.is_dir() for folder in folders] == [True] * 4


def test_a_worktree_that_a_person_locked_stays_until_they_unlock_it(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    world.git("worktree", "unlock", str(place))
    world.git("worktree", "lock", "--reason", "mine", str(place))
    events = reap(world)
    assert alerts(events) == ["worktree"]
    assert "`mine`" in str(events)
    assert (place / ".git").exists()
    again(world)
    through_shell(world, command(events, "worktree"))
    assert "worktree" in repaired(reap(world))
    assert (worktrees(), standing(world)) == ([], [])


def through_shell(world: World, line: str) -> None:
    """Type what an alert says."""
    subprocess.run(["sh", "-c", line], cwd=world.root, check=True, timeout=SAFETY)


def test_what_is_staged_in_a_worktree_and_nowhere_else_is_not_lost(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    (place / "thought.txt").write_text("staged, and then taken away\n")
    world.git("add", "thought.txt", folder=place)
    (place / "thought.txt").unlink()
    assert alerts(reap(world)) == ["worktree"]
    assert world.git("show", ":thought.txt", folder=place) == "staged, and then taken away"
    again(world)


def test_a_commit_that_a_person_made_in_a_worktree_and_left_again_is_not_lost(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    before = world.git("rev-parse", "HEAD", folder=place)
    world.git("stash", "push", "-q", folder=place)
    world.git("stash", "drop", "-q", folder=place)
    (place / "thought.txt").write_text("committed, and then left\n")
    world.git("add", "thought.txt", folder=place)
    world.git("commit", "-q", "-m", "by hand", "--", "thought.txt", folder=place)
    made = world.git("rev-parse", "HEAD", folder=place)
    world.git("checkout", "-q", "--detach", before, folder=place)
    events = reap(world)
    assert alerts(events) == ["worktree"]
    assert made[:12] in str(events)
    again(world)
    world.git("branch", "kept", made)
    assert "worktree" in repaired(reap(world))


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_loop_in_a_container_is_alive_although_its_number_means_nobody_here(
    world: World, options: tuple[str, ...]
) -> None:
    working, go = world.folder / "working", world.folder / "go"
    text = f"sleep 600 & echo $! > {working}.new; mv {working}.new {working}\n"
    text += f"while ! test -e {go}; do sleep 0.1; done\nkill $!\nsed -i 's/a - b/a + b/' calc.py"
    world.agents, world.phases = {}, {}
    world.shell("worker", text, phase="implement", reply="exit")
    world.save(phases=["implement"])
    command_line = [sys.executable, "-m", "relay", "run", str(world.spec())]
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]
    with subprocess.Popen(
        [*apart, *command_line],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as running:
        over = time.monotonic() + SAFETY
        while not working.exists() and running.poll() is None and time.monotonic() < over:
            time.sleep(0.05)
        if running.poll() is not None and running.stderr is not None and b"unshare" in (said := running.stderr.read()):
            pytest.skip(f"no namespace can be made here: {said!r}")
        try:
            assert repaired(reap(world, *options)) == []
        finally:
            go.touch()
            running.communicate(timeout=SAFETY)
    assert running.returncode == 0
    assert [leg["ended_by"] for leg in world.receipts()] == ["reply"]


def test_a_worktree_of_the_repository_that_this_one_was_copied_from_is_not_taken_from_it(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    pointer = (place / ".git").read_text()
    copy = tmp_path / "copy"
    shutil.copytree(world.root, copy, symlinks=True)
    shutil.rmtree(copy / ".git" / "relay")
    found = world.relay("reap", "--json", folder=copy).events
    line = command(found, "worktree")
    assert str(world.root) in str(found)
    subprocess.run(["sh", "-c", line], cwd=copy, check=True, timeout=SAFETY)
    assert ((place / ".git").read_text(), (place / "calc.py").read_text()) == (pointer, "half\n")
    assert str(place) in world.git("worktree", "list")
    left = world.relay("reap", "--json", folder=copy)
    assert (left.code, alerts(left.events)) == (0, [])


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "/root/" * 900])
def test_an_entry_whose_spec_cannot_be_looked_at_keeps_the_reaper_from_nothing(world: World, name: str) -> None:
    dusk.short(world)
    dusk.queued(world, "One", "Two")
    [path] = ledger(world).queue.glob("one*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"spec": name}))
    assert alerts(reap(world)) == ["queue"]
    again(world)
    dusk.went(world.inside("nightly"))
    assert dusk.runs(world) == ["two"]
    assert "bug" not in str(dusk.newest(world))


def test_the_places_of_another_repository_that_stood_at_this_path_stay(world: World) -> None:
    killed(world)
    awaited = sorted(Path(os.environ["XDG_STATE_HOME"], "relay", "worktrees").glob("*/*/*"))
    moved = world.folder / "moved"
    world.root.rename(moved)
    world.git("clone", "-q", str(moved), str(world.root), folder=world.folder)
    reap(world)
    assert [path.exists() for path in awaited] == [True, True]
    shutil.rmtree(world.root)
    moved.rename(world.root)
    assert "leg" in repaired(reap(world))


def test_an_entry_of_the_same_name_in_another_clone_does_not_show_that_a_worktree_is_kept(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    world.git("stash", "push", "-q", folder=place)
    other = place.parent.with_name("261130-0000-other") / place.name
    other.parent.mkdir()
    shutil.copytree(place, other)
    assert (other / ".git").read_text() == (place / ".git").read_text()
    assert str(other) in str([event for event in reap(world) if event["type"] == "alert"])
    assert (other / "calc.py").exists()

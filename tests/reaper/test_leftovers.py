"""What a killed Relay or a killed git leaves in small: it goes when it is nobody's, and is told."""

import os
import time
from pathlib import Path

import pytest

from tests.loop.faults import through
from tests.reaper.scenes import again, alerts, at_work, command, reap, repaired, standing
from tests.world import World

LONG_AGO = time.time() - 100_000
DEAD = 4_194_303
"""A number that no process has: the kernel's greatest is one above it (proc(5), pid_max)."""


@pytest.fixture
def ledger(world: World) -> Path:
    through(world.relay("run", world.spec()))
    return world.root / ".git" / "relay"


def _left(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def test_half_written_files_and_half_made_runs_go(world: World, ledger: Path) -> None:
    half = _left(ledger / "runs" / world.only_run() / "legs" / "01-implement" / f".note.md.{DEAD}.0123abcd.tmp")
    draft = _left(ledger / "runs" / ".new-0123456789ab" / "plan.toml").parent
    living, contained = (_left(ledger / f".format.{pid}.0123abcd.tmp") for pid in (os.getppid(), DEAD))
    for path in (living, contained):
        os.utime(path)
    assert repaired(reap(world)) == ["temp", "temp"]
    assert [path.exists() for path in (half, draft, living, contained)] == [False, False, True, True]
    again(world)


def test_a_record_of_a_lock_goes_when_the_process_that_it_names_is_dead(world: World, ledger: Path) -> None:
    dead = f'{{"process":{{"pid":{DEAD},"started":1,"boot":"x"}},"since":"2026-01-01T00:00:00Z","what":"run"}}'
    records = [ledger / "lock.json", ledger / "runs" / world.only_run() / "lock.json"]
    for record in records:
        record.write_text(dead)
    assert repaired(reap(world)) == ["lock", "lock"]
    assert not any(record.exists() for record in records)
    again(world)


def test_a_lock_that_a_killed_git_left_on_a_ref_of_relays_goes_and_any_other_is_raised(
    world: World, ledger: Path
) -> None:
    own = _left(ledger.parent / "refs" / "relay" / world.only_run() / "01-implement.lock")
    shared = _left(ledger.parent / "packed-refs.lock")
    fresh = ledger.parent / "refs" / "heads" / "relay" / f"{world.only_run()}.lock"
    fresh.write_bytes(b"")
    events = reap(world)
    assert (repaired(events), alerts(events)) == (["lock"], ["lock"])
    assert command(events, "lock") == f"pgrep -lx git || rm {shared}"
    assert [path.exists() for path in (own, shared, fresh)] == [False, True, True]
    again(world)
    shared.unlink()
    reap(world)
    assert standing(world) == []


def test_a_lock_that_somebody_has_open_stays(world: World, ledger: Path) -> None:
    path = _left(ledger.parent / "refs" / "relay" / world.only_run() / "01-implement.lock")
    with path.open():
        again(world)
    assert path.exists()


def test_beside_a_live_loop_no_draft_is_touched(world: World) -> None:
    with at_work(world, world.spec()) as go_on:
        draft = _left(world.runs / ".new-0123456789ab" / "plan.toml").parent
        again(world)
        assert draft.exists()
        go_on()
    assert repaired(reap(world)) == ["temp"]
    assert not draft.exists()

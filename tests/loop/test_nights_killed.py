"""A night that ends in its middle, by a signal or by death: its record is true, and the next one does nothing twice."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay import nights, queue
from relay.host import repository
from relay.queue import promised
from relay.record import ledger as ledgers
from tests.loop import doomed, dusk
from tests.loop.crash import Crasher, Death
from tests.loop.doomed import await_that
from tests.loop.dusk import items, newest, queued, records, runs, went
from tests.world import SAFETY, World

TASKS = ["one", "two"]


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """Let what is started hear all signals: a suite that runs in the background was told to ignore some."""
    before = {name: signal.signal(name, lambda *_: None) for name in (signal.SIGINT, signal.SIGHUP)}
    yield
    for name, handler in before.items():
        signal.signal(name, handler)


def test_a_night_that_is_killed_leaves_a_true_record_and_the_next_goes_on_and_says_so(world: World) -> None:
    seen = dusk.slow(world)
    queued(world, *TASKS)
    first = world.start("nightly", "--hours", "8")
    await_that(seen.exists, "the night took nothing")
    first.kill()
    first.communicate(timeout=SAFETY)
    killed = newest(world)
    assert (killed["ended"], killed["ended_by"]) == (None, None)
    assert items(world) == [("started", "one", "open")]
    assert killed["items"][0]["run"] == world.only_run()

    went(world.relay("nightly"))
    first_record, second_record = records(world)
    assert (first_record["ended_by"], first_record["reason"]) == ("signal", "killed")
    assert first_record["ended"] >= first_record["started"]
    assert first_record["items"] == killed["items"]
    assert second_record["reason"] == f"the night before, `{killed['id']}`, was killed"
    assert items(world) == [("resumed", "one", "accepted"), ("started", "two", "accepted")]
    assert runs(world) == TASKS
    assert not doomed.alive(int(seen.read_text()))
    went(world.relay("nightly"))
    assert (newest(world)["items"], newest(world)["reason"]) == ([], "")


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_seals_the_leg_and_the_record_and_the_next_night_goes_on(world: World, signum: int) -> None:
    seen = dusk.slow(world)
    queued(world, *TASKS)
    running = world.start("nightly")
    await_that(seen.exists, "the night took nothing")
    running.send_signal(signum)
    _, err = running.communicate(timeout=SAFETY)
    assert running.returncode == 128 + signum, err
    assert b"Traceback" not in err
    night = newest(world)
    assert (night["ended_by"], night["reason"]) == ("signal", f"ended by {signal.Signals(signum).name}")
    assert items(world) == [("started", "one", "open")]
    assert [leg["ended_by"] for leg in world.receipts()] == ["interrupted"]
    assert not doomed.alive(int(seen.read_text()))
    went(world.relay("nightly"))
    assert items(world) == [("resumed", "one", "accepted"), ("started", "two", "accepted")]
    assert runs(world) == TASKS


def test_wherever_a_night_is_killed_each_entry_has_one_run_in_the_end_and_no_record_lies(tmp_path: Path) -> None:
    world = dusk.short(World.simple(tmp_path / "world"))
    queued(world, *TASKS)
    fresh = tmp_path / "fresh"
    subprocess.run(["cp", "-a", str(world.folder), str(fresh)], check=True)
    ledger = ledgers.at(repository.discover(world.root))
    with Crasher(tmp_path) as crasher:
        points = crasher.relay(world.root, "nightly").points
        named = {point.number: point.name for point in points}
        written = [number for number, name in named.items() if "/nights/" in name or "/queue" in name]
        sampled = sorted({*range(2, len(points), len(points) // 6), *written[::4]})
        for index, number in enumerate(sampled):
            subprocess.run(["rm", "-rf", str(world.folder)], check=True)
            subprocess.run(["cp", "-a", str(fresh), str(world.folder)], check=True)
            death = Death(number, ("before", "after")[index % 2])
            assert crasher.relay(world.root, "nightly", death=death).code == -signal.SIGKILL, named[number]
            for night in nights.every(ledger):
                assert {item.run for item in night.items} <= {None, *ledgers.runs(ledger)}, named[number]
            end = crasher.relay(world.root, "nightly")
            assert end.code == 0, (named[number], end.said)
            assert runs(world) == TASKS, named[number]
            assert {promised.outcome(ledger, run) for run in ledgers.runs(ledger)} == {"accepted"}, named[number]
            assert (queue.entries(ledger), list(ledger.queue.glob("*.json"))) == ((), []), named[number]
            for night in nights.every(ledger):
                assert night.ended is not None, named[number]
            assert nights.every(ledger)[-1].ended_by == "done"

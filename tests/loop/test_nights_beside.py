"""What a night does beside running: it looks after proposals that are out, and it makes way for a person."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from relay import runner
from relay.host import clock, repository
from relay.nightly.night import DOZE
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from tests.forge import TOKEN
from tests.forge.desk import Desk
from tests.loop import dusk
from tests.loop.doomed import await_that
from tests.loop.dusk import items, newest, queued, records, task, went
from tests.loop.faults import stopped, through
from tests.world import CHECKOUT, FIXED, SAFETY, World


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    with made.hub:
        yield made.accepted()


def test_a_proposal_that_was_merged_by_day_is_sealed_by_night(desk: Desk) -> None:
    world = desk.world
    through(world.inside("approve"))
    went(world.inside("nightly"))
    assert newest(world)["items"] == [], "it is open still, and that is nothing to tell"
    desk.hub.merge()
    went(world.inside("nightly"))
    [item] = newest(world)["items"]
    assert (item["did"], item["run"], item["outcome"]) == ("followed", world.only_run(), "shipped")
    assert world.receipts()[-1]["effect"]["outcome"] == "shipped"
    went(world.inside("nightly"))
    assert newest(world)["items"] == []


def test_a_forge_that_cannot_be_asked_is_said_and_the_queue_is_taken_all_the_same(desk: Desk) -> None:
    world = desk.world
    through(world.inside("approve"))
    desk.hub.fails("*", 403)
    queued(world, "Make it so")
    went(world.inside("nightly"))
    assert [(did, outcome) for did, _, outcome in items(world)] == [("skipped", "proposed"), ("started", "accepted")]
    assert "its proposal cannot be looked at now" in newest(world)["items"][0]["reason"]


def test_a_person_who_begins_a_run_by_night_goes_first_and_the_night_goes_on_after_that(world: World) -> None:
    world.script("implementer", {"ended_by": "quota"}, phase="implement", vendor="north")
    world.save(phases=["implement"])
    reset = clock.now() + timedelta(seconds=12)
    with clock.fix(reset - timedelta(minutes=15)):
        stopped(world.inside("run", world.spec(name="begun.md")), 5, "waiting")
    done = {"write": {"calc.py": FIXED}, "reply": {"status": "done"}}
    world.script("implementer", done, phase="implement", vendor="north")
    night = world.start("nightly", "--hours", "1")
    await_that(lambda: records(world) and newest(world)["items"], "the night does not wait")
    own = dusk.slow(world)
    person = world.start("run", world.spec(task("Own"), "own.md"))
    await_that(own.exists, "the person's run did not begin")
    [waiting] = [run for run in ledgers.runs(here(world)) if run.endswith("begun")]
    await_that(lambda: clock.now() > reset + timedelta(seconds=DOZE), "time stands still")
    assert len(world.receipts(waiting)) == 1, "the quota is there again, but the repository is not"
    assert night.poll() is None
    person.terminate()
    person.communicate(timeout=SAFETY)
    night.communicate(timeout=SAFETY)
    assert night.returncode == 0
    assert items(world) == [("resumed", "begun", "accepted"), ("resumed", "own", "accepted")]


def here(world: World) -> Ledger:
    return ledgers.at(repository.discover(world.root))


def test_who_stops_a_run_of_a_night_ends_that_run_and_the_night_goes_on_with_the_next(world: World) -> None:
    seen = dusk.slow(world)
    queued(world, "One", "Two")
    running = world.start("nightly")
    await_that(seen.exists, "the worker never began")
    one = world.only_run()
    ran = went(world.inside("stop", one))
    running.communicate(timeout=SAFETY)
    assert "part of a night, which goes on with what is next" in ran.err, ran
    assert (running.returncode, newest(world)["ended_by"]) == (0, "done")
    assert items(world) == [("started", "one", "stopped"), ("started", "two", "accepted")]
    assert newest(world)["items"][0]["reason"] == "a person stopped it"
    assert [leg.get("act") or leg["ended_by"] for leg in world.receipts(one)] == ["interrupted", "stop"]
    went(world.inside("nightly"))
    assert newest(world)["items"] == [], "what a person stopped waits for them"


def test_a_loop_that_turns_out_to_be_a_night_is_not_ended_with_its_run(world: World) -> None:
    seen = dusk.slow(world)
    queued(world, "One", "Two")
    running = world.start("nightly")
    await_that(seen.exists, "the worker never began")
    assert runner.stop(here(world), world.only_run()), "asked in the instant after `nights.stop` found no night at it"
    running.communicate(timeout=SAFETY)
    assert (running.returncode, newest(world)["ended_by"]) == (0, "done")
    assert [spec for _, spec, _ in items(world)] == ["one", "two"]


def test_a_night_that_was_told_to_stop_a_run_and_then_to_end_ends(world: World) -> None:
    seen = dusk.slow(world, then="sleep 300")
    queued(world, "One", "Two")
    running = world.start("nightly")
    await_that(seen.exists, "the worker never began")
    through(world.inside("stop", world.only_run()))
    await_that(lambda: len(dusk.runs(world)) == 2, "the night did not go on")
    two = next(run for run in ledgers.runs(here(world)) if run.endswith("two"))
    await_that((world.runs / two / "legs" / "01-implement" / "start.json").exists, "the second never began")
    running.terminate()
    running.communicate(timeout=SAFETY)
    assert (running.returncode, newest(world)["ended_by"]) == (128 + signal.SIGTERM, "signal")
    assert [(spec, outcome) for _, spec, outcome in items(world)] == [("one", "stopped"), ("two", "open")]


HOLDS = """
import sys, time
from pathlib import Path
from relay.host import lock

with lock.hold(Path(sys.argv[1]), sys.argv[2], sys.argv[3], wait=60):
    print("held", flush=True)
    sys.stdin.readline()
"""
"""A program that holds a lock until it is told to let go."""


@contextmanager
def held(world: World, what: str, run: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Let another process wait for the repository, and hold it; give it once it was started."""
    args = [sys.executable, "-c", HOLDS, str(here(world).lock), what, run]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(args, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            yield other
        finally:
            other.kill()


def holds(other: subprocess.Popen[bytes]) -> None:
    """Wait until it holds the repository."""
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"


def let_go(other: subprocess.Popen[bytes]) -> None:
    """Have it let go."""
    assert other.stdin is not None
    other.stdin.write(b"\n")
    other.stdin.flush()


def test_a_night_without_an_end_waits_for_a_run_of_a_person_too_and_loses_no_spec_by_it(world: World) -> None:
    begun, go = world.folder / "begun", world.folder / "go"
    dusk.short(world, f"touch {begun}; while ! test -e {go}; do sleep 0.05; done; {dusk.MENDED}")
    queued(world, "One", "Two", "Three")
    night = world.start("nightly")
    await_that(begun.exists, "the night took nothing")
    with held(world, "run mine", "261130-0000-mine") as person:
        go.touch()
        holds(person)
        time.sleep(DOZE / 2)  # the night comes to its next spec meanwhile, and finds the repository held
        assert night.poll() is None
        let_go(person)
        night.communicate(timeout=SAFETY)
    assert (night.returncode, newest(world)["ended_by"]) == (0, "done")
    assert items(world) == [("started", name, "accepted") for name in ("one", "two", "three")]


@pytest.mark.parametrize("command", ["nightly", "run", "resume"])
def test_a_reaper_that_holds_the_repository_is_waited_for_and_that_is_said(world: World, command: str) -> None:
    dusk.short(world)
    spec = world.spec()
    stopped(world.inside("run", spec, "--until", "implement"), 0)
    with held(world, "relay reap") as reaper:
        holds(reaper)
        waiting = world.start(command, *([spec] if command == "run" else []))
        assert waiting.stderr is not None
        assert any(b"waiting for `relay reap`, process" in line for line in iter(waiting.stderr.readline, b""))
        let_go(reaper)
        _, err = waiting.communicate(timeout=SAFETY)
    assert waiting.returncode == 0, err

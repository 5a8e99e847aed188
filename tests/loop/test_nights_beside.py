"""What a night does beside running: it looks after proposals that are out, and it makes way for a person."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

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
from tests.world import FIXED, SAFETY, World


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


def test_who_stops_a_run_of_a_night_is_told_that_the_night_ends_with_it(world: World) -> None:
    seen = dusk.slow(world)
    queued(world, "One", "Two")
    running = world.start("nightly")
    await_that(seen.exists, "the worker never began")
    ran = world.inside("stop", world.only_run())
    running.communicate(timeout=SAFETY)
    assert "part of a night, which ends with it; the queue stays for the next" in ran.err, ran
    assert (ran.code, newest(world)["ended_by"]) == (0, "signal")
    went(world.inside("nightly"))
    assert [spec for _, spec, _ in items(world)] == ["two"], "what a person stopped waits for them"

"""What is in the queue and was run by a person meanwhile is not paid for a second time."""

from pathlib import Path

import pytest

from tests.loop import dusk
from tests.loop.dusk import items, newest, queued, runs, went
from tests.loop.faults import through
from tests.loop.test_queue import ledger, order, why
from tests.world import World


def _earlier(world: World) -> None:
    """Let the entries have been queued long ago: stamps have whole seconds, and so a test need not wait for one."""
    for path in ledger(world).queue.glob("[!.]*.json"):
        text = path.read_text()
        stamp = text.partition('"added": "')[2].partition('"')[0]
        path.write_text(text.replace(stamp, "2026-01-01T00:00:00Z"))


def _by_hand(world: World, name: str) -> str:
    """Run a queued spec as a person does who does not want to wait for the night."""
    before = runs(world)
    through(world.inside("run", world.folder / "specs" / f"{name}.md"))
    assert len(runs(world)) == len(before) + 1
    return max(path.name for path in world.runs.glob("[0-9]*"))


def test_a_queued_spec_that_a_person_ran_meanwhile_is_not_run_again(world: World) -> None:
    dusk.short(world)
    queued(world, "One", "Two")
    _earlier(world)
    run = _by_hand(world, "one")
    assert (
        why(world, "one")
        == f"`{run}` was made from this very text already; `relay queue add --again` would have it run again"
    )
    went(world.inside("nightly"))
    assert items(world) == [("skipped", "one", ""), ("started", "two", "accepted")]
    assert run in newest(world)["items"][0]["reason"]
    assert runs(world) == ["one", "two"]


def test_one_whose_text_changed_since_a_person_ran_it_runs_again(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    _earlier(world)
    _by_hand(world, "one")
    path = world.folder / "specs" / "one.md"
    path.write_text(path.read_text() + "\nAnd more.\n")
    assert why(world, "one") == ""
    went(world.inside("nightly"))
    assert len(runs(world)) == 2


@pytest.mark.parametrize("act", ["reject", "queue again"])
def test_one_that_is_wanted_again_after_a_person_ran_it_runs_again(world: World, act: str) -> None:
    dusk.short(world)
    queued(world, "One")
    _earlier(world)
    run = _by_hand(world, "one")
    if act == "reject":
        assert world.inside("reject", run, "--close", "--why", "not so").code == 1
    else:
        through(world.inside("queue", "add", "--again", world.folder / "specs" / "one.md"))
    assert (order(world), why(world, "one")) == (["one"], "")


def test_many_specs_are_queued_and_taken_out_at_once(world: World) -> None:
    specs = [str(world.spec(dusk.task(f"Task {number}"), f"task{number}.md")) for number in range(150)]
    through(world.inside("queue", "add", *specs))
    assert order(world) == [Path(spec).stem for spec in specs]
    through(world.inside("queue", "remove", *specs[1:]))
    assert order(world) == ["task0"]

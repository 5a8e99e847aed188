"""What waits from before a night is told in the morning too: in the report, on the page and in the closing notice."""

import json
from pathlib import Path

import pytest

from relay import nights
from relay.report import lines, page
from tests.loop import dusk
from tests.loop.dusk import Bell, newest, queued, went
from tests.loop.faults import stopped, through
from tests.report import breakfast
from tests.world import World

SCREEN = 24
COUNT = 10


@pytest.fixture
def before(world: World) -> World:
    """Return a world in which one run asks and nine are accepted, all from the night before."""
    dusk.short(world)
    queued(world, *(f"Task {number}" for number in range(COUNT - 1)))
    went(world.inside("nightly"))
    world.script("asks", {"reply": {"status": "blocked", "question": "Why?"}}, phase="implement", vendor="north")
    world.save(phases=["implement"])
    stopped(world.inside("run", world.spec(name="asks.md")), 4)
    return world


def test_a_night_with_nothing_to_do_names_what_waits_from_before_in_every_place(before: World, tmp_path: Path) -> None:
    world, bell = before, Bell(tmp_path)
    ran = went(world.inside("nightly"))
    assert newest(world)["items"] == [], ran
    told = world.inside("report")
    through(told)
    asks = next(path.name for path in world.runs.iterdir() if path.name.endswith("-asks"))
    night = nights.newest(breakfast.repo(world))
    assert night is not None
    document = page.night(breakfast.repo(world), night)
    for said, at in ((told.out, ""), (bell.text, f"-C {world.root} "), (document, f"-C {world.root} ")):
        assert f"relay {at}answer {asks} TEXT" in said, "what is in trouble comes first"
        assert "Why?" in said
        assert "Task 3" in said
        assert said.count(f"relay {at}approve ") > 1
    for said, at in ((told.out, ""), (bell.text, f"-C {world.root} ")):
        assert len(said.splitlines()) < SCREEN
        assert f"waiting from before: {COUNT} runs\n" in said
        assert f"and {COUNT - lines.SOME} more: relay {at}status\n" in said
    assert told.out.startswith(f"nothing ran, {COUNT} wait from before\n")
    assert document.count('<p class="command">') >= COUNT
    events = [json.loads(line) for line in world.inside("report", "--json").out.splitlines()]
    assert next(event["run"] for event in events if event["type"] == "waiting") == asks


def test_what_the_night_itself_did_does_not_wait_from_before(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    went(world.inside("nightly"))
    assert "waiting from before" not in world.inside("report").out

"""What a night says while it goes: of each run its own, and what holds for all of them once."""

from tests.loop import dusk
from tests.loop.dusk import queued, went
from tests.world import World


def test_what_holds_for_every_run_of_a_night_is_said_of_the_first_one_alone(world: World) -> None:
    dusk.short(world)
    queued(world, "One", "Two", "Three")
    ran = went(world.relay("nightly"))
    assert [ran.err.count(f": {title}") for title in ("One", "Two", "Three")] == [1, 1, 1], ran
    assert ran.err.count("no jail") == 1, ran
    assert ran.err.count("follow an agent with:") == 1, ran


def test_every_run_of_a_night_is_an_event_all_the_same(world: World) -> None:
    dusk.short(world)
    queued(world, "One", "Two")
    ran = went(world.relay("nightly", "--json"))
    assert [event["title"] for event in ran.events if event["type"] == "begin"] == ["One", "Two"]

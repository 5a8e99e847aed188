"""What a person says of a spec in the queue can be taken back, and what cannot be meant is answered with what can."""

import msgspec
import pytest

from relay import queue
from relay.host import clock
from tests.loop.faults import refused, through
from tests.loop.test_queue import NOW, add, ledger, order
from tests.world import World


def test_what_a_spec_waits_for_is_taken_back_and_its_place_and_the_rest_stay(world: World) -> None:
    add(world, "one", "two", "three")
    two = world.folder / "specs" / "two.md"
    with clock.fix(NOW):
        words = ("--after", str(two.with_name("three.md")), "--not-before", "22:00", "--priority", "4")
        through(world.inside("queue", "add", two, *words))
        entry = queue.entries(ledger(world))[0]
        assert entry.after is not None
        assert entry.not_before == "2026-11-29T22:00:00Z"
        ran = world.inside("queue", "add", two, "--after", "none")
        assert "now with priority 4, not before 2026-11-29" in ran.err, ran
        assert ran.err.splitlines()[0].endswith(", `after` taken back"), ran
        assert queue.entries(ledger(world))[0] == msgspec.structs.replace(entry, after=None)
        ran = world.inside("queue", "add", two, "--not-before", "now")
        assert ran.err.splitlines()[0].endswith("now with priority 4, `not before` taken back"), ran
        assert queue.entries(ledger(world))[0] == msgspec.structs.replace(entry, after=None, not_before=None)
    assert order(world) == ["two", "one", "three"]
    told = " ".join(world.relay("queue", "add", "--help").out.split())
    assert "`none` takes that back" in told
    assert "`now` takes that back" in told


def test_a_new_spec_may_say_that_it_waits_for_nothing(world: World) -> None:
    add(world, "one", options=("--after", "none", "--not-before", "now"))
    [entry] = queue.entries(ledger(world))
    assert (entry.after, entry.not_before) == (None, None)


@pytest.mark.parametrize("over", ["2020-01-01", "2026-11-29T17:00"])
def test_an_hour_that_is_over_is_taken_and_said_to_be_over(world: World, over: str) -> None:
    spec = world.spec()
    with clock.fix(NOW):
        ran = world.inside("queue", "add", spec, "--not-before", over)
        through(ran)
        assert f"warning: `{over}` is over, so nothing waits for it" in ran.err, ran
        assert "warning" not in world.inside("queue", "add", spec, "--not-before", "2999-01-01").err


def test_what_cannot_be_queued_is_answered_with_what_can(world: World) -> None:
    world.save()
    ran = world.inside("queue", "add", "nothere.md")
    refused(ran, 2, "there is no spec `", "nothere.md")
    assert "relay queue add tasks/" in ran.err
    assert "relay run" not in ran.err
    ran = world.inside("queue", "add", world.spec(), "--after", "nonsense")
    refused(ran, 2, "`nonsense` is neither a spec nor a run")
    assert "relay queue list" in ran.err
    assert "relay status" in ran.err
    assert queue.entries(ledger(world)) == ()


def test_an_entry_that_is_moved_to_two_places_is_told_that_one_is_meant(world: World) -> None:
    add(world, "salt")
    refused(world.inside("queue", "move", "salt", "--first", "--last"), 2, "an entry goes to one place")
    refused(world.inside("queue", "move", "salt"), 2, "say where to")

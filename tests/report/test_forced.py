"""A run that a person sent out though nothing accepted it is no success in any figure, and says so everywhere."""

from pathlib import Path

import pytest

from relay.record import ledger as ledgers
from relay.report import stats
from tests.loop.faults import through
from tests.report import breakfast
from tests.world import FIXED, SPEC, World

SAYS = "shipped (by hand, not accepted)"


@pytest.fixture
def forced(tmp_path: Path) -> tuple[World, str]:
    """Make a run that was accepted and shipped, and one that a person forced; return the forced one."""
    world = World.simple(tmp_path)
    through(world.relay("run", world.spec()))
    through(world.relay("approve", world.only_run()))
    good = world.only_run()
    world.implementer({"calc.py": FIXED + "# again\n"})
    world.reviser("review", path="calc.py", quote="def add(a, b):", times=9)
    world.phases["review"]["rounds"] = 1
    world.save()
    assert world.relay("run", world.spec(SPEC, "second.md")).code == 4
    [run] = {path.name for path in world.runs.iterdir()} - {good}
    through(world.relay("approve", run, "--leg", "01", "--why", "I do"))
    return world, run


def test_a_forced_run_is_shipped_and_not_settled(forced: tuple[World, str]) -> None:
    world, run = forced
    ledger = breakfast.repo(world)
    counted = stats.count(ledger, ledgers.runs(ledger))
    assert (counted.settled, counted.decided, counted.forced) == (1, 2, 1)
    ran = world.relay("stats")
    assert f"2 runs: 1 shipped, 1 {SAYS}" in ran.out, ran
    assert "settled: 1 of 2 that are decided, 50 %" in ran.out, ran
    [told] = [event for event in world.relay("stats", "--json").events if event["type"] == "stats"]
    assert (told["outcomes"], told["settled"], told["forced"]) == ({"shipped": 2}, 1, 1)
    page = world.relay("stats", "--html", "-").out
    assert f"1 {SAYS}. Of 2 that are decided, 1 settled (50 %)" in page
    assert [(one.run, one.outcome) for one in counted.partial] == [(run, SAYS)]


def test_each_place_that_names_a_forced_run_says_that_nothing_accepted_it(forced: tuple[World, str]) -> None:
    world, run = forced
    for words in (["report", run], ["status", "--all"], ["show", run], ["trace", run]):
        assert SAYS in world.relay(*words).out, words
    assert f"1 {SAYS}" in world.relay("report", run).out.splitlines()[0]
    page = world.relay("report", run, "--html", "-").out
    assert f'<span class="stands shipped-by-hand">{SAYS}</span>' in page
    for words in (["report", run, "--json"], ["status", "--all", "--json"], ["show", run, "--json"]):
        [told] = [event for event in world.relay(*words).events if event.get("run") == run]
        assert (told["outcome"], told["forced"]) == ("shipped", True), words


def test_a_run_that_was_accepted_is_not_told_apart(forced: tuple[World, str]) -> None:
    world, run = forced
    [other] = {path.name for path in world.runs.iterdir()} - {run}
    for words in (["report", other], ["show", other], ["trace", other]):
        ran = world.relay(*words)
        assert "shipped" in ran.out, ran
        assert "by hand" not in ran.out, ran
    assert [event["forced"] for event in world.relay("report", other, "--json").events] == [False]

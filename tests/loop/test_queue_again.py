"""Specs that are added again: what a person said of them stays, and no text is paid for twice unless they say so."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from relay import queue
from relay.host import clock
from relay.terms import Entry
from tests.loop import dusk
from tests.loop.dusk import items, queued, runs, went
from tests.loop.faults import through
from tests.loop.test_queue import ledger, order, why
from tests.world import Ran, World

NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)
LATER = "2027-01-01T00:00:00Z"


def _add(world: World, name: str, *options: str) -> Ran:
    """Queue one spec, as it reads now."""
    ran = world.inside("queue", "add", world.folder / "specs" / f"{name}.md", *options)
    through(ran)
    return ran


def _wishes(world: World, name: str) -> tuple[int, str | None, str | None]:
    """Return what a person said of an entry: its priority, what it comes after, and when it may begin."""
    [entry] = [one for one in queue.entries(ledger(world)) if Path(one.spec).stem == name]
    return entry.priority, entry.after and Path(entry.after).stem, entry.not_before


def _entry(world: World, name: str) -> Entry:
    return next(one for one in queue.entries(ledger(world)) if Path(one.spec).stem == name)


def _mended(world: World, name: str) -> None:
    """Change a word of a spec."""
    path = world.folder / "specs" / f"{name}.md"
    path.write_text(path.read_text() + "\nAnd more.\n")


def _shipped(world: World, name: str) -> str:
    """Let a night run a spec, and approve what came of it; return the run."""
    went(world.inside("nightly"))
    run = next(path.name for path in world.runs.glob(f"[0-9]*-{name}"))
    through(world.inside("approve", run))
    return run


def test_a_spec_whose_text_changed_keeps_what_was_said_of_it_when_it_is_added_again(world: World) -> None:
    queued(world, "One", "Two")
    _add(world, "two", "--after", str(world.folder / "specs" / "one.md"), "--not-before", LATER, "--priority", "7")
    _mended(world, "two")
    before = _entry(world, "two").sha256
    ran = _add(world, "two")
    assert _wishes(world, "two") == (7, "one", LATER)
    assert _entry(world, "two").sha256 != before
    first = world.folder / "specs" / "one.md"
    assert f"it keeps its place, with priority 7, after {first}, not before 2027-01-01 00:00 UTC" in ran.err
    _mended(world, "two")
    _add(world, "two", "--priority", "0")
    assert _wishes(world, "two") == (0, "one", LATER), "what is said anew counts, and nothing else is touched"


def test_what_is_said_of_a_spec_that_is_queued_with_this_very_text_holds_from_now_on(world: World) -> None:
    queued(world, "One", "Two")
    before = _entry(world, "two")
    ran = _add(world, "two", "--priority", "3")
    assert "with this very text; now with priority 3" in ran.err
    assert _wishes(world, "two") == (3, None, None)
    assert (_entry(world, "two").id, _entry(world, "two").added) == (before.id, before.added)
    ran = _add(world, "one", "--after", str(world.folder / "specs" / "two.md"))
    assert _wishes(world, "one") == (0, "two", None)
    assert "nothing was changed" in _add(world, "two", "--priority", "3").err
    circle = world.inside("queue", "add", world.folder / "specs" / "two.md", "--after", "specs/one.md")
    assert circle.code == 2
    assert _wishes(world, "two") == (3, None, None), "two that wait for each other would never be taken"


def test_a_spec_that_had_its_run_is_not_queued_and_the_run_is_named_with_how_it_stands(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    run = _shipped(world, "one")
    queued(world, "Two")
    ran = world.inside("queue", "add", *sorted((world.folder / "specs").glob("*.md")))
    through(ran)
    assert f"one.md: not queued: `{run}`, made from this very text, is shipped" in ran.err
    assert f"hint: relay queue add --again {world.folder / 'specs' / 'one.md'}" in ran.err
    assert order(world) == ["two"]
    went(world.inside("nightly"))
    assert runs(world) == ["one", "two"]


def test_a_copy_of_it_under_another_name_is_not_queued_either_and_the_json_says_so(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    went(world.inside("nightly"))
    copy = world.spec(dusk.task("One"), "copy.md")
    [event] = world.inside("queue", "add", copy, "--json").events
    run = next(path.name for path in world.runs.glob("[0-9]*"))
    assert (event["how"], event["id"], event["run"], event["outcome"]) == ("made", None, run, "accepted")
    assert order(world) == []


def test_it_is_queued_all_the_same_with_again_and_then_its_turn_comes_once(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    run = _shipped(world, "one")
    assert f"queued again: `{run}`, made from this very text, is shipped" in _add(world, "one", "--again").err
    assert (order(world), why(world, "one")) == (["one"], "")
    assert "nothing was changed" in _add(world, "one").err, "it stands there by the person's own wish"
    went(world.inside("nightly"))
    assert [did for did, _, _ in items(world)] == ["started"]
    assert len(runs(world)) == 2
    assert "not queued" in _add(world, "one").err


@pytest.mark.parametrize("act", ["reject", "stop"])
def test_what_a_person_refused_or_stopped_is_queued_anew_without_a_word(world: World, act: str) -> None:
    dusk.short(world, "exit 1")
    queued(world, "One")
    went(world.inside("nightly"))
    run = next(path.name for path in world.runs.glob("[0-9]*"))
    assert f"not queued: `{run}`, made from this very text, is needs-human" in _add(world, "one").err
    world.inside(act, run, *(("--close", "--why", "not so") if act == "reject" else ()))
    assert "one.md: queued\n" in _add(world, "one").err
    assert (order(world), why(world, "one")) == (["one"], "")


def test_a_spec_that_went_back_to_a_text_that_had_its_run_is_not_run_again_by_its_entry(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    run = _shipped(world, "one")
    first = (world.folder / "specs" / "one.md").read_text()
    _mended(world, "one")
    assert "one.md: queued" in _add(world, "one").err
    (world.folder / "specs" / "one.md").write_text(first)
    assert f"`{run}` was made from this very text already" in why(world, "one")
    ran = _add(world, "one")
    assert f"queued already; nothing was changed: `{run}`" in ran.err
    _add(world, "one", "--again")
    assert why(world, "one") == ""


@pytest.mark.parametrize("year", ["0001-01-02", "0500-01-01"])
def test_a_day_long_ago_keeps_no_spec_out_of_the_queue(world: World, year: str) -> None:
    queued(world, "One")
    with clock.fix(NOW):
        _add(world, "one", "--not-before", year)
        assert (order(world), why(world, "one")) == (["one"], "")
        assert _wishes(world, "one") == (0, None, f"{year}T00:00:00Z")

"""A queue as it is after years: odd names, files that are no entries, copies, circles, plans that are torn."""

import json
import os
from pathlib import Path

import pytest

from tests.loop import dusk
from tests.loop.dusk import items, newest, queued, runs, went
from tests.loop.faults import refused, through
from tests.loop.test_queue import add, ledger, order, why
from tests.world import SPEC, World

ODD = os.fsdecode(b"odd\xff.md")


def _entry(world: World, name: str) -> Path:
    """Return the file of the entry of a spec."""
    return next(path for path in ledger(world).queue.glob("[!.]*.json") if path.name.startswith(name))


def _listed(world: World, **specs: str) -> None:
    world.commit({f"tasks/{name}.md": SPEC.replace("Make", text) for name, text in specs.items()})
    world.save(phases=["implement"], queue="tasks/*.md")


@pytest.mark.parametrize("stamp", ["soon", "2026-12-01T00:00:00", ""])
def test_an_entry_with_a_time_that_nobody_can_read_ends_no_night(world: World, stamp: str) -> None:
    dusk.short(world)
    queued(world, "One", "Two")
    path = _entry(world, "one")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"not_before": stamp}))
    ran = world.inside("queue", "list")
    through(ran)
    assert "which is no stamp in UTC" in ran.err
    went(world.inside("nightly"))
    assert runs(world) == ["two"]


def test_a_copy_of_an_entry_is_no_second_run(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    path = _entry(world, "one")
    copy = path.with_name("copy.json")
    copy.write_bytes(path.read_bytes())
    assert order(world) == ["one"]
    assert "says that it is" in world.inside("queue", "list").err
    went(world.inside("nightly"))
    assert (runs(world), path.exists(), copy.exists()) == (["one"], False, True)


def test_a_name_that_is_not_utf_8_is_refused_with_what_to_do(world: World) -> None:
    path = world.spec(SPEC, ODD)
    refused(world.inside("queue", "add", path), 2, "is not UTF-8")
    assert order(world) == []


def test_a_listed_spec_whose_name_is_not_utf_8_is_skipped_and_ends_no_night(world: World) -> None:
    dusk.short(world)
    world.commit({f"tasks/{ODD}": SPEC, "tasks/two.md": SPEC.replace("Make", "Two")})
    world.save(phases=["implement"], queue="tasks/*.md")
    went(world.inside("nightly"))
    assert items(world) == [("skipped", "odd\\udcff", ""), ("started", "two", "accepted")]
    assert "not UTF-8" in newest(world)["items"][0]["reason"]


def test_a_listed_link_says_that_it_is_one(world: World) -> None:
    _listed(world, two="Two")
    (world.root / "tasks" / "link.md").symlink_to("two.md")
    world.git("add", "tasks/link.md")
    world.git("commit", "-q", "-m", "link")
    assert "is a link" in why(world, "link")
    assert why(world, "two") == ""


def test_a_listed_file_that_is_too_large_says_so(world: World) -> None:
    _listed(world, two="Two")
    world.commit({"tasks/large.md": SPEC + "x" * (1 << 20)})
    assert "the limit is" in why(world, "large")
    assert why(world, "two") == ""


def test_an_entry_may_come_after_a_listed_spec_that_had_no_run_yet(world: World) -> None:
    _listed(world, one="One")
    through(world.inside("queue", "add", world.spec(SPEC, "two.md"), "--after", world.root / "tasks" / "one.md"))
    assert why(world, "two") == "after `tasks/one.md`, which is queued"


def test_a_circle_is_refused_and_one_that_is_there_is_told(world: World) -> None:
    add(world, "one")
    add(world, "two", options=("--after", str(world.folder / "specs" / "one.md")))
    changed = world.spec(SPEC.replace("Make", "Changed"), "one.md")
    after = ("--after", str(world.folder / "specs" / "two.md"))
    refused(world.inside("queue", "add", changed, *after), 2, "would come after itself")
    assert why(world, "one") == ""
    path = _entry(world, "one")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"after": str(world.folder / "specs" / "two.md")}))
    assert "which comes after" in why(world, "one")
    went(world.inside("nightly", "--scheduled"))
    assert [item["outcome"] for item in newest(world)["items"]] == ["", ""]


def test_a_listed_spec_does_not_run_again_because_the_plan_of_its_run_is_torn(world: World) -> None:
    dusk.short(world)
    _listed(world, one="One")
    went(world.inside("nightly"))
    [plan] = world.runs.glob("*/plan.toml")
    plan.write_bytes(plan.read_bytes()[:20])
    went(world.inside("nightly"))
    assert len(list(world.runs.glob("[0-9]*"))) == 1
    assert order(world) == []


def test_a_file_where_the_queue_should_be_is_named(world: World) -> None:
    add(world, "one")
    for path in ledger(world).queue.iterdir():
        path.unlink()
    ledger(world).queue.rmdir()
    ledger(world).queue.write_text("mine\n")
    refused(world.inside("queue", "add", world.spec()), 2, str(ledger(world).queue), "cannot be made")
    through(world.inside("queue", "list"))

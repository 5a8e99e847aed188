"""The queue: plain files, read when they are added and again when their turn comes, each taken once."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from relay import queue
from relay.host import clock, repository
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from tests.loop.faults import refused, through, untouched
from tests.world import SPEC, World

NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)


def ledger(world: World) -> Ledger:
    return ledgers.at(repository.discover(world.root))


def add(world: World, *names: str, options: tuple[str, ...] = ()) -> None:
    """Write specs, each with a text of its own, and queue them."""
    paths = [world.spec(SPEC.replace("Make", name), f"{name}.md") for name in names]
    through(world.inside("queue", "add", *paths, *options))


def order(world: World) -> list[str]:
    """Return the names of the specs in the queue, as the list has them."""
    return [Path(line["spec"]).stem for line in world.inside("queue", "list", "--json").events]


def why(world: World, name: str) -> str:
    """Say why a spec would not be taken now."""
    lines = world.inside("queue", "list", "--json").events
    return next(str(line["blocked"]) for line in lines if Path(line["spec"]).stem == name)


def test_specs_are_taken_in_the_order_in_which_they_came_and_what_matters_more_before(world: World) -> None:
    with untouched(world):
        add(world, "one", "two")
        add(world, "urgent", options=("--priority", "5"))
        add(world, "three")
        assert order(world) == ["urgent", "one", "two", "three"]
    assert {path.stat().st_mode & 0o777 for path in ledger(world).queue.glob("*.json")} == {0o600}


@pytest.mark.parametrize(
    ("move", "after"),
    [
        (("three", "--first"), ["three", "urgent", "one", "two"]),
        (("urgent", "--last"), ["one", "two", "three", "urgent"]),
        (("three", "--before", "two"), ["urgent", "one", "three", "two"]),
        (("one", "--before", "urgent"), ["one", "urgent", "two", "three"]),
        (("urgent", "--before", "two"), ["one", "urgent", "two", "three"]),
    ],
)
def test_an_entry_goes_where_it_is_moved_whatever_its_priority_was(
    world: World, move: tuple[str, ...], after: list[str]
) -> None:
    add(world, "one", "two", "three")
    add(world, "urgent", options=("--priority", "5"))
    through(world.inside("queue", "move", *move))
    assert order(world) == after


def test_a_spec_is_not_doubled_and_keeps_its_place_when_its_text_changes(world: World) -> None:
    add(world, "one", "two")
    before = queue.entries(ledger(world))
    ran = world.inside("queue", "add", world.folder / "specs" / "one.md")
    through(ran)
    assert "queued already, with this very text" in ran.err
    assert queue.entries(ledger(world)) == before
    changed = world.spec("# Another\n\n## Acceptance\n\n- it is there: `test -e calc.py`\n", "one.md")
    ran = world.inside("queue", "add", changed)
    through(ran)
    assert "its text changed since" in ran.err
    after = queue.entries(ledger(world))
    assert [(one.id, one.place) for one in after] == [(one.id, one.place) for one in before]
    assert after[0].sha256 != before[0].sha256


def test_what_a_run_would_refuse_is_refused_when_it_is_added_and_then_none_of_them_is(world: World) -> None:
    good, bare = world.spec(), world.spec("# Do something\n", "bare.md")
    refused(world.inside("queue", "add", good, bare), 2, "names no criterion")
    refused(world.inside("queue", "add", good, world.folder / "nowhere.md"), 2, "there is no spec")
    refused(world.inside("queue", "add", good, "--not-before", "tonight"), 2, "`tonight` is not a time")
    refused(world.inside("queue", "add", good, "--after", "nobody"), 2, "`nobody` is neither a spec nor a run")
    refused(world.inside("queue", "add", good, "--after", good), 2, "after itself")
    assert order(world) == []


def test_entries_are_removed_by_name_by_spec_or_by_a_part_that_fits_only_one(world: World) -> None:
    add(world, "one", "two", "other")
    refused(world.inside("queue", "remove", "one", "o"), 2, "fits 3 entries")
    assert order(world) == ["one", "two", "other"]
    through(world.inside("queue", "remove", queue.entries(ledger(world))[0].id, str(world.folder / "specs/two.md")))
    assert order(world) == ["other"]
    refused(world.inside("queue", "remove", "one"), 2, "no entry `one`")
    refused(world.inside("queue", "move", "other"), 2, "--first, --before ENTRY or --last")


def test_the_list_says_why_a_spec_would_not_be_taken_now(world: World) -> None:
    with clock.fix(NOW):
        add(world, "late", options=("--not-before", "22:00"))
        add(world, "next", options=("--after", str(world.folder / "specs" / "late.md")))
        assert why(world, "late") == "not before 2026-11-29T22:00:00Z"
        assert why(world, "next") == f"after `{world.folder / 'specs' / 'late.md'}`, which is queued"
    with clock.fix(NOW.replace(hour=22)):
        assert why(world, "late") == ""
        through(world.inside("queue", "remove", "late"))
        assert "neither queued nor a run" in why(world, "next")


def test_an_entry_after_a_run_waits_until_that_is_shipped(world: World) -> None:
    through(world.inside("run", world.spec()))
    run = world.only_run()
    add(world, "next", options=("--after", run[7:]))
    assert why(world, "next") == f"after `{run}`, which is accepted"
    through(world.inside("approve", run))
    assert why(world, "next") == ""


LISTED = {"tasks/b.md": SPEC, "tasks/a.md": SPEC.replace("Make", "Please make"), "tasks/old/c.md": SPEC}


def test_relay_toml_lists_specs_of_the_base_commit_by_name_after_the_queue(world: World) -> None:
    world.commit(LISTED)
    world.save(base="main", queue="tasks/*.md")
    add(world, "one")
    assert order(world) == ["one", "a", "b"]
    world.save(base="main", queue=["tasks/b.md", "tasks/**/c.md"])
    assert order(world) == ["one", "b", "c"]
    world.git("switch", "-qc", "elsewhere")
    world.commit({"tasks/z.md": SPEC})
    (world.root / "tasks" / "b.md").unlink()
    assert order(world) == ["one", "b", "c"], "the branch that is checked out, and what it lost, count for nothing"


def test_a_listed_spec_that_had_its_run_comes_again_only_with_another_text(world: World) -> None:
    world.commit(LISTED)
    world.save(queue="tasks/*.md")
    through(world.inside("run", world.root / "tasks" / "a.md"))
    assert order(world) == ["b"]
    world.commit({"tasks/a.md": SPEC.replace("Make", "Do make")})
    run = world.only_run()
    assert why(world, "a") == f"its text changed, and `{run}` of the text before is accepted"
    assert world.inside("reject", run, "--close", "--why", "another text").code == 1
    assert (order(world), why(world, "a")) == (["a", "b"], "")


def test_a_listed_spec_that_no_run_would_take_says_so_and_hides_no_other(world: World) -> None:
    world.commit({"tasks/a.md": "# No criterion\n", "tasks/b.md": SPEC, "tasks/c.md": b"\xff\xfe"})
    world.save(queue="tasks/*.md")
    assert "names no criterion" in why(world, "a")
    assert why(world, "b") == ""
    assert "not UTF-8" in why(world, "c")


def test_a_spec_of_the_repository_is_queued_by_its_path_there_from_any_folder(world: World) -> None:
    world.commit({"tasks/a.md": SPEC})
    through(world.inside("queue", "add", "a.md", folder=world.root / "tasks"))
    world.git("worktree", "add", "-q", str(world.folder / "linked"))
    through(world.inside("queue", "add", "tasks/a.md", folder=world.folder / "linked"))
    specs = [entry.spec for entry in queue.entries(ledger(world))]
    assert specs == ["tasks/a.md", str(world.folder / "linked/tasks/a.md")]
    assert [queue.where(ledger(world), spec).is_file() for spec in specs] == [True, True]


def test_a_file_that_is_no_entry_is_named_and_hides_no_other(world: World) -> None:
    add(world, "one", "two")
    first, second = sorted(ledger(world).queue.glob("*.json"))
    first.write_bytes(first.read_bytes()[:40])
    ran = world.inside("queue", "list")
    through(ran)
    assert str(first) in ran.err
    assert second.stem in ran.out
    second.write_text(second.read_text().replace('"schema": 1', '"schema": 9'))
    assert "schema `9`" in world.inside("queue", "list").err


def test_two_who_add_at_the_same_moment_both_stand_in_the_queue(world: World) -> None:
    paths = [world.spec(SPEC.replace("Make", f"Task {n}"), f"task{n}.md") for n in range(4)]
    running = [world.start("queue", "add", path) for path in paths]
    for one in running:
        _, err = one.communicate()
        assert one.returncode == 0, err
    found = queue.entries(ledger(world))
    assert len({entry.place for entry in found}) == len(found) == len(paths)

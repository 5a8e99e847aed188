"""What a night is told as on the day after it: as it ended, beside it what became of it since, and when that is."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import msgspec
import pytest

from relay import alerts, nights, reaper
from relay.host import clock
from relay.record.ledger import Ledger
from relay.report import figures, page
from relay.terms import Item, Night
from tests.loop import dusk
from tests.loop.dusk import Bell, queued, went
from tests.loop.faults import stopped, through
from tests.report import breakfast
from tests.world import World

ASKS = {"reply": {"status": "blocked", "question": "Black pepper or white?"}}


def words(document: str) -> str:
    """Return what a reader sees, one blank between words."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", document.partition("<body>")[2])).split())


def night(world: World) -> Night:
    """Return the newest night."""
    found = nights.newest(breakfast.repo(world))
    assert found is not None
    return found


def named(world: World, spec: str) -> str:
    """Return the run of a spec."""
    return next(path.name for path in world.runs.iterdir() if path.name.endswith(f"-{spec}"))


@pytest.fixture
def after(world: World) -> World:
    """Return a world whose night left one run accepted and another one asking."""
    dusk.short(world)
    queued(world, "One")
    went(world.inside("nightly"))
    world.script("asks", ASKS, ASKS, phase="implement", vendor="north")
    world.save(phases=["implement"])
    queued(world, "Two")
    return world


def test_a_night_is_told_as_it_ended_and_beside_it_what_a_person_did_since(after: World) -> None:
    went(after.inside("nightly"))
    first = nights.every(breakfast.repo(after))[0]
    assert "now" not in after.inside("report", "--night", first.id).out.splitlines()[0]
    through(after.inside("approve", named(after, "one")))
    ran = after.inside("report", "--night", first.id)
    assert ran.out.startswith("at its end 1 accepted; now 1 shipped\n"), ran
    [row] = [line for line in ran.out.splitlines() if line.startswith(named(after, "one"))]
    assert "  accepted  " in row
    assert row.endswith("now shipped into main")
    [said] = [line for line in ran.out.splitlines() if line.startswith("This is how the night ended; ")]
    seen = words(page.night(breakfast.repo(after), first))
    assert said.rpartition(":")[0].rpartition(",")[0] in seen, "the day on which it is told"
    assert "At its end 1 accepted; now 1 shipped" in seen


def test_a_run_that_took_more_legs_since_has_the_time_and_the_score_of_the_night(after: World) -> None:
    went(after.inside("nightly"))
    told, two = night(after), named(after, "two")
    through(after.inside("answer", two, "white"))
    stopped(after.inside("resume", two), 4)
    before = clock.stamp(clock.parse(told.started) - timedelta(seconds=1))
    more = msgspec.structs.replace(told, ended=before, items=(told.items[-1],))
    assert more.items[0].run == two
    nights.write(breakfast.repo(after), msgspec.structs.replace(more, items=(later(more.items[0]),)))
    [row, *_] = [line for line in after.inside("report").out.splitlines() if line.startswith(two)]
    assert "  needs-human  -      $0.00  1 h 01 min  now: the agent asks" in row


def later(item: Item) -> Item:
    """Return a line of a night's record with a time of its own."""
    return msgspec.structs.replace(item, seconds=3660.0)


def test_what_was_passed_over_is_told_as_of_then(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    one = world.folder / "specs" / "one.md"
    through(world.inside("queue", "add", world.spec(dusk.task("Two"), "two.md"), "--after", one))
    went(world.inside("nightly"))
    why = f"after `{world.only_run()}`, which is accepted"
    assert f"not run: {world.folder / 'specs' / 'two.md'}: {why}" in world.inside("report").out
    assert "<h2>Not run</h2>" in page.night(*_newest(world))
    through(world.inside("approve"))
    assert f"not run then: {world.folder / 'specs' / 'two.md'}: {why}" in world.inside("report").out
    assert "<h2>Not run then</h2>" in page.night(*_newest(world))


def test_an_empty_night_tells_what_waits_from_before_as_the_night_before_told_it(after: World, tmp_path: Path) -> None:
    went(after.inside("nightly"))
    full = after.inside("report").out.splitlines()
    two = named(after, "two")
    item = [f"{two} needs you: Two", "  the agent asks: Black pepper or white?", f"  relay answer {two} TEXT"]
    assert "\n".join(item) in "\n".join(full)
    bell = Bell(tmp_path)
    went(after.inside("nightly"))
    empty = after.inside("report").out
    for said, at in ((empty, ""), (bell.text, f"-C {after.root} ")):
        assert "\n".join(item).replace("relay ", f"relay {at}") in said
        assert f"{named(after, 'one')} accepted: One\n  relay {at}approve {named(after, 'one')}\n" in said
    [waiting] = re.findall(r"<h2>Waiting from before</h2>.*?</section>", page.night(*_newest(after)), re.DOTALL)
    for part in ("<blockquote>Black pepper or white?", "needs you: the agent asks", f"answer {two} TEXT", "reject"):
        assert part in waiting
    events = [event for event in after.inside("report", "--json").events if event["type"] == "waiting"]
    assert [event["question"] for event in events] == ["Black pepper or white?", ""]


def _newest(world: World) -> tuple[Ledger, Night]:
    return breakfast.repo(world), night(world)


def test_the_end_of_a_night_pairs_each_run_with_its_question_and_one_command(after: World) -> None:
    ran = went(after.inside("nightly"))
    two = named(after, "two")
    at = ran.out.splitlines().index(next(line for line in ran.out.splitlines() if line.startswith("needs-human  ")))
    assert ran.out.splitlines()[at].endswith("the agent asks")
    assert ran.out.splitlines()[at + 1 : at + 3] == ["    Black pepper or white?", f"    relay answer {two} TEXT"]
    [event] = [one for one in after.inside("nightly", "--json").events if one["type"] == "night"]
    assert event["ended_by"] == "done"


def test_the_numbers_of_a_night_add_up(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    one = world.folder / "specs" / "one.md"
    through(world.inside("queue", "add", world.spec(dusk.task("Two"), "two.md"), "--after", one))
    ran = went(world.inside("nightly"))
    assert "1 run: 1 accepted; 1 not run" in ran.out, ran


def test_what_is_raised_about_a_run_is_a_remark_on_it_and_goes_when_it_is_shipped(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    went(world.inside("nightly"))
    run, ledger = world.only_run(), breakfast.repo(world)
    with clock.fix(clock.parse("2099-01-01T00:00:00Z")):
        [alert] = reaper.reap(ledger)
    told = world.inside("report").out
    assert told.count(f"relay approve {run}") == 1, told
    assert f"  {figures.local(alert.what, 'UTC')}\n  relay approve {run}\n" in told
    document = page.night(*_newest(world))
    assert document.count("<li>\n<p>") == 1, "one item, not two"
    assert document.count(f"approve {run}</code>") == 1
    assert '<p class="remark">' in document
    through(world.inside("approve", run))
    assert [one.key for one in alerts.all(ledger)] == [alert.key], "no pass of the reaper came since"
    assert "waits since" not in world.inside("report").out

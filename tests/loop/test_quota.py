"""Quota is used up: the run waits until it is there again, and goes on by itself no sooner."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from relay.host import clock
from tests.loop.faults import stopped, through
from tests.world import FIXED, World

NIGHT = datetime(2026, 11, 29, 2, 30, tzinfo=UTC)
UNTIL = "2026-11-29T06:00:00Z"
TOLD = "quota is used up until 2026-11-29 06:00 UTC"
"""How a person is told that, where the zone is this one."""


def limited(folder: Path, *endings: dict[str, object]) -> World:
    """Make a world whose implementer changes something, ends like this, and works when it is asked once more."""
    world = World.simple(folder)
    world.script("implementer", *endings, phase="implement", vendor="north")
    world.save()
    return world


def ended(**how: object) -> dict[str, object]:
    return {"write": {"calc.py": "half done\n"}, "ended_by": "quota", **how}


def works(world: World) -> None:
    """Let the implementer have quota again."""
    done = {"write": {"calc.py": FIXED}, "reply": {"status": "done"}}
    world.script("implementer", done, phase="implement", vendor="north")


def test_a_run_waits_for_the_reset_and_goes_on_after_it_from_where_it_was(tmp_path: Path) -> None:
    world = limited(tmp_path, ended(until=UNTIL))
    with clock.fix(NIGHT):
        ran = world.inside("run", world.spec())
        stopped(ran, 5, "waiting", TOLD, f"relay resume {world.only_run()}")
    [line] = world.inside("status", "--json").events
    assert (line["outcome"], line["needs"]) == ("waiting", f"quota until {UNTIL}")
    works(world)
    with clock.fix(datetime(2026, 11, 29, 5, 59, 59, tzinfo=UTC)):
        stopped(world.inside("resume"), 5, TOLD)
    assert [leg.name for leg in world.legs()] == ["01-implement"], "a look at the clock leaves no trace"
    with clock.fix(datetime(2026, 11, 29, 6, 0, tzinfo=UTC)):
        through(world.inside("resume"))
    assert [leg.name for leg in world.legs()] == ["01-implement", "02-implement", "03-review", "04-acceptance"]
    first, second, *_ = world.receipts()
    assert (first["ended_by"], first["until"], first["note_sha256"] is None) == ("quota", UNTIL, False)
    cut = world.git("rev-parse", f"refs/relay/{world.only_run()}/01-implement.cut")
    assert (first["head"], second["start"]) == (cut, cut), (
        "what was done by then is kept, and the next leg starts there"
    )
    assert world.show(cut, "calc.py") == "half done\n"


def test_a_reset_that_is_not_said_not_a_time_or_over_makes_no_loop(tmp_path: Path) -> None:
    for number, until in enumerate([None, "tomorrow", "2026-11-29T02:29:00Z", "2026-11-29T02:30:00Z"]):
        world = limited(tmp_path / str(number), ended(**({} if until is None else {"until": until})))
        with clock.fix(NIGHT):
            stopped(world.inside("run", world.spec()), 5, "waiting", "quota is used up until")
            assert len(world.legs()) == 1, until
            stopped(world.inside("resume"), 5, "waiting")
            assert len(world.legs()) == 1, until
        works(world)
        with clock.fix(NIGHT + timedelta(hours=1)):
            through(world.inside("resume"))


def test_a_judge_without_quota_waits_too_and_its_silence_approves_nothing(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.script("review-judge", {"ended_by": "quota", "until": UNTIL}, phase="review", vendor="south")
    world.save()
    with clock.fix(NIGHT):
        stopped(world.inside("run", world.spec()), 5, TOLD)
        assert world.receipts()[1]["verdict"] == "inconclusive"
        stopped(world.inside("approve"), 5, "not accepted", "waiting")
        through(world.inside("stop"))
        stopped(world.inside("resume"), 5, TOLD)
    world.script("review-judge", {"reply": {"verdict": "approve"}}, phase="review", vendor="south")
    with clock.fix(NIGHT + timedelta(hours=4)):
        through(world.inside("resume"))
    assert [leg.name for leg in world.legs()][2:] == ["03-stop", "04-go", "05-review", "06-acceptance"]

"""What only a person can settle is raised once, with the command that settles it, and cleared when it is settled."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from relay import alerts as kept
from relay import nights, reaper
from relay.host import clock, lock, repository
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Nightly
from tests.loop.faults import through
from tests.reaper.scenes import again, alerts, command, reap, repaired, standing, with_a_worktree_kept
from tests.world import BROKEN, SPEC, World

LATER = clock.parse("2099-01-01T00:00:00Z")


@pytest.fixture
def asked(world: World) -> World:
    """Return a world whose run waits for a person's approval."""
    through(world.relay("run", world.spec()))
    return world


def _ledger(world: World) -> Ledger:
    return ledgers.at(repository.discover(world.root))


def _queued(world: World, *options: str | Path) -> None:
    through(world.relay("queue", "add", *options))


def test_a_run_that_waits_longer_than_it_may_is_raised_once(asked: World) -> None:
    run = asked.only_run()
    assert reaper.reap(_ledger(asked)) == ()
    with clock.fix(LATER):
        [alert] = reaper.reap(_ledger(asked))
        assert (alert.kind, alert.run, alert.command) == ("waiting", run, f"relay approve {run}")
        assert alert.what.startswith(f"{run} is accepted and waits since ")
        assert reaper.reap(_ledger(asked)) == ()
        assert kept.all(_ledger(asked)) == (alert,)
        through(asked.relay("approve", run))
        assert reaper.reap(_ledger(asked)) == ()
        assert kept.all(_ledger(asked)) == ()


def test_days_to_wait_are_those_of_relay_toml(asked: World) -> None:
    asked.save(reap={"wait_days": 0.0000001})
    clock.pause(1.1)
    assert "waiting" in alerts(reap(asked))


def test_a_base_that_moved_on_elsewhere_is_no_alert_whoever_moved_it(asked: World) -> None:
    asked.commit({"news.txt": "1\n"})
    again(asked)
    first = asked.only_run()
    asked.implementer({"other.txt": "2\n"})
    other = SPEC.replace("grep -q 'return a + b' calc.py", "test -e other.txt")
    through(asked.relay("run", asked.spec(other, name="other.md")))
    through(asked.relay("approve", first))
    again(asked)
    assert standing(asked) == []


def test_a_base_that_changed_what_a_run_changes_is_raised_once_and_settled_by_the_rebase(asked: World) -> None:
    run, base = asked.only_run(), asked.git("rev-parse", "main")
    asked.commit({"calc.py": f"# mine\n{BROKEN}", "news.txt": "1\n"})
    [alert] = reaper.reap(_ledger(asked))
    assert (alert.kind, alert.run, alert.command) == ("moved", run, f"relay approve {run}")
    said = f"`main` changed `calc.py` since `{base[:12]}`, which the notes of {run} are about; the run changes it too"
    assert alert.what == said
    asked.commit({"calc.py": f"# mine, again\n{BROKEN}"})
    again(asked)
    asked.relay("approve")
    assert "rebase" in {receipt.get("act") for receipt in asked.receipts()}
    reap(asked)
    assert standing(asked) == []


def test_a_receipt_whose_commit_is_gone_is_raised(asked: World) -> None:
    head = asked.receipts()[0]["head"]
    path = asked.root / ".git" / "objects" / head[:2] / head[2:]
    path.rename(asked.folder / "lost")
    events = reap(asked)
    assert alerts(events) == ["commit"]
    assert command(events, "commit") == f"relay verify {asked.only_run()}"
    again(asked)
    (asked.folder / "lost").rename(path)
    reap(asked)
    assert standing(asked) == []


def test_a_run_that_cannot_be_read_is_raised_and_hides_no_other(asked: World) -> None:
    first = asked.only_run()
    through(asked.relay("run", asked.spec(name="other.md")))
    receipt = asked.runs / first / "legs" / "01-implement" / "receipt.json"
    receipt.write_bytes(receipt.read_bytes() + b"x")
    asked.commit({"calc.py": f"# mine\n{BROKEN}"})
    assert alerts(reap(asked)) == ["moved", "run"]
    again(asked)


def test_an_entry_of_the_queue_that_points_nowhere_is_raised(world: World) -> None:
    spec = world.spec()
    _queued(world, spec)
    world.spec(name="second.md")
    _queued(world, world.folder / "specs" / "second.md", "--after", spec)
    again(world)
    spec.rename(world.folder / "away.md")
    events = reap(world)
    assert alerts(events) == ["queue"]
    through(world.relay(*command(events, "queue").split()[1:]))
    assert [f"queued after `{spec}`" in event["what"] for event in reap(world)] == [True]
    [left] = [path for path in _ledger(world).queue.glob("[!.]*.json") if path.name != "lock.json"]
    left.write_text("half")
    assert [f"rm {left}" == event["command"] for event in reap(world)] == [True]
    left.unlink()
    reap(world)
    assert standing(world) == []


def test_a_night_that_was_killed_is_recorded_as_that(world: World) -> None:
    ledger = _ledger(world)
    night = nights.begin(ledger, Nightly(), scheduled=True)
    path = ledger.nights / f"{night.id}.json"
    with nights.hold(ledger):
        again(world)
        found: dict[str, Any] = json.loads(path.read_bytes())
        assert found["ended"] is None
    assert repaired(reap(world)) == ["night"]
    assert json.loads(path.read_bytes())["ended_by"] == "signal"
    again(world)


def test_a_relay_toml_that_is_refused_does_not_keep_the_reaper_from_its_work(asked: World) -> None:
    asked.write({"relay.toml": "nonsense = ["})
    shutil.rmtree(asked.runs / asked.only_run())
    assert alerts(reap(asked)) == ["branch", "ref"]
    again(asked)


def test_a_run_that_is_held_keeps_its_own_alerts_and_not_those_of_a_run_whose_name_begins_alike(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path, beside="found.local")
    other = place.parent.with_name(f"{place.parent.name}-2") / "note.txt"
    other.parent.mkdir()
    other.write_text("mine\n")
    assert alerts(reap(world)) == ["worktree", "worktree"]
    other.unlink()
    with lock.hold(_ledger(world).run_lock(world.only_run()), "a test"):
        reap(world)
        assert [str(place) in alert.key for alert in kept.all(_ledger(world))] == [True]
        again(world)


def test_where_relay_never_ran_nothing_is_found_and_nothing_is_made(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    again(world)
    assert not (world.root / ".git" / "relay").exists()

"""A night that begins too late is skipped where that is wanted, by what was installed, else by relay.toml."""

from datetime import UTC, timedelta

import msgspec
import pytest

from relay.host import clock, repository
from relay.record import ledger as ledgers
from relay.schedule import installed, zones
from relay.schedule.installed import Installed
from relay.schedule.job import Job
from tests.loop import dusk
from tests.loop.dusk import newest, queued, runs, went
from tests.world import World


@pytest.mark.parametrize(("hours", "missed"), [(2, True), (1, False)], ids=["too late", "late"])
def test_a_night_that_the_machine_slept_through_is_skipped_where_that_is_wanted(
    world: World, hours: int, *, missed: bool
) -> None:
    dusk.short(world)
    due = clock.now().astimezone(zones.machine()) - timedelta(hours=hours)
    for wanted in ("skip", "once"):
        world.save(phases=["implement"], schedule={"at": f"{due.minute} {due.hour} * * *", "missed": wanted})
        queued(world, f"Task {wanted}")
        went(world.inside("nightly", "--scheduled"))
        skipped = missed and wanted == "skip"
        assert newest(world)["ended_by"] == ("missed" if skipped else "done")
        assert bool(runs(world)) is not skipped
    went(world.inside("nightly"))
    assert len(runs(world)) == 2


def test_what_was_installed_says_when_a_night_was_due_and_relay_toml_no_more(world: World) -> None:
    dusk.short(world)
    world.save(phases=["implement"], schedule={"at": "* * * * *", "missed": "once"})
    queued(world, "Task")
    ledger = ledgers.at(repository.discover(world.root))
    due = (clock.now() - timedelta(hours=3)).astimezone(UTC)
    job = Job(
        name="relay-nightly-project",
        key="12345678",
        project="project",
        folder=str(world.root),
        bare=False,
        command=("relay", "nightly", "--scheduled"),
        env={},
        env_file="env",
        log="log",
        at=f"{due.minute} {due.hour} * * *",
        zone="UTC",
        missed="skip",
        hours=6,
    )
    found = Installed(method="cron", job=job, installed=clock.stamp(), files={})
    installed.write(ledger, found)
    went(world.inside("nightly", "--scheduled"))
    assert newest(world)["ended_by"] == "missed"
    installed.write(ledger, msgspec.structs.replace(found, job=msgspec.structs.replace(job, missed="once")))
    went(world.inside("nightly", "--scheduled"))
    assert newest(world)["ended_by"] == "done"


def test_a_night_that_begins_after_the_hour_at_which_it_ends_does_not_go_on_until_the_next_one(world: World) -> None:
    dusk.short(world)
    here = clock.now().astimezone(zones.machine())
    due, ends = here - timedelta(hours=4), here - timedelta(minutes=30)
    at, until = f"{due.minute} {due.hour} * * *", f"{ends:%H:%M}"
    world.save(phases=["implement"], schedule={"at": at}, nightly={"until": until})
    queued(world, "Task")
    went(world.inside("nightly", "--scheduled"))
    assert (newest(world)["ended_by"], runs(world)) == ("until", [])
    assert [item["did"] for item in newest(world)["items"]] == ["skipped"]
    went(world.inside("nightly"))
    assert len(runs(world)) == 1, "by hand, the hour is the next one"

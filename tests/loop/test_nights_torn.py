"""A record of a night that cannot be read: it is said which, and no night is accused that may have been."""

from datetime import timedelta
from pathlib import Path

import pytest

from relay import nights
from relay.errors import Exit
from relay.host import clock
from relay.record.ledger import Ledger
from relay.schedule import installed
from relay.schedule.installed import Installed
from relay.terms import Nightly
from tests.loop import dusk
from tests.loop.dusk import newest, queued, went
from tests.loop.faults import refused
from tests.loop.test_queue import ledger
from tests.schedule import records
from tests.world import World


def torn(path: Path) -> None:
    """Cut a record as a disk does that was switched off."""
    path.write_bytes(path.read_bytes()[:300])


def scheduled(here: Ledger) -> None:
    """Let a night be due every day since three days ago."""
    since = clock.stamp(clock.now() - timedelta(days=3))
    job = records.job(here.root, "relay", zone="UTC")
    installed.write(here, Installed(method="cron", job=job, installed=since, files={}))


@pytest.fixture
def after(world: World) -> Path:
    """Return the torn record of the night that a world has behind it."""
    dusk.short(world)
    queued(world, "One")
    went(world.inside("nightly", "--scheduled"))
    path = ledger(world).nights / f"{newest(world)['id']}.json"
    torn(path)
    scheduled(ledger(world))
    return path


@pytest.mark.parametrize("verb", [["status"], ["schedule", "status"]])
def test_no_night_is_said_not_to_have_run_whose_record_cannot_be_read(
    world: World, after: Path, verb: list[str]
) -> None:
    ran = world.inside(*verb)
    said = ran.out + ran.err
    assert "did not run" not in said, ran
    assert f"the record of a night cannot be read: `{after}`" in said


def test_a_report_says_what_it_cannot_read_and_what_it_is_about_instead(world: World, after: Path) -> None:
    ran = world.inside("report")
    assert f"the record of a night cannot be read: `{after}`" in ran.err, ran
    assert "this is about the newest run" in ran.err
    refused(world.inside("report", "--night"), Exit.GATE, f"cannot be read: `{after}`")
    refused(world.inside("report", "--night", after.stem), Exit.GATE, f"`{after}`", "its page is there still: open ")


def test_a_damaged_night_is_not_taken_for_another_one_whose_name_is_longer(world: World, after: Path) -> None:
    here = ledger(world)
    other = nights.begin(here, Nightly(), scheduled=False)
    (here.nights / f"{other.id}.json").rename(here.nights / f"{after.stem}-9.json")
    path = here.nights / f"{after.stem}-9.json"
    path.write_text(path.read_text().replace(f'"{other.id}"', f'"{after.stem}-9"'))
    refused(world.inside("report", "--night", after.stem), Exit.GATE, f"cannot be read: `{after}`")
    went(world.inside("report", "--night", f"{after.stem}-9"))


def test_a_record_that_is_torn_from_long_ago_excuses_no_night_now(world: World, after: Path) -> None:
    after.rename(after.with_name("260101-0417.json"))
    assert "last night did not run" in world.inside("status").err

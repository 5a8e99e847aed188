"""Last night did not run: said once it is certain, and of no night that was not due."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from relay.errors import RelayError
from relay.host import clock, files, repository
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.schedule import installed
from relay.schedule.installed import Installed
from relay.terms import Night
from tests.schedule import records
from tests.world import World

DAY = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
MORNING = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


@pytest.fixture
def here(world: World) -> Ledger:
    """Return a ledger without a schedule."""
    ledger = ledgers.at(repository.discover(world.root))
    ledgers.prepare(ledger)
    return ledger


def _install(ledger: Ledger, *, method: str = "cron", since: datetime = DAY, **more: object) -> None:
    job = records.job(ledger.root, "relay", **{"zone": "UTC", **more})
    found = {"method": method, "job": job, "installed": clock.stamp(since), "files": {}}
    installed.write(ledger, msgspec.convert(msgspec.to_builtins(found), Installed))


def _night(ledger: Ledger, started: datetime, **more: object) -> None:
    night = msgspec.convert({"id": f"{started:%y%m%d-%H%M}", "started": clock.stamp(started), **more}, Night)
    ledger.nights.mkdir(exist_ok=True)
    (ledger.nights / f"{night.id}.json").write_bytes(msgspec.json.encode(night))


def test_without_a_schedule_nothing_was_missed(here: Ledger) -> None:
    assert installed.missed(here, MORNING) is None


def test_a_night_that_was_due_and_has_no_record_is_said(here: Ledger) -> None:
    _install(here)
    assert installed.missed(here, MORNING) == "last night did not run: due 2026-11-30 04:17"


def test_a_night_that_ran_is_not_said_not_even_when_it_was_killed(here: Ledger) -> None:
    _install(here)
    _night(here, MORNING.replace(hour=4, minute=26))
    assert installed.missed(here, MORNING) is None


def test_a_night_that_another_held_off_ran_and_one_that_came_too_late_did_not(here: Ledger) -> None:
    _install(here)
    _night(here, MORNING.replace(hour=7), ended_by="missed")
    assert installed.missed(here, MORNING) is not None
    _night(here, MORNING.replace(hour=4, minute=17), ended_by="held")
    assert installed.missed(here, MORNING) is None


def test_the_night_before_does_not_count_for_this_one(here: Ledger) -> None:
    _install(here, since=DAY - timedelta(days=3))
    _night(here, DAY.replace(hour=4, minute=17))
    assert installed.missed(here, MORNING) is not None
    assert installed.missed(here, MORNING - timedelta(hours=12)) is None


def test_what_was_due_before_it_was_installed_is_nobodys_fault(here: Ledger) -> None:
    _install(here, since=MORNING.replace(hour=6))
    assert installed.missed(here, MORNING) is None


def test_a_night_has_a_quarter_of_an_hour_to_begin(here: Ledger) -> None:
    _install(here)
    at = MORNING.replace(hour=4, minute=17)
    assert installed.missed(here, at + installed.GRACE - timedelta(seconds=1)) is None
    assert installed.missed(here, at + installed.GRACE) is not None


def test_it_is_said_in_the_zone_of_the_schedule(here: Ledger) -> None:
    _install(here, method="systemd", zone="Europe/Berlin")
    assert installed.missed(here, MORNING) == "last night did not run: due 2026-11-30 04:17"
    assert installed.missed(here, MORNING.replace(hour=3, minute=31)) is None
    assert installed.missed(here, MORNING.replace(hour=3, minute=32)) is not None


def test_systemd_is_not_blamed_for_a_time_that_was_not_there(here: Ledger) -> None:
    morning, since = datetime(2027, 3, 28, 8, tzinfo=UTC), datetime(2027, 3, 27, 8, tzinfo=UTC)
    _install(here, method="systemd", since=since, at="30 2 * * *", zone="Europe/Berlin")
    assert installed.missed(here, morning) is None
    _install(here, method="cron", since=since, at="30 2 * * *", zone="Europe/Berlin")
    assert installed.missed(here, morning) == "last night did not run: due 2027-03-28 03:00"


def test_nothing_is_known_here_of_nights_on_other_machines(here: Ledger) -> None:
    _install(here, method="actions")
    assert installed.missed(here, MORNING) is None


def test_a_clock_that_was_put_back_blames_nobody(here: Ledger) -> None:
    _install(here)
    _night(here, MORNING.replace(hour=4, minute=17))
    assert installed.missed(here, DAY - timedelta(days=400)) is None


@pytest.mark.parametrize("data", [b"", b"{", b'{"schema": 1}', b'{"schema": 7, "method": "at"}'])
def test_a_record_that_cannot_be_read_is_an_error_that_names_it(here: Ledger, data: bytes) -> None:
    (here.root / "schedule.json").write_bytes(data)
    with pytest.raises(RelayError, match=r"schedule\.json") as refused:
        installed.read(here)
    assert refused.value.hint
    assert installed.missed(here, MORNING) == refused.value.message


def test_a_file_is_whole_edited_or_gone(here: Ledger, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("whole", "edited", "gone")]
    for path in paths:
        path.write_text("as written")
    _install(here)
    found = installed.read(here)
    assert found is not None
    found = msgspec.structs.replace(found, files={str(path): files.sha256(b"as written") for path in paths})
    paths[1].write_text("otherwise")
    paths[2].unlink()
    assert [state for _, state in installed.states(found)] == ["whole", "edited", "gone"]

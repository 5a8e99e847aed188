"""A cron line is read in one way only, and is due when Debian's cron has it so, over every change of the clock."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from relay.errors import RelayError
from relay.schedule import due, zones

BERLIN = ZoneInfo("Europe/Berlin")
GAP = datetime(2027, 3, 28, tzinfo=BERLIN)
FOLD = datetime(2027, 10, 31, tzinfo=BERLIN)


def _said(moments: list[datetime]) -> list[str]:
    return [f"{moment:%m-%d %H:%M%z}" for moment in moments]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("17 4 * * *", "17 4 * * *"),
        ("  17   4 * * *  ", "17 4 * * *"),
        ("02:30", "30 2 * * *"),
        ("7:05", "5 7 * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@Hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@annually", "0 0 1 1 *"),
        ("@yearly", "0 0 1 1 *"),
        ("0 4 * jan,Jul mon-FRI", "0 4 * 1,7 1-5"),
        ("5/15 4 * * *", "5-59/15 4 * * *"),
        ("*/20 1-5/2 1,15 * 7", "*/20 1-5/2 1,15 * 7"),
    ],
)
def test_what_a_person_writes_becomes_five_fields_of_numbers(text: str, line: str) -> None:
    assert due.read(text).text == line


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 17 4 * * *", "has 6 fields"),
        ("17 4 * *", "has 4 fields"),
        ("", "has 0 fields"),
        ("@reboot", "not a name of a time"),
        ("24:00", "has 1 fields"),
        ("60 4 * * *", "bad minute"),
        ("0 24 * * *", "bad hour"),
        ("0 3 * * 5-1", "bad day-of-week"),
        ("*/0 4 * * *", "bad minute"),
        ("0 3 31 2 *", "bad day-of-month"),
        ("0 4 L * *", "not a day of the month"),
        ("0 4 * * MON#2", "not a day of the week"),
        ("0 4 * * MON-", "not a day of the week"),
        ("0 4 mon * *", "not a day of the month"),
        ("0 *-4 * * *", "not a hour"),
        ("٣ 4 * * *", "not a minute"),
    ],
)
def test_what_schedulers_would_read_differently_is_refused(text: str, problem: str) -> None:
    with pytest.raises(RelayError, match=problem) as refused:
        due.read(text)
    assert refused.value.hint


def test_a_time_in_the_gap_is_due_when_it_ends_or_with_systemd_the_next_day() -> None:
    line, noon = due.read("02:30"), GAP - timedelta(hours=12)
    assert _said(due.coming(line, noon, 2)) == ["03-28 03:00+0200", "03-29 02:30+0200"]
    assert _said(due.coming(line, noon, 1, skips=True)) == ["03-29 02:30+0200"]
    evening = GAP.replace(hour=20)
    assert due.last(line, evening) == datetime(2027, 3, 28, 3, 0, tzinfo=BERLIN)
    assert due.last(line, evening, skips=True) == datetime(2027, 3, 27, 2, 30, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("name", "text", "date", "times"),
    [
        ("Antarctica/Troll", "0 2-3 * * *", "2027-03-28", []),
        ("Antarctica/Troll", "0 2-4 * * *", "2027-03-28", ["02:00"]),
        ("Africa/Casablanca", "0 2-3 * * *", "2027-03-14", []),
        ("Africa/Casablanca", "0 1-3 * * *", "2027-03-14", ["01:00", "02:00"]),
        ("Europe/Dublin", "0 1-3 * * *", "2027-03-28", []),
        ("Europe/Berlin", "0 2-3 * * *", "2027-03-28", ["01:00"]),
        ("Australia/Lord_Howe", "17,45 2 * * *", "2027-10-02", ["15:45"]),
    ],
)
def test_behind_a_gap_systemd_leaves_out_what_was_counted_with_it(
    name: str, text: str, date: str, times: list[str]
) -> None:
    line, zone, start = due.read(text), ZoneInfo(name), datetime.fromisoformat(f"{date}T00:00:00+00:00")
    end = start + timedelta(hours=20)
    found = due.coming(line, start.astimezone(zone), 12, skips=True)
    assert [f"{one.astimezone(UTC):%H:%M}" for one in found if one < end] == times
    last = due.last(line, end.astimezone(zone), skips=True)
    assert last is not None
    assert ([f"{last.astimezone(UTC):%H:%M}"] if last > start else []) == times[-1:]


def test_a_time_in_the_fold_is_due_once_and_is_past_in_the_second_hour() -> None:
    line = due.read("02:30")
    assert _said(due.coming(line, FOLD, 2)) == ["10-31 02:30+0200", "11-01 02:30+0100"]
    second = datetime(2027, 10, 31, 2, 15, fold=1, tzinfo=BERLIN)
    assert _said(due.coming(line, second, 1)) == ["11-01 02:30+0100"]
    past = due.last(line, second)
    assert past is not None
    assert _said([past]) == ["10-31 02:30+0200"]


def test_leap_days_and_midnights_are_met() -> None:
    leap = due.coming(due.read("0 0 29 2 *"), datetime(2026, 11, 30, tzinfo=UTC), 2)
    assert [moment.year for moment in leap] == [2028, 2032]
    before = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert due.coming(due.read("@midnight"), before) == [datetime(2027, 1, 1, tzinfo=UTC)]
    assert due.last(due.read("@midnight"), before + timedelta(seconds=1)) == datetime(2027, 1, 1, tzinfo=UTC)


def test_a_day_that_may_match_either_field_is_due_on_both() -> None:
    line = due.read("0 4 13 * fri")
    assert line.either
    days = due.coming(line, datetime(2026, 12, 1, tzinfo=UTC), 4)
    assert [day.day for day in days] == [4, 11, 13, 18]
    assert not due.read("0 4 */2 * fri").either


def _counted(zone: ZoneInfo, minutes: list[datetime], hour: int, minute: int) -> list[datetime]:
    """Find the moments when the wall shows a time, as systemd has it: the first of two, and none in a gap."""
    found: dict[str, datetime] = {}
    for moment in minutes:
        wall = moment.astimezone(zone)
        if (wall.hour, wall.minute) == (hour, minute):
            found.setdefault(f"{wall:%F}", moment)
    return list(found.values())


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_counted_minute_by_minute_it_is_due_when_said(name: str) -> None:
    zone, dice = ZoneInfo(name), random.Random(name)  # noqa: S311 - any times will do
    changes = [change.low.replace(tzinfo=zone) for change in zones.changes(zone, datetime(2026, 11, 30, tzinfo=UTC))]
    for around in changes[:2] or [datetime(2027, 1, 1, tzinfo=zone)]:
        start = around.astimezone(UTC).replace(minute=0) - timedelta(hours=30)
        minutes = [start + timedelta(minutes=count) for count in range(60 * 60)]
        for _ in range(5):
            hour, minute = dice.randrange(5), dice.randrange(60)
            line, expected = due.read(f"{minute} {hour} * * *"), _counted(zone, minutes, hour, minute)
            found = due.coming(line, (start - timedelta(seconds=1)).astimezone(zone), len(expected), skips=True)
            assert [moment.astimezone(UTC) for moment in found] == expected, line.text
            for one in minutes[30 * 60 :: 7]:
                last = due.last(line, one.astimezone(zone), skips=True)
                assert last is not None
                assert last.astimezone(UTC) == max(moment for moment in expected if moment <= one), (line.text, one)


def test_no_zone_is_warned_of_at_the_default_time() -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    line = due.read("17 4 * * *")
    known = ("Europe/Berlin", "America/New_York", "America/Havana", "Australia/Lord_Howe", "Africa/Cairo", "UTC")
    assert [zone for zone in known if zones.warning(line, ZoneInfo(zone), now)] == []


def test_times_that_a_clock_passes_over_or_twice_are_warned_of_by_date() -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    said = zones.warning(due.read("02:30"), BERLIN, now)
    assert "02:30 is not there at all on 2027-03-28, 02:30 is there twice on 2027-10-31" in said
    assert "00:00 is not there at all" in zones.warning(due.read("@daily"), ZoneInfo("America/Havana"), now)
    assert zones.warning(due.read("02:30"), ZoneInfo("Asia/Kolkata"), now) == ""
    assert zones.warning(due.read("30 * * * *"), BERLIN, now) == ""


def test_the_machines_zone_is_read_from_its_link_or_its_file_and_never_from_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    known = Path("/usr/share/zoneinfo/Europe/Berlin")
    if not known.exists():
        pytest.skip("the time zone database is not installed")
    (tmp_path / "link").symlink_to(known)
    (tmp_path / "mac").symlink_to("/var/db/timezone/zoneinfo.default/Europe/Berlin")
    (tmp_path / "file").write_bytes(known.read_bytes())
    assert [zones.name(zones.machine(tmp_path / name)) for name in ("link", "mac", "file", "none")] == [
        "Europe/Berlin",
        "Europe/Berlin",
        "",
        "UTC",
    ]
    now = datetime(2026, 11, 30, tzinfo=UTC)
    assert zones.same("Europe/Berlin", zones.machine(tmp_path / "file"), now)
    assert not zones.same("Africa/Lagos", BERLIN, now), "it differs only in summer"
    assert zones.same("Etc/UTC", UTC, now)


def test_a_zone_that_is_none_is_refused() -> None:
    for name in ("Europe/Nowhere", "../etc/passwd", "", "Europe"):
        with pytest.raises(RelayError, match="there is no time zone"):
            zones.named(name)

"""The clock: UTC, whole seconds, no guessing of zones."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from relay.host import clock

MOMENT = datetime(2026, 11, 29, 2, 41, 7, tzinfo=UTC)


def test_a_stamp_is_utc_to_the_second() -> None:
    assert clock.stamp(MOMENT.replace(microsecond=999_999)) == "2026-11-29T02:41:07Z"


def test_a_stamp_of_another_zone_is_the_same_moment() -> None:
    assert clock.stamp(MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))) == "2026-11-29T02:41:07Z"


def test_a_stamp_of_any_year_is_read_again() -> None:
    long_ago = datetime(500, 1, 1, tzinfo=UTC)
    assert clock.stamp(long_ago) == "0500-01-01T00:00:00Z"
    assert clock.parse(clock.stamp(long_ago)) == long_ago


def test_a_stamp_is_parsed_to_the_moment_it_names() -> None:
    assert clock.parse(clock.stamp(MOMENT)) == MOMENT
    assert clock.parse("2026-11-29T03:41:07+01:00") == MOMENT


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-29T02:41:07", "2026-11-29T25:00:00Z"])
def test_a_time_that_names_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        clock.parse(text)


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        clock.stamp(MOMENT.replace(tzinfo=None))


def test_a_fixed_clock_stands_still_and_is_given_back() -> None:
    with clock.fix(MOMENT):
        with clock.fix(MOMENT + timedelta(days=1)):
            assert clock.stamp() == "2026-11-30T02:41:07Z"
        assert clock.now() == MOMENT
        assert clock.stamp() == "2026-11-29T02:41:07Z"
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_the_hour_that_comes_twice_has_two_stamps() -> None:
    summer, winter = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))
    twice = [datetime(2026, 10, 25, 2, 30, tzinfo=zone) for zone in (summer, winter)]
    assert [clock.stamp(moment) for moment in twice] == ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]


def test_durations_do_not_follow_a_fixed_clock() -> None:
    began = clock.monotonic()
    with clock.fix(MOMENT):
        assert clock.monotonic() >= began

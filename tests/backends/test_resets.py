"""When a limit ends: what no calendar has is no time, and a leg ends by its name all the same."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from relay.backends import anthropic_faults, openai_faults, openai_service, resets
from relay.backends.sending import TRIES
from relay.host import clock
from tests.backends.legs import DONE, Leg
from tests.backends.openai_legs import KEY, VARIABLE, agent, played
from tests.service import Fault, do

NOW = datetime(2026, 11, 29, 2, 30, tzinfo=UTC)
NEVER = ["1000000000000000", "9" * 400, "1e9", "-5", "nan", "inf", "\u00b2", "Sun, 31 Feb 2027 00:00:00 GMT", "soon"]
"""Times that are none, or that nobody lives to see."""


@pytest.fixture
def leg(tmp_path: Path) -> Leg:
    return Leg(tmp_path)


def headers(name: str, value: str) -> dict[str, str]:
    return {name: value, "anthropic-ratelimit-unified-status": "rejected"}


@pytest.mark.parametrize("value", ["1000000000000000", "99999999999"])
def test_a_rate_limit_for_ever_is_one_without_a_known_end(leg: Leg, value: str) -> None:
    fault = Fault("status", status=429, type="rate_limit_error", headers={"retry-after": value})
    taken = leg.play({"": [fault]})
    assert (taken.ended_by, len(leg.waits)) == ("quota", TRIES - 1)


def test_a_rate_limit_that_ends_in_the_year_9999_is_waited_out_like_any_other(leg: Leg) -> None:
    limit = "anthropic-ratelimit-requests"
    for end in ("9999-12-31T23:59:59-23:59", "2027-02-30T00:00:00Z", "9999-12-31T23:59:59Z"):
        fault = Fault(
            "status",
            status=429,
            type="rate_limit_error",
            times=1,
            headers={f"{limit}-remaining": "0", f"{limit}-reset": end},
        )
        assert leg.play({"": [fault, do.reply(DONE)]}).ended_by == "reply"


def test_a_quota_until_a_day_that_no_calendar_has_is_one_without_a_known_end(leg: Leg) -> None:
    words = "You have reached your specified API usage limits. You will regain access on 2027-02-30 at 00:00 UTC."
    taken = leg.play({"": [Fault("spend", message=words)]})
    assert (taken.ended_by, taken.until) == ("quota", None)


@pytest.mark.parametrize("value", NEVER)
def test_a_plan_that_is_used_up_for_ever_is_used_up(value: str) -> None:
    body = {"error": {"type": "rate_limit_error"}}
    told = anthropic_faults.told(body, "h", 429, headers("anthropic-ratelimit-unified-reset", value))
    assert (told.kind, told.until) == ("quota", None)


@pytest.mark.parametrize("value", NEVER)
def test_a_wait_that_is_none_is_none(value: str) -> None:
    service = openai_service.of(agent(None))
    for name in ("retry-after", "retry-after-ms"):
        told = anthropic_faults.told({"error": {"type": "rate_limit_error"}}, "h", 429, {"retry-after": value})
        assert (told.kind, told.after) == ("rate", None)
        told = openai_faults.told({"code": "rate_limit_exceeded"}, service, 429, {name: value})
        assert (told.kind, told.after) == ("rate", None)


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("words", ["Please try again in 9999999999999d.", "Retry after " + "9" * 400 + "s"])
def test_words_that_promise_eternity_are_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: str, words: str
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    fault = Fault("status", status=429, type="insufficient_quota", message=words)
    leg = played(tmp_path, {"": [fault]}, api=api)
    assert (leg.taken.ended_by, leg.taken.until) == ("quota", None)


@pytest.mark.parametrize("moment", [1e300, float("nan"), -1e12, 10**40, True, None, [1], "2027-02-30T00:00:00Z", "x"])
def test_a_moment_that_is_none_is_none(moment: object) -> None:
    service = openai_service.of(agent(None))
    for name in ("resets_at", "resets_in_seconds"):
        told = openai_faults.told({"code": "usage_limit_reached", name: moment}, service, 429)
        assert (told.kind, told.until) == ("quota", None)


def test_moments_are_read_as_services_write_them() -> None:
    with clock.fix(NOW):
        assert resets.stamp("2026-12-01T00:00:00+01:00") == "2026-11-30T23:00:00Z"
        assert resets.stamp("1796108400") == resets.stamp(1796108400.9) == "2026-12-01T07:00:00Z"
        assert resets.after(90.5) == "2026-11-29T02:31:30Z"
        assert resets.left("Sun, 29 Nov 2026 02:31:00 GMT") == resets.left("2026-11-29T02:31:00Z") == 60
        assert resets.left("2020-01-01T00:00:00Z") == 0

"""What comes back instead of an answer: what is waited out, for how long, and how the leg ends otherwise."""

import secrets
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from relay.backends import sending
from relay.host import clock
from tests.backends.legs import DONE, Leg
from tests.service import Fault, Turn, do

KEY = f"sk-ant-test-{secrets.token_hex(16)}"


@pytest.fixture
def leg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Leg:
    monkeypatch.setenv("TEST_SERVICE_KEY", KEY)
    return Leg(tmp_path)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("overloaded", times=2),
        Fault("server", times=2),
        Fault("status", times=2, status=503),
        Fault("drop", times=2),
        Fault("drop", times=2, after=0),
        Fault("refuse", times=2),
        Fault("malformed", times=2),
        Fault("stream_error", times=2),
    ],
    ids=["529", "500", "503", "dropped", "dropped-at-once", "refused", "malformed", "error-in-stream"],
)
def test_a_fault_of_the_service_is_waited_out_and_nothing_is_done_twice(leg: Leg, fault: Fault) -> None:
    append = do.run("echo once >> log.txt")
    taken = leg.play({"": [append, fault, Turn("Twice?", do.run("echo two >> log.txt")), do.reply(DONE)]})
    assert (taken.ended_by, taken.usage.turns) == ("reply", 3)
    assert (leg.root / "leg/log.txt").read_text() == "once\ntwo\n"
    assert leg.texts("text") == ["Twice?"]
    assert [round(wait) for wait in leg.waits] in ([1, 2], [1, 3])
    assert len(leg.texts("wait")) == 2
    again = leg.bodies[1:4]
    assert again[0] == again[1] == again[2]


def test_a_stream_that_broke_off_leaves_the_figures_a_lower_bound(leg: Leg) -> None:
    assert not leg.play({"": [Fault("drop", times=1), do.reply(DONE)]}).usage.complete


def test_an_overload_that_does_not_end_ends_the_leg(leg: Leg) -> None:
    taken = leg.play({"": [do.run("ls"), Fault("overloaded")]})
    assert taken.ended_by == "overload"
    assert len(leg.waits) == sending.TRIES - 1
    assert leg.waits == sorted(leg.waits)
    assert max(leg.waits) <= sending.SLOWEST * 1.25
    assert "gave up after 8 faults, 8 in a row" in (taken.problem or "")
    assert "529 overloaded_error: Overloaded" in (taken.problem or "")


def test_an_overload_that_the_service_says_will_last_is_not_waited_for(leg: Leg) -> None:
    taken = leg.play({"": [Fault("overloaded", retry_after=1800)]})
    assert (taken.ended_by, leg.waits) == ("overload", [])


def test_a_leg_bears_only_so_many_faults_in_all(leg: Leg) -> None:
    script = [entry for n in range(20) for entry in (Fault("overloaded", times=3), do.run(f"echo {n}"))]
    taken = leg.play({"": script})
    assert (taken.ended_by, len(leg.waits)) == ("overload", sending.TRIES_OF_LEG - 1)


def test_a_rate_limit_is_waited_for_as_long_as_the_service_says_and_a_little_longer(leg: Leg) -> None:
    taken = leg.play({"": [Fault("rate_limit", times=2, retry_after=7), do.reply(DONE)]})
    assert taken.ended_by == "reply"
    assert all(7 < wait <= 7 * 1.25 for wait in leg.waits)
    assert leg.waits[0] != leg.waits[1]
    assert "429 rate_limit_error" in leg.texts("wait")[0]


def test_a_rate_limit_without_a_time_is_waited_for_until_the_limit_begins_anew(leg: Leg) -> None:
    leg.play({"": [Fault("rate_limit", times=1, resets_at=time.time() + 90), do.reply(DONE)]})
    assert 85 < leg.waits[0] < 115


def test_a_rate_limit_of_more_than_five_minutes_is_a_quota(leg: Leg) -> None:
    with clock.fix(datetime(2026, 11, 29, 2, 30, tzinfo=UTC)):
        taken = leg.play({"": [Fault("rate_limit", retry_after=1800)]})
    assert (taken.ended_by, taken.until, leg.waits) == ("quota", "2026-11-29T03:00:00Z", [])


def test_a_rate_limit_past_the_end_of_the_leg_is_a_quota(leg: Leg) -> None:
    with clock.fix(datetime(2026, 11, 29, 2, 30, tzinfo=UTC)):
        taken = leg.play({"": [Fault("rate_limit", retry_after=60)]}, seconds=30.0)
    assert (taken.ended_by, taken.until, leg.waits) == ("quota", "2026-11-29T02:31:00Z", [])


def test_a_rate_limit_that_does_not_end_is_a_quota(leg: Leg) -> None:
    taken = leg.play({"": [Fault("rate_limit", retry_after=1)]})
    assert (taken.ended_by, len(leg.waits)) == ("quota", sending.TRIES - 1)
    assert taken.until is not None


def test_a_quota_says_when_it_is_there_again(leg: Leg) -> None:
    taken = leg.play({"": [Fault("quota", resets_at=1_900_000_000)]})
    assert (taken.ended_by, taken.until, leg.waits) == ("quota", "2030-03-17T17:46:40Z", [])


def test_a_limit_that_the_customer_set_says_in_words_when_it_ends(leg: Leg) -> None:
    taken = leg.play({"": [Fault("spend", resets_at=1_900_000_000)]})
    assert (taken.ended_by, taken.until) == ("quota", "2030-03-17T17:46:00Z")
    assert "reached your specified API usage limits" in (taken.problem or "")


def test_money_that_is_used_up_is_a_quota_without_an_end(leg: Leg) -> None:
    taken = leg.play({"": [Fault("credit")]})
    assert (taken.ended_by, taken.until) == ("quota", None)
    assert "credit balance is too low" in (taken.problem or "")


@pytest.mark.parametrize("kind", ["auth", "forbidden"])
def test_a_key_that_is_refused_is_named_by_its_variable(leg: Leg, kind: str) -> None:
    taken = leg.play({"": [Fault("auth" if kind == "auth" else "forbidden")]}, key="TEST_SERVICE_KEY")
    assert (taken.ended_by, leg.waits) == ("auth", [])
    assert "refuses the key in `TEST_SERVICE_KEY`" in (taken.problem or "")


def test_a_key_that_the_service_repeats_stands_in_no_message(leg: Leg) -> None:
    fault = Fault("auth", message=f"there is no\nkey {KEY}, sorry")
    taken = leg.play({"": [fault]}, key="TEST_SERVICE_KEY")
    assert KEY not in (taken.problem or "")
    assert "there is no key [redacted" in (taken.problem or "")
    assert leg.service.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("kind", ["not_found", "bad_request"])
def test_a_request_that_is_wrong_is_a_matter_of_set_up(leg: Leg, kind: str) -> None:
    taken = leg.play({"": [Fault("not_found" if kind == "not_found" else "bad_request")]})
    assert (taken.ended_by, len(leg.bodies), leg.waits) == ("setup", 1, [])
    assert ("model: claude-opus-5-5" if kind == "not_found" else "valid list") in (taken.problem or "")


def test_a_long_message_of_the_service_is_cut(leg: Leg) -> None:
    taken = leg.play({"": [Fault("bad_request", message="no " * 4000)]})
    assert len(taken.problem or "") < sending.SHOWN + 100


def test_a_wait_that_no_time_is_left_for_is_the_end_of_the_time(leg: Leg) -> None:
    taken = leg.play({"": [Fault("overloaded")]}, seconds=0.9)
    assert (taken.ended_by, leg.waits) == ("timeout", [])

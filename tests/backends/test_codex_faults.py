"""Whatever goes wrong with the real Codex has a name: every row of what its exit code does not say."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from relay.backends import codex_faults
from relay.host import clock
from relay.terms import EndedBy
from tests.backends import codex
from tests.backends.codex import DONE, Leg, replied
from tests.service import Fault, Script, Turn, do, say

Opened = Callable[[Script], Leg]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Return what opens a leg on a script."""
    with codex.opened(tmp_path, monkeypatch) as open_:
        yield open_


@pytest.mark.parametrize(
    ("fault", "ended_by", "says"),
    [
        (Fault("auth"), "auth", "401"),
        (Fault("forbidden"), "auth", "not have access"),
        (Fault("not_found"), "setup", "does not exist"),
        (Fault("bad_request"), "setup", "Invalid value"),
        (Fault("quota"), "quota", "Quota exceeded"),
        (Fault("rate_limit"), "overload", "429"),
        (Fault("overloaded"), "overload", ""),
        (Fault("server"), "overload", ""),
        (Fault("refuse"), "overload", "stream disconnected"),
        (Fault("drop"), "overload", "stream disconnected"),
        (Fault("stream_error"), "overload", ""),
        (Fault("context"), "crash", "ran over the end of its model's context"),
        (Fault("max_tokens"), "no-reply", "max_output_tokens"),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
def test_a_service_that_fails_is_told_by_the_class_it_has_with_every_agent(
    opened: Opened, fault: Fault, ended_by: EndedBy, says: str
) -> None:
    leg = opened({"": [fault, do.reply(DONE)]})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, taken.reply) == (ended_by, None), taken
    assert says in (taken.problem or "")
    assert not taken.usage.complete


def test_a_key_never_stands_in_a_problem(opened: Opened) -> None:
    leg = opened({"": [Fault("auth", message=f"Incorrect API key provided: {codex.KEY}")]})
    taken = leg.take(leg.ask())
    assert "Incorrect API key provided" in (taken.problem or "")
    assert codex.KEY not in (taken.problem or "")


def test_a_used_up_plan_says_until_when(opened: Opened) -> None:
    ends = int(time.time()) + 7200
    leg = opened({"": [Fault("quota", resets_at=ends)]})
    taken = leg.take(leg.ask())
    assert taken.ended_by == "quota"
    told = datetime.fromisoformat(taken.until or "").timestamp()
    assert ends <= told <= ends + 61


def test_limits_of_the_account_say_the_end_to_the_second(opened: Opened) -> None:
    ends = int(time.time()) + 7200
    headers = {
        "x-codex-primary-used-percent": "100",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(ends),
    }
    leg = opened({"": [Fault("quota", resets_at=ends, headers=headers)]})
    assert datetime.fromisoformat(leg.take(leg.ask()).until or "").timestamp() == ends


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ("You've hit your usage limit. Try again later.", None),
        ("You've hit your usage limit or try again at 11:30 PM.", "2026-11-29T23:31:00Z"),
        ("You've hit your usage limit or try again at 2:47 AM.", "2026-11-30T02:48:00Z"),
        ("You've hit your usage limit. Try again at Dec 3rd, 2026 12:05 PM.", "2026-12-03T12:06:00Z"),
    ],
)
def test_the_end_of_a_limit_is_read_from_a_sentence_of_the_local_clock(said: str, until: str | None) -> None:
    with clock.fix(datetime(2026, 11, 29, 23, 0, tzinfo=UTC)):
        found = codex_faults.fault(said.replace("Try again at", "try again at"), "usage_limit_exceeded")
    assert (found.ended_by, found.until) == ("quota", until)


def test_what_passes_is_no_fault_of_the_leg(opened: Opened) -> None:
    leg = opened({"": [Fault("server", times=1), Fault("drop", times=1), do.reply(DONE)]})
    assert replied(leg.take(leg.ask())) == DONE


def test_an_event_that_is_no_json_is_passed_over(opened: Opened) -> None:
    leg = opened({"": [Fault("malformed", times=1), do.reply(DONE)]})
    assert replied(leg.take(leg.ask())) == DONE


def test_exit_0_on_a_refusal_is_no_reply(opened: Opened) -> None:
    leg = opened({"": [Turn(say("I look."), do.read("calc.py")), Fault("refusal")]})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, taken.reply) == ("no-reply", None)
    assert "a refusal looks the same" in (taken.problem or "")


def test_exit_0_on_an_answer_off_the_schema_gets_one_more_turn_in_the_same_session(opened: Opened) -> None:
    leg = opened({"was not taken": [do.reply(DONE)], "": [do.read("calc.py"), do.reply({"status": "finished"})]})
    taken = leg.take(leg.ask())
    assert replied(taken) == DONE
    assert (taken.usage.turns, taken.usage.complete) == (3, True)
    assert "`$.status`" in str(leg.bodies()[-1]["input"])
    assert "cat calc.py" in str(leg.bodies()[-1]["input"])


def test_two_answers_off_the_schema_are_no_reply(opened: Opened) -> None:
    leg = opened({"": [say("All is well.")]})
    taken = leg.take(leg.ask("judge"))
    assert (taken.ended_by, taken.reply) == ("no-reply", None)
    assert len(leg.bodies()) == 2


def test_an_answer_before_the_last_call_is_none(opened: Opened) -> None:
    leg = opened({"": [Turn(do.reply(DONE), do.run("true")), Fault("refusal")]})
    assert leg.take(leg.ask()).ended_by == "no-reply"


def test_exit_0_with_commands_that_failed_is_told_as_it_was(opened: Opened) -> None:
    leg = opened({"": [do.run("echo no; exit 3"), do.reply(DONE)]})
    assert replied(leg.take(leg.ask())) == DONE
    assert [one.ok for one in leg.of("result")] == [False]


def test_exit_0_over_a_sandbox_that_does_not_start_is_a_matter_of_set_up(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    leg = opened({"": [do.run("true"), do.run("sleep 2"), do.reply(DONE)]})
    monkeypatch.setenv("RELAY_TEST_LEG", msgspec.json.encode(leg.ask()).decode())
    said = codex.walled(
        "import os, msgspec\n"
        "from relay.backends import codex\n"
        "from relay.terms import Ask\n"
        "from tests.backends.lanes import lane\n"
        "taken = codex.take(msgspec.json.decode(os.environ['RELAY_TEST_LEG'], type=Ask), lane())\n"
        "print(taken.ended_by, taken.reply, taken.problem)\n"
    )
    assert said.startswith("setup None its sandbox does not start: "), said


def test_a_prompt_that_codex_would_not_take_is_named(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    taken = leg.take(leg.ask(prompt="x" * (1 << 20) + "y"))
    assert taken.ended_by == "setup"
    assert "1048577 characters" in (taken.problem or "")


def test_a_service_nobody_listens_at_is_not_tried_for_ever(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    taken = leg.take(leg.ask(base_url="http://127.0.0.1:9/v1"))
    assert taken.ended_by == "overload", taken


def test_an_address_that_is_none_is_a_matter_of_set_up(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    taken = leg.take(leg.ask(base_url="ftp://127.0.0.1/v1"))
    assert taken.ended_by == "setup", taken

"""Whatever goes wrong with the real Claude Code has a name: every row of what its exit code does not say."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from relay.host import pids
from relay.terms import Ask, EndedBy, Limits, Told
from tests.backends import claude
from tests.backends.claude import Leg, replied
from tests.service import Fault, Script, do, say

Opened = Callable[[Script], Leg]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    with claude.opened(tmp_path, monkeypatch) as made:
        monkeypatch.setenv("ANTHROPIC_API_KEY", claude.KEY)
        yield made


@pytest.mark.parametrize(
    ("fault", "ended_by", "says"),
    [
        (Fault("auth"), "auth", "key"),
        (Fault("forbidden"), "auth", "403"),
        (Fault("rate_limit", retry_after=90), "quota", "429"),
        (Fault("credit"), "quota", "Credit balance is too low"),
        (Fault("overloaded"), "overload", "529"),
        (Fault("server"), "overload", "500"),
        (Fault("refuse"), "overload", "API"),
        (Fault("drop"), "overload", "API"),
        (Fault("stream_error"), "overload", "API"),
        (Fault("malformed"), "overload", "API"),
        (Fault("not_found"), "setup", "model"),
        (Fault("bad_request"), "setup", "400"),
        (Fault("context"), "crash", "ran over the end of its model's context"),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
def test_a_service_that_fails_is_told_by_the_class_it_has_with_every_agent(
    opened: Opened, fault: Fault, ended_by: EndedBy, says: str
) -> None:
    leg = opened({"": [fault, do.reply(claude.DONE)]})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, taken.reply) == (ended_by, None), taken
    assert says in (taken.problem or "")


def test_a_refused_key_is_not_tried_for_minutes(opened: Opened) -> None:
    leg = opened({"": [Fault("auth"), do.reply(claude.DONE)]})
    assert leg.take(leg.ask(env={"CLAUDE_CODE_MAX_RETRIES": "10"})).ended_by == "auth"
    assert len(leg.service.requests) <= 4


def test_a_refusal_is_one(opened: Opened) -> None:
    leg = opened({"": [Fault("refusal")]})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, taken.reply) == ("refusal", None)


def test_an_answer_that_is_cut_off_is_no_reply(opened: Opened) -> None:
    leg = opened({"": [Fault("max_tokens")]})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, taken.reply) == ("no-reply", None)
    assert "token" in (taken.problem or "")


def test_a_limit_in_words_is_waited_for_until_its_day(opened: Opened) -> None:
    leg = opened({"": [Fault("spend", resets_at=1796083200.0)]})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, taken.until) == ("quota", "2026-12-01T00:00:00Z")


def test_what_the_program_itself_mends_is_told_as_waiting(opened: Opened) -> None:
    leg = opened({"": [Fault("overloaded", times=1), do.reply(claude.DONE)]})
    assert replied(leg.take(leg.ask())) == claude.DONE
    assert ["529" in one.text for one in leg.of("wait")] == [True]


def test_turns_are_capped_and_what_was_done_stays(opened: Opened) -> None:
    leg = opened({"": [do.read("calc.py"), claude.EDIT, do.run("true")]})
    taken = leg.take(leg.ask(limits=Limits(seconds=100, turns=3)))
    assert (taken.ended_by, taken.reply) == ("budget", None)
    assert taken.usage.complete
    assert (leg.tree / "calc.py").read_text() == claude.FIXED


def test_money_is_capped(opened: Opened) -> None:
    leg = opened({"": [do.run("true")]})
    taken = leg.take(leg.ask(limits=Limits(seconds=100, microusd=10_000)))
    assert taken.ended_by == "budget"
    assert len(leg.service.requests) == 1
    assert (taken.cost_microusd or 0) >= 10_000


def test_tokens_are_capped_by_relay_since_the_program_has_no_such_cap(opened: Opened) -> None:
    leg = opened({"": [do.run("true")]})
    taken = leg.take(leg.ask(limits=Limits(seconds=100, tokens=25_000)))
    assert taken.ended_by == "budget"
    assert "25000" in (taken.problem or "")
    assert 2 <= len(leg.service.requests) <= 4
    assert taken.usage.input + taken.usage.output >= 25_000


def test_an_agent_that_goes_in_circles_is_stopped(opened: Opened) -> None:
    leg = opened({"": [do.run("true")]})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, taken.reply) == ("stuck", None)
    assert "the same call of `Bash` was made 3 times in a row" in (taken.problem or "")
    assert len(leg.service.requests) < 12


def test_a_program_that_will_not_start_is_a_matter_of_set_up(opened: Opened) -> None:
    leg = opened({"": [do.reply(claude.DONE)]})
    taken = leg.take(leg.ask(prompt=""))
    assert (taken.ended_by, taken.reply) == ("setup", None)
    assert "would not start: Error: Input must be provided" in (taken.problem or "")
    assert leg.service.requests == []


# --- the reply


def test_a_reply_that_was_forgotten_is_asked_for_once_more_in_the_same_session(opened: Opened) -> None:
    leg = opened({"was not taken": [do.reply(claude.DONE)], "": [say("all done")]})
    taken = leg.take(leg.ask())
    assert replied(taken) == claude.DONE
    assert taken.usage.turns == len(leg.service.requests) == 3
    assert taken.usage.complete
    assert len({one.headers["x-claude-code-session-id"] for one in leg.service.requests}) == 1


def test_a_reply_that_is_forgotten_twice_is_no_reply_though_the_program_says_success(opened: Opened) -> None:
    leg = opened({"": [say("all done")]})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, taken.reply) == ("no-reply", None)
    assert leg.result()["subtype"] == "success"
    assert leg.result()["is_error"] is False


def test_a_reply_that_never_fits_the_schema_is_asked_for_once_more(opened: Opened) -> None:
    leg = opened({"was not taken": [do.reply(claude.DONE)], "": [do.call("StructuredOutput", {"status": "perhaps"})]})
    assert replied(leg.take(leg.ask())) == claude.DONE


def test_a_judge_is_told_what_was_wrong_with_its_reply(opened: Opened) -> None:
    wrong = {"verdict": "approve", "nonce": "of another leg"}
    leg = opened({"nonce": [do.reply(lambda _: {"verdict": "approve", "nonce": nonce()})], "": [do.reply(wrong)]})
    asked = leg.ask("judge")

    def nonce() -> str:
        return asked.nonce

    assert replied(leg.take(asked)) == {"verdict": "approve", "nonce": asked.nonce}
    second = leg.service.requests[-1].body["messages"][-1]
    assert "`$.nonce` is not the nonce of this leg" in str(second)


def test_refused_calls_are_named_though_the_program_says_success(opened: Opened) -> None:
    leg = opened({"": [do.run("touch planted"), do.reply(lambda _: {"verdict": "approve", "nonce": asked.nonce})]})
    asked = leg.ask("judge")
    taken = leg.take(asked)
    assert replied(taken)["verdict"] == "approve"
    assert taken.problem == "the boundary refused 1 call of `Bash`"
    assert not (leg.tree / "planted").exists()


# --- who ends it


def _end(asked: Ask, number: signal.Signals) -> Callable[[Told], None]:
    """Return what sends a signal to the program itself as soon as it calls a tool."""

    def heard(one: Told) -> None:
        if one.type == "call":
            time.sleep(0.3)  # the tool is to run
            for pid in pids.survivors(asked.nonce):
                with suppress(OSError):
                    if b"--session-id" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        os.kill(pid, number)

    return heard


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_somebody_else_ended_has_not_replied_whatever_its_exit_code(
    opened: Opened, number: signal.Signals
) -> None:
    leg = opened({"": [do.run("sleep 0.1; sleep 20"), do.reply(claude.DONE)]})
    asked = leg.ask()
    taken = leg.take(asked, told=_end(asked, number))
    assert (taken.ended_by, taken.reply) == ("crash", None)
    assert taken.usage.input > 0
    assert not (taken.usage.complete and number == signal.SIGKILL)
    assert (taken.cost_microusd or 0) > 0


def test_a_leg_that_does_not_end_is_ended_and_what_it_used_is_known_from_its_session(opened: Opened) -> None:
    leg = opened({"": [do.run("sleep 0.1; sleep 60"), do.reply(claude.DONE)]})
    taken = leg.take(leg.ask(limits=Limits(seconds=claude.BEGINS)))
    assert (taken.ended_by, taken.reply) == ("timeout", None)
    assert taken.usage.turns == 1
    assert taken.usage.input > 5_000


def test_a_service_that_says_nothing_makes_the_leg_idle(opened: Opened) -> None:
    leg = opened({"": [do.run("true"), Fault("hang", seconds=60), do.reply(claude.DONE)]})
    taken = leg.take(leg.ask(limits=Limits(seconds=100, idle=2.5)))
    assert (taken.ended_by, taken.reply) == ("idle", None)


def test_nothing_of_the_tree_is_left_not_even_what_left_the_session(opened: Opened, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    command = f"setsid sh -c 'echo $$ > {mark}; exec sleep 300' >/dev/null 2>&1 & sleep 0.5"
    leg = opened({"": [do.run(command), do.reply(claude.DONE)]})
    assert leg.take(leg.ask()).ended_by == "reply"
    assert pids.stat(int(mark.read_text())) is None


def test_nothing_of_the_tree_is_left_of_a_leg_that_was_ended(opened: Opened, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    command = f"setsid sh -c 'echo $$ > {mark}; exec sleep 300' >/dev/null 2>&1 & sleep 0.5; sleep 60"
    leg = opened({"": [do.run(command), do.reply(claude.DONE)]})
    assert leg.take(leg.ask(limits=Limits(seconds=claude.BEGINS))).ended_by == "timeout"
    assert pids.stat(int(mark.read_text())) is None

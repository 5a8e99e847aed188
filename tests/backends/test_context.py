"""The model's window as a budget, and the cache of prompts: what is left out, when a leg hands over."""

import itertools
import json
from pathlib import Path

import pytest

from tests.backends.legs import APPROVE, DONE, Leg
from tests.service import Fault, Turn, Usage, do, say, uncovered

NOTE = {"status": "done", "summary": "half of it", "todo": ["the other half"]}
LONG = "yes | head -c 9000"


@pytest.fixture
def leg(tmp_path: Path) -> Leg:
    return Leg(tmp_path)


def used(tokens: int) -> Usage:
    return Usage(input=tokens - 10, output=10)


def numbered(count: int, tokens: int = 100) -> list[Turn]:
    """Return turns with a command each that says a lot, and is another one each time."""
    return [do.run(f"{LONG}; echo {number}").but(usage=used(tokens)) for number in range(count)]


def test_a_worker_whose_share_is_used_writes_its_note_and_hands_over(leg: Leg) -> None:
    taken = leg.play({"": [do.run("ls").but(usage=used(700)), do.reply(NOTE)]}, window=1000, context=0.7)
    assert (taken.ended_by, json.loads(taken.reply or b"")) == ("handover", NOTE)
    assert "as a note for a fresh session" in leg.said()


def test_a_worker_below_its_share_is_left_alone(leg: Leg) -> None:
    taken = leg.play({"": [do.run("ls").but(usage=used(699)), do.reply(DONE)]}, window=1000, context=0.7)
    assert taken.ended_by == "reply"
    assert "used up" not in leg.said()


def test_a_judge_whose_share_is_used_is_asked_for_its_verdict(leg: Leg) -> None:
    taken = leg.play({"": [do.run("ls").but(usage=used(900)), do.reply(APPROVE)]}, "judge", window=1000)
    assert taken.ended_by == "reply"
    assert "call `reply` now with your verdict" in leg.said()


def test_nothing_but_a_reply_is_done_once_the_share_is_used(leg: Leg) -> None:
    late = [do.run("touch late").but(usage=used(900)), do.reply(NOTE)]
    taken = leg.play({"": [do.run("ls").but(usage=used(900)), *late]}, window=1000)
    assert taken.ended_by == "handover"
    assert not (leg.root / "leg/late").exists()
    assert "Only `reply` is left" in leg.said()


def test_an_agent_that_goes_on_working_all_the_same_has_not_replied(leg: Leg) -> None:
    taken = leg.play({"": [do.run(f"echo {n}").but(usage=used(900)) for n in range(9)]}, window=1000)
    assert (taken.ended_by, len(leg.bodies)) == ("no-reply", 4)
    assert "called other tools instead of `reply`" in (taken.problem or "")


def test_old_output_is_left_out_before_the_share_is_used(leg: Leg) -> None:
    turns = [*numbered(9), do.run("echo now").but(usage=used(16_000)), do.reply(DONE)]
    taken = leg.play({"": turns}, window=20_000, context=1.0)
    assert taken.ended_by == "reply"
    results = [part["content"] for message in leg.bodies[-1]["messages"][2::2] for part in message["content"]]
    assert [result.startswith("[9001 characters of old output were left out here") for result in results] == [
        *[True] * 4,
        *[False] * 6,
    ]
    assert sum(len(text) > 9000 for text in leg.texts("result")) == 9


def test_output_is_left_out_in_few_big_steps(leg: Leg) -> None:
    full = [do.run(f"{LONG}; echo {n}").but(usage=used(16_000)) for n in range(12)]
    leg.play({"": [*full, do.reply(DONE)]}, window=20_000, context=1.0)
    counts = [json.dumps(body).count("of old output were left out") for body in leg.bodies]
    assert counts == sorted(counts)
    steps = [after - before for before, after in itertools.pairwise(counts) if after > before]
    assert steps
    assert all(step >= 2 for step in steps)


def test_a_conversation_that_is_too_long_for_the_service_is_shortened_and_goes_on(leg: Leg) -> None:
    taken = leg.play({"": [*numbered(4), Fault("context", times=1), do.reply(DONE)]})
    assert taken.ended_by == "reply"
    assert leg.said().count("of old output were left out") == 2


def test_one_that_is_still_too_long_hands_over(leg: Leg) -> None:
    taken = leg.play({"": [*numbered(4), Fault("context", times=2), do.reply(NOTE)]})
    assert taken.ended_by == "handover"
    assert leg.said().count("of old output were left out") == 4


def test_one_that_no_shortening_helps_is_a_crash(leg: Leg) -> None:
    taken = leg.play({"": [*numbered(4), Fault("context")]})
    assert (taken.ended_by, len(leg.bodies)) == ("crash", 7)
    assert "longer than the model takes" in (taken.problem or "")
    assert "prompt is too long" in (taken.problem or "")


def test_a_prompt_that_alone_is_too_long_is_a_matter_of_set_up(leg: Leg) -> None:
    taken = leg.play({"": [Fault("context")]})
    assert (taken.ended_by, len(leg.bodies)) == ("setup", 1)
    assert "the prompt alone is longer than the model takes" in (taken.problem or "")


def test_an_answer_that_runs_past_the_window_is_as_if_it_were_too_long(leg: Leg) -> None:
    over = Turn("I", stop="model_context_window_exceeded")
    taken = leg.play({"": [*numbered(4), over]})
    assert taken.ended_by == "crash"


def test_no_byte_that_was_sent_before_lies_outside_the_cache(leg: Leg) -> None:
    many = Turn(*[do.run(f"echo many {number}") for number in range(30)])
    turns = [do.run("echo 1"), many, say("Hm."), do.run("echo 2"), many, Fault("overloaded", times=1), do.run("echo 3")]
    taken = leg.play({"": [*turns, do.reply(DONE)]})
    assert taken.ended_by == "reply"
    assert len(leg.service.requests) == 8
    assert uncovered(leg.service.requests) == [0] * 8


def test_a_trim_costs_the_cache_only_what_comes_after_it(leg: Leg) -> None:
    small = [do.run(f"echo small {number}").but(usage=used(100)) for number in range(25)]
    turns = [*small, *numbered(9), do.run("echo now").but(usage=used(16_000)), *numbered(3), do.reply(DONE)]
    leg.play({"": turns}, window=20_000, context=1.0)
    lost = uncovered(leg.service.requests)
    assert [at for at, count in enumerate(lost) if count] == [35]
    assert lost[35] < 300  # the call before the first result that was left out: no request ended there


def test_a_second_leg_of_the_same_kind_finds_tools_and_system_prompt_in_the_cache(leg: Leg) -> None:
    leg.play({"": [do.run("ls"), do.reply(DONE)]})
    first = leg.bodies[0]
    leg.play({"": [do.reply(DONE)]})
    assert (leg.bodies[0]["system"], leg.bodies[0]["tools"]) == (first["system"], first["tools"])

"""The loop: how a leg goes on, and each way in which it ends."""

import json
from pathlib import Path

import pytest

from relay.terms import Kind
from tests.backends.legs import APPROVE, DONE, Leg
from tests.service import Fault, Turn, Usage, do, say


@pytest.fixture
def leg(tmp_path: Path) -> Leg:
    return Leg(tmp_path)


def test_a_leg_writes_a_file_runs_a_command_and_replies(leg: Leg) -> None:
    first = Turn(say("I write."), do.write("a.txt", "one\n"))
    taken = leg.play({"make it so": [first, do.run("wc -l < a.txt"), do.reply(DONE)]})
    assert (taken.ended_by, json.loads(taken.reply or b"")) == ("reply", DONE)
    assert (leg.root / "leg/a.txt").read_text() == "one\n"
    assert leg.texts("text") == ["I write."]
    assert leg.texts("result") == ["made `a.txt` (4 bytes)", "1", "taken"]
    assert [told.type for told in leg.told] == [
        *("text", "usage", "call", "result"),
        *("usage", "call", "result"),
        *("usage", "call", "result"),
    ]


def test_a_judge_has_no_tool_that_writes_and_its_reply_keeps_the_nonce(leg: Leg) -> None:
    taken = leg.play({"": [do.call("write", {"path": "a.txt", "content": "x"}), do.reply(APPROVE)]}, "judge")
    assert (taken.ended_by, json.loads(taken.reply or b"")["verdict"]) == ("reply", "approve")
    assert [tool["name"] for tool in leg.bodies[0]["tools"]] == ["bash", "search", "read", "reply"]
    assert leg.texts("result")[0] == "There is no tool `write`. There are `bash`, `search`, `read`, `reply`."
    assert not (leg.root / "leg/a.txt").exists()


def test_calls_of_one_turn_are_done_in_order_and_answered_together(leg: Leg) -> None:
    turn = Turn(do.write("a", "1"), do.run("cat a"), do.edit("a", "1", "2"), do.read("a"))
    leg.play({"": [turn, do.reply(DONE)]})
    assert leg.texts("result") == ["made `a` (1 bytes)", "1", "edited `a` at line 1", "     1\t2", "taken"]
    assert len(leg.bodies) == 2
    assert [block["type"] for block in leg.bodies[1]["messages"][-1]["content"]] == ["tool_result"] * 4


@pytest.mark.parametrize("first", [True, False])
def test_a_reply_beside_other_calls_is_not_taken_and_those_are_done(leg: Leg, *, first: bool) -> None:
    run, early = do.run("echo seen >> log.txt; exit 3"), do.reply(DONE)
    taken = leg.play({"": [Turn(early, run) if first else Turn(run, early), *[Turn(run, early)] * 2, do.reply(DONE)]})
    assert (taken.ended_by, taken.usage.turns) == ("reply", 4)
    assert (leg.root / "leg/log.txt").read_text() == "seen\n" * 3
    assert leg.said().count("Not taken: you have not seen what came of the other calls of this turn.") == 3
    assert [told.tool for told in leg.told if told.type == "result"] == ["bash", "reply"] * 3 + ["reply"]
    assert "Call `reply` alone" in leg.bodies[0]["system"][0]["text"]


def test_one_reply_beside_another_is_not_taken(leg: Leg) -> None:
    taken = leg.play({"": [Turn(do.reply(DONE), do.reply({"status": "blocked", "question": "Why?"})), do.reply(DONE)]})
    assert (taken.ended_by, taken.usage.turns) == ("reply", 2)


def test_a_reply_that_the_used_up_room_demands_is_taken_beside_calls_that_are_not_run(leg: Leg) -> None:
    full = do.run("true").but(usage=Usage(input=900_000))
    taken = leg.play({"": [full, Turn(do.reply(DONE), do.write("late.txt", "x"))]})
    assert taken.ended_by == "handover"
    assert not (leg.root / "leg/late.txt").exists()
    assert leg.texts("result")[1].startswith("Not run: the room for this session is used up.")


def test_a_reply_that_does_not_fit_gets_what_is_wrong_with_it(leg: Leg) -> None:
    taken = leg.play({"": [do.reply({"status": "finished"}), do.reply("{no json"), do.reply(DONE)]})
    assert taken.ended_by == "reply"
    first, second, _ = leg.texts("result")
    assert "$.status" in first
    assert "Call `reply` again" in second


def test_an_agent_that_cannot_go_on_says_so_by_its_reply(leg: Leg) -> None:
    blocked = {"status": "blocked", "question": "Which of the two?"}
    taken = leg.play({"": [do.reply(blocked)]})
    assert (taken.ended_by, json.loads(taken.reply or b"")) == ("reply", blocked)
    assert "call `reply` with status `blocked` and one clear `question`" in leg.bodies[0]["system"][0]["text"]


def test_a_third_reply_that_does_not_fit_is_the_last(leg: Leg) -> None:
    taken = leg.play({"": [do.reply({"status": "finished"})]})
    assert (taken.ended_by, taken.reply, len(leg.bodies)) == ("no-reply", None, 3)
    assert "3 replies did not fit" in (taken.problem or "")
    assert "$.status" in (taken.problem or "")


def test_a_tool_that_does_not_exist_is_answered_twice_with_those_that_do(leg: Leg) -> None:
    taken = leg.play({"": [do.call("browse", {"url": "x"})]})
    assert (taken.ended_by, len(leg.bodies)) == ("stuck", 3)
    assert taken.problem == "the agent called `browse`, a tool that does not exist"
    assert leg.texts("result")[0].startswith("There is no tool `browse`. There are `bash`,")


def test_arguments_that_are_no_json_are_answered_with_the_parse_error(leg: Leg) -> None:
    taken = leg.play({"": [do.call("bash", '{"command": "ls'), do.call("bash", {"cmd": "ls"}), do.reply(DONE)]})
    assert taken.ended_by == "reply"
    broken, unknown, _ = leg.texts("result")
    assert "were not understood: Input data was truncated" in broken
    assert "unknown field `cmd`" in unknown


def test_an_agent_that_talks_is_reminded_twice(leg: Leg) -> None:
    taken = leg.play({"": [say("Shall I?"), say("Really?"), do.reply(DONE)]})
    assert taken.ended_by == "reply"
    assert leg.said().count("You ended your turn without a call") == 2


def test_an_agent_that_only_talks_has_not_replied(leg: Leg) -> None:
    taken = leg.play({"": [say("It is done.")]})
    assert (taken.ended_by, len(leg.bodies)) == ("no-reply", 3)
    assert taken.problem == "the agent ended 3 turns in a row without a call"


def test_an_answer_that_was_cut_off_goes_on_once_and_none_of_its_calls_is_run(leg: Leg) -> None:
    cut = Turn(say("I will"), do.write("a.txt", "half"), stop="max_tokens")
    taken = leg.play({"": [cut, do.reply(DONE)]})
    assert taken.ended_by == "reply"
    assert not (leg.root / "leg/a.txt").exists()
    assert "Not run: the answer was cut off." in leg.said()


@pytest.mark.parametrize("kind", ["work", "judge"])
def test_two_answers_in_a_row_that_were_cut_off_are_no_reply(leg: Leg, kind: Kind) -> None:
    taken = leg.play({"": [Fault("max_tokens")]}, kind)
    assert (taken.ended_by, len(leg.bodies)) == ("no-reply", 2)
    assert "cut off at the greatest length" in (taken.problem or "")


def test_a_refusal_ends_the_leg(leg: Leg) -> None:
    taken = leg.play({"": [do.run("true"), Fault("refusal")]})
    assert (taken.ended_by, taken.problem) == ("refusal", "the model refused to go on")
    assert taken.usage.turns == 2


def test_the_same_call_three_times_is_nudged_once_and_then_ends_the_leg(leg: Leg) -> None:
    taken = leg.play({"": [do.run("cat nothing")]})
    assert (taken.ended_by, len(leg.bodies)) == ("stuck", 6)
    assert taken.problem == "after a nudge, the same call of `bash` was made 3 times in a row"
    assert leg.said().count("You seem to be going in a circle: the same call") == 1


def test_a_nudge_that_helps_is_enough(leg: Leg) -> None:
    taken = leg.play({"": [*[do.run("cat nothing")] * 3, do.run("ls"), do.reply(DONE)]})
    assert taken.ended_by == "reply"


def test_the_same_mistake_five_times_is_nudged(leg: Leg) -> None:
    wrong = [do.edit("a.txt", f"not there {number}", "x") for number in range(5)]
    leg.play({"": [do.write("a.txt", "text\n"), *wrong, do.reply(DONE)]})
    assert "`edit` failed 5 times in the same way: no match" in leg.said()


def test_a_success_in_between_forgives_a_mistake(leg: Leg) -> None:
    wrong = [do.edit("a.txt", f"not there {number}", "x") for number in range(4)]
    leg.play({"": [do.write("a.txt", "text\n"), *wrong, do.edit("a.txt", "text", "new"), *wrong, do.reply(DONE)]})
    assert "circle" not in leg.said()


def test_tests_that_fail_in_many_ways_are_no_circle(leg: Leg) -> None:
    turns = [Turn(do.write("a.txt", f"{number}\n"), do.run("cat a.txt; exit 1")) for number in range(6)]
    leg.play({"": [*turns, do.reply(DONE)]})
    assert "circle" not in leg.said()


def test_turns_that_look_at_nothing_new_are_a_circle(leg: Leg) -> None:
    known = [do.run("true"), do.run("echo a")]
    leg.play({"": [*known, *known * 13, do.reply(DONE)]})
    assert "in 25 turns no file was changed and nothing new was looked at" in leg.said()


def test_all_turns_used_is_the_end(leg: Leg) -> None:
    taken = leg.play({"": [do.run(f"echo {number}") for number in range(9)]}, turns=4)
    assert (taken.ended_by, taken.problem, taken.usage.turns) == ("budget", "all 4 turns of this leg are used", 4)


def test_all_tokens_used_is_the_end(leg: Leg) -> None:
    used = Usage(input=400, cached=300, output=100)
    taken = leg.play({"": [do.run("true").but(usage=used), do.run("false").but(usage=used)]}, tokens=1000)
    assert taken.ended_by == "budget"
    assert taken.problem == "1000 tokens are used, and this leg may use 1000"


def test_all_money_spent_is_the_end(leg: Leg) -> None:
    used = Usage(input=1000, cached=500, written=200, output=100)
    taken = leg.play({"": [do.run(f"echo {n}").but(usage=used) for n in range(9)]}, microusd=8000)
    assert (taken.ended_by, taken.cost_microusd) == ("budget", 8600)
    assert taken.problem == "$0.0086 are spent, and this leg may spend $0.0080"


def test_a_bound_on_money_and_a_model_without_a_price_do_not_go_together(leg: Leg) -> None:
    taken = leg.play({"": [do.reply(DONE)]}, microusd=8000, model="of-my-own-making")
    assert (taken.ended_by, taken.cost_microusd, leg.bodies) == ("budget", None, [])
    assert "price of this model is not known" in (taken.problem or "")


def test_a_gateway_that_names_another_model_costs_what_the_one_that_was_asked_does(leg: Leg) -> None:
    used = Usage(input=1000, cached=0, written=0, output=100)
    taken = leg.play({"": [do.reply(DONE).but(usage=used, model="gateway/opus")]}, microusd=1_000_000)
    assert (taken.ended_by, taken.model, taken.cost_microusd) == ("reply", "gateway/opus", 6000)


def test_an_unknown_price_is_unknown_and_not_zero(leg: Leg) -> None:
    taken = leg.play({"": [do.reply(DONE)]}, model="of-my-own-making")
    assert (taken.ended_by, taken.cost_microusd) == ("reply", None)


def test_the_time_of_a_leg_ends_its_command(leg: Leg) -> None:
    taken = leg.play({"": [do.run("sleep 600")]}, seconds=1.0)
    assert (taken.ended_by, taken.problem) == ("timeout", "did not end within 1 s")


def test_the_time_of_a_leg_ends_a_stream_that_says_nothing(leg: Leg) -> None:
    taken = leg.play({"": [Fault("stall"), do.reply(DONE)]}, seconds=0.5)
    assert (taken.ended_by, taken.usage.complete) == ("timeout", False)


def test_the_time_of_a_leg_ends_a_stream_that_only_trickles(leg: Leg) -> None:
    taken = leg.play({"": [Fault("slow", seconds=0.2), Turn("word " * 100)]}, seconds=0.5)
    assert taken.ended_by == "timeout"


def test_a_service_that_is_silent_for_too_long_is_idle(leg: Leg) -> None:
    taken = leg.play({"": [Fault("hang"), do.reply(DONE)]}, idle=0.3)
    assert (taken.ended_by, taken.problem) == ("idle", "the service sent nothing for 0.3 s")


def test_what_was_used_is_counted(leg: Leg) -> None:
    used = Usage(input=1000, cached=600, written=100, output=50, reasoning=20)
    turns = [do.read("a"), do.read("a"), do.run("ls"), do.write("b", "x"), do.edit("b", "x", "y"), do.reply(DONE)]
    (leg.root / "leg").mkdir()
    (leg.root / "leg/a").write_text("a\n")
    taken = leg.play({"": [turn.but(usage=used, model="claude-opus-5-5-20261101") for turn in turns]})
    usage = taken.usage
    assert (usage.input, usage.cached, usage.output, usage.reasoning) == (6000, 3600, 300, 120)
    assert (usage.turns, usage.turns_before_first_edit, usage.repeated_reads, usage.complete) == (6, 3, 1, True)
    assert (taken.model, taken.billing) == ("claude-opus-5-5-20261101", "api")
    assert (taken.session or "").startswith("msg_")
    assert leg.told[-3].usage == usage
    assert leg.told[-3].cost_microusd == taken.cost_microusd


def test_a_leg_without_an_edit_has_all_its_turns_before_the_first(leg: Leg) -> None:
    taken = leg.play({"": [do.run("ls"), do.reply(DONE)]})
    assert taken.usage.turns_before_first_edit == 2


def test_thoughts_are_told_and_go_back_as_they_came(leg: Leg) -> None:
    leg.play({"": [do.run("ls").but(thinking="I should look."), do.reply(DONE)]})
    assert leg.texts("thought") == ["I should look."]
    block = leg.bodies[1]["messages"][1]["content"][0]
    assert block == {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"}

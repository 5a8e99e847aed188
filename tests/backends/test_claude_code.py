"""The real Claude Code takes a leg: what it is given, what comes back, and what Relay learns of it."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relay.backends import claude_code
from relay.errors import Exit, RelayError
from relay.terms import Agent, Limits
from tests.backends import claude
from tests.backends.claude import Leg, replied
from tests.service import Fault, Hits, Script, Turn, Usage, do, say

Opened = Callable[[Script], Leg]

PRICED = Usage(input=1000, cached=0, written=0, output=100)
"""What a turn uses; by the list price of the model that is 3,000 and 1,500 millionths of a dollar."""
PRICE = 4500


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    with claude.opened(tmp_path, monkeypatch) as made:
        monkeypatch.setenv("ANTHROPIC_API_KEY", claude.KEY)
        yield made


def test_a_worker_changes_its_tree_replies_by_the_schema_and_is_told_step_by_step(opened: Opened) -> None:
    look = Turn(say("I look."), do.read("calc.py"), thinking="hm")
    check = do.run("python3 -c 'import calc; print(calc.add(2, 3))'")
    leg = opened({"": [look, claude.EDIT, check, do.read("calc.py"), do.reply(claude.DONE)]})
    taken = leg.take(leg.ask())
    assert replied(taken) == claude.DONE
    assert (leg.tree / "calc.py").read_text() == claude.FIXED
    assert [one.text for one in leg.of("text")] == ["I look."]
    assert [one.text for one in leg.of("thought")] == ["hm"]
    assert [one.tool for one in leg.of("call")] == ["Read", "Edit", "Bash", "Read", "StructuredOutput"]
    assert [one.id for one in leg.of("result")] == [one.id for one in leg.of("call")]
    assert leg.of("result")[2].text == "5"
    assert [one.turn for one in leg.of("usage")] == [1, 2, 3, 4, 5]
    assert leg.result()["subtype"] == "success"
    used = taken.usage
    assert (used.turns, used.turns_before_first_edit, used.repeated_reads, used.complete) == (5, 1, 1, True)
    assert used.input > used.cached > 0
    assert used.output > 0


def test_what_is_known_of_the_one_who_answered_is_known(opened: Opened) -> None:
    leg = opened({"": [do.reply(claude.DONE).but(usage=PRICED)]})
    asked = leg.ask()
    taken = leg.take(asked)
    assert taken.model == claude.MODEL
    assert re.fullmatch(r"2\.1\.\d+ \([0-9a-f]{12}\)", taken.version or "")
    assert taken.version == claude_code.preflight(asked.agent, leg.tree)
    assert taken.session == leg.service.requests[0].headers["x-claude-code-session-id"]
    assert (taken.billing, taken.cost_microusd) == ("api", PRICE)
    assert (taken.usage.input, taken.usage.cached, taken.usage.output) == (1000, 0, 100)


def test_the_program_gets_the_whole_prompt_and_nothing_of_what_the_person_set(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    leg = opened({"": [do.run("env"), do.reply(claude.DONE)]})
    prompt = f"{claude.PROMPT}\n" + "All of it. " * 20_000
    assert replied(leg.take(leg.ask(prompt=prompt))) == claude.DONE
    assert prompt in json.dumps(leg.service.requests[0].body, ensure_ascii=False).replace("\\n", "\n")
    env = leg.of("result")[0].text
    assert "hunter2" not in env
    assert f"HOME={os.environ['HOME']}" in env


def test_whoever_named_a_setting_of_the_program_in_env_meant_it(opened: Opened) -> None:
    leg = opened({"": [do.run("echo $BASH_MAX_TIMEOUT_MS $DISABLE_AUTO_COMPACT"), do.reply(claude.DONE)]})
    leg.take(leg.ask(env={"BASH_MAX_TIMEOUT_MS": "7000"}))
    assert leg.of("result")[0].text == "7000 1"


def test_a_command_ends_before_its_leg_counts_as_idle(opened: Opened) -> None:
    leg = opened({"": [do.run("sleep 0.1; sleep 30"), do.reply(claude.DONE)]})
    taken = leg.take(leg.ask(limits=Limits(seconds=100, idle=4)))
    assert taken.ended_by == "reply"
    assert not leg.of("result")[0].ok


def test_a_second_run_of_a_session_is_neither_paid_nor_counted_twice(opened: Opened) -> None:
    first = [say("I am done.").but(usage=PRICED)]
    leg = opened({"was not taken": [do.reply(claude.DONE).but(usage=PRICED)], "": first})
    taken = leg.take(leg.ask())
    assert replied(taken) == claude.DONE
    turns = len(leg.service.requests)
    assert turns == 3
    assert (taken.usage.turns, taken.usage.input, taken.usage.output) == (turns, turns * 1000, turns * 100)
    assert taken.cost_microusd == turns * PRICE


def test_a_worker_whose_context_is_used_up_hands_over_with_a_note(opened: Opened) -> None:
    note = {"status": "done", "summary": "half of it", "todo": ["the rest"]}
    big = Usage(input=130_000, cached=0, written=0, output=100)
    work = [do.read("calc.py").but(usage=PRICED), claude.EDIT.but(usage=big), do.run("touch too-late")]
    leg = opened({"room for this session": [do.reply(note).but(usage=PRICED)], "": Hits(work)})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, replied(taken)) == ("handover", note)
    assert (leg.tree / "calc.py").read_text() == claude.FIXED
    assert not (leg.tree / "too-late").exists()
    assert taken.usage.input >= 132_000
    assert taken.cost_microusd is not None
    assert taken.cost_microusd >= 390_000


def test_a_window_that_is_larger_is_used(opened: Opened) -> None:
    big = Usage(input=130_000, cached=0, written=0, output=100)
    leg = opened({"": [do.read("calc.py").but(usage=big), do.reply(claude.DONE)]})
    assert leg.take(leg.ask(window=1_000_000)).ended_by == "reply"


def test_a_judge_is_let_run_to_its_verdict(opened: Opened) -> None:
    big = Usage(input=130_000, cached=0, written=0, output=100)
    approve = do.reply(lambda _: {"verdict": "approve", "nonce": asked.nonce})
    leg = opened({"": [do.read("calc.py").but(usage=big), approve]})
    asked = leg.ask("judge")
    assert leg.take(asked).ended_by == "reply"


def test_a_note_that_does_not_come_is_no_reply(opened: Opened) -> None:
    big = Usage(input=130_000, cached=0, written=0, output=100)
    leg = opened({"room for this session": [say("No.")], "": [do.read("calc.py").but(usage=big)]})
    taken = leg.take(leg.ask())
    assert (taken.ended_by, taken.reply) == ("no-reply", None)


def test_a_program_that_is_not_there_or_leads_into_the_leg_is_not_run(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    leg = opened({"": [do.reply(claude.DONE)]})
    planted = leg.tree / "claude"
    planted.write_text("#!/bin/sh\ntouch mark\n")
    planted.chmod(0o755)
    monkeypatch.chdir(leg.tree)
    monkeypatch.setenv("PATH", ".::/usr/bin:/bin")
    with pytest.raises(RelayError, match="`claude` is not on PATH") as caught:
        claude_code.preflight(leg.ask().agent, leg.tree)
    assert caught.value.exit_code is Exit.HUMAN
    assert "`[agents.claude]`" in caught.value.hint
    assert leg.take(leg.ask()).ended_by == "setup"
    assert not (leg.tree / "mark").exists()


@pytest.mark.parametrize(
    ("says", "problem"),
    [("1.9.3 (Claude Code)", "is version 1.9.3, and 2.1 is needed"), ("hello", "does not say its version: hello")],
)
def test_a_program_of_another_age_or_kind_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, problem: str
) -> None:
    program = tmp_path / "claude"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(RelayError, match=re.escape(problem)):
        claude_code.preflight(Agent(name="claude", backend="claude-code", vendor="anthropic"), tmp_path)


def test_a_probe_is_one_tiny_call_that_says_who_answered(opened: Opened) -> None:
    leg = opened({"": [do.reply({"word": "ready"}).but(usage=PRICED)]})
    assert claude_code.probe(leg.ask().agent) == f"{claude.MODEL} answered, $0.0045, paid by api"
    assert len(leg.service.requests) == 1


def test_a_probe_that_fails_says_why(opened: Opened) -> None:
    leg = opened({"": [Fault("auth")]})
    with pytest.raises(RelayError) as caught:
        claude_code.probe(leg.ask().agent)
    assert caught.value.exit_code is Exit.HUMAN

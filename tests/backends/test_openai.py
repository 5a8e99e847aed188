"""OpenAI's Responses through the SDK itself: a whole leg, and what goes out for it."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relay.backends import openai, openai_service
from relay.backends.talk import Result, Tool
from relay.record import reply
from tests.backends.openai_legs import DONE, KEY, VARIABLE, agent, ask, played, take, talking
from tests.service import Service, Turn, Usage, do, say


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


def test_a_leg_writes_a_file_runs_a_command_and_replies(tmp_path: Path) -> None:
    script = {
        "": [
            Turn(say("I write."), do.write("a.txt", "one\n")),
            do.run("wc -l < a.txt; echo $((40 + 2))"),
            do.reply(DONE),
        ]
    }
    leg = played(tmp_path, script)
    assert (leg.taken.ended_by, json.loads(leg.taken.reply or b"")) == ("reply", DONE)
    assert (tmp_path / "leg/a.txt").read_text() == "one\n"
    assert "42" in leg.texts("result")[1]
    assert leg.texts("text") == ["I write."]
    assert (leg.taken.model, leg.taken.version, leg.taken.billing) == ("gpt-6-sol", openai_service.version(), "api")
    assert (leg.taken.session or "").startswith("resp")
    assert leg.taken.usage.turns == len(leg.bodies) == 3
    assert leg.taken.usage.complete


def test_requests_only_grow_at_their_end_and_name_one_cache(tmp_path: Path) -> None:
    script = {
        "": [*[do.run(f"echo {number}").but(thinking=f"I think of {number}.") for number in range(5)], do.reply(DONE)]
    }
    with Service(script) as service:
        leg = take(ask(tmp_path, agent(service)))
        bodies = [request.body for request in service.requests]
        again = take(ask(tmp_path, agent(service)))
        assert service.requests[-1].body["prompt_cache_key"] == bodies[0]["prompt_cache_key"]
    assert leg.taken.ended_by == again.taken.ended_by == "reply"
    for before, after in itertools.pairwise(bodies):
        sent = json.dumps(before["input"])[:-1]
        assert json.dumps(after["input"]).startswith(sent)
        assert len(after["input"]) > len(before["input"])
        assert {**before, "input": 0} == {**after, "input": 0}
    assert bodies[0]["store"] is False
    assert len(bodies[0]["prompt_cache_key"]) <= 64
    assert leg.taken.usage.cached > leg.taken.usage.input / 2


def test_legs_of_other_phases_and_runs_name_other_caches(tmp_path: Path) -> None:
    one = ask(tmp_path, agent(None))
    others = [msgspec.structs.replace(one, phase="review"), msgspec.structs.replace(one, run="261129-0231-other")]
    assert len({openai.cache(each) for each in (one, *others)}) == 3


def test_thoughts_go_back_sealed_and_calls_without_the_names_that_nobody_stored(tmp_path: Path) -> None:
    script = {"": [Turn(say("First this."), do.run("echo hi"), thinking="Hm."), do.reply(DONE)]}
    leg = played(tmp_path, script)
    first, second = leg.bodies
    assert first["include"] == ["reasoning.encrypted_content"]
    thought, message, call, result = second["input"][len(first["input"]) :]
    assert (thought["type"], thought["encrypted_content"], thought["id"][:2]) == ("reasoning", "c2VhbGVk", "rs")
    assert (message["type"], "id" in message, "id" in call) == ("message", False, False)
    assert (call["type"], call["call_id"]) == ("function_call", result["call_id"])
    assert leg.texts("thought") == ["Hm."]


@pytest.mark.parametrize(
    ("line", "thinks"),
    [
        ({"model": "gpt-6-sol"}, True),
        ({"model": "openai/o4-mini"}, True),
        ({"model": "gpt-4.1"}, False),
        ({"model": "gpt-5-chat-latest"}, False),
        ({"model": "qwen3-coder"}, False),
        ({"model": "qwen3-coder", "effort": "high"}, True),
    ],
)
def test_only_models_that_think_are_asked_for_sealed_thoughts(
    tmp_path: Path,
    line: Mapping[str, str],
    thinks: bool,  # noqa: FBT001 - a case
) -> None:
    [body] = played(tmp_path, {"": [do.reply(DONE)]}, **line).bodies
    assert ("include" in body) is thinks


def test_effort_and_the_longest_answer_are_as_the_line_says(tmp_path: Path) -> None:
    [body] = played(tmp_path, {"": [do.reply(DONE)]}, effort="low", max_output=900).bodies
    assert (body["reasoning"], body["max_output_tokens"], body["stream"]) == ({"effort": "low"}, 900, True)
    [plain] = played(tmp_path, {"": [do.reply(DONE)]}).bodies
    assert not {"reasoning", "max_output_tokens"} & plain.keys()


def test_a_schema_is_strict_only_where_the_service_would_take_it(tmp_path: Path) -> None:
    [body] = played(tmp_path, {"": [do.reply(DONE)]}).bodies
    strict = {tool["name"]: tool["strict"] for tool in body["tools"]}
    assert (strict["write"], strict["read"], strict["reply"]) == (True, False, False)
    assert {tool["type"] for tool in body["tools"]} == {"function"}
    assert not openai_service.fits_strictly(reply.schema("judge"))
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert openai_service.fits_strictly(closed)
    nested: dict[str, Any] = {**closed, "properties": {"a": {"type": "array", "items": {**closed, "required": []}}}}
    assert not openai_service.fits_strictly(nested)
    assert not openai_service.fits_strictly({**closed, "properties": {"a": {"type": "string", "minLength": 1}}})


def test_figures_are_the_services_own(tmp_path: Path) -> None:
    counted = Usage(input=1000, cached=600, written=300, output=50, reasoning=20)
    leg = played(tmp_path, {"": [do.run("true").but(usage=counted), do.reply(DONE).but(usage=counted)]})
    usage = leg.taken.usage
    assert (usage.input, usage.cached, usage.output, usage.reasoning) == (2000, 1200, 100, 40)


def test_text_is_heard_in_pieces_as_it_comes() -> None:
    spoken = "A sentence that is long enough for a handful of pieces. " * 4
    heard: list[str] = []
    with Service({"": [say(spoken)]}) as service, talking(service) as talk:
        talk.say("Speak.")
        turn = talk.send(heard.append, 30)
    pieces = [piece for piece in heard if piece]
    assert len(pieces) > 3
    assert "".join(pieces) == turn.texts[0] == spoken
    assert (turn.stop, turn.calls) == ("done", ())
    assert turn.context == turn.usage.input > 0


def test_who_hears_may_end_a_stream_by_an_error_of_its_own() -> None:
    class EnoughError(ValueError):
        pass

    def enough(_: str) -> None:
        raise EnoughError

    with Service({"": [say("So it begins.")]}) as service, talking(service) as talk:
        talk.say("Speak.")
        with pytest.raises(EnoughError):
            talk.send(enough, 30)
        assert talk.send(lambda _: None, 30).texts == ("So it begins.",)
        assert service.requests[0].body == service.requests[1].body


def test_an_old_result_can_be_left_out_and_nothing_else_changes() -> None:
    offered = [Tool(name="bash", description="Run.", schema={"type": "object"})]
    script = {"": [do.run("cat big"), do.run("cat small"), say("Done.")]}
    with Service(script) as service, talking(service, offered) as talk:
        talk.say("Look.")
        first = talk.send(lambda _: None, 30).calls[0].id
        talk.answer((Result(id=first, text="x" * 500),))
        second = talk.send(lambda _: None, 30).calls[0].id
        talk.answer((Result(id=second, text="y"),))
        talk.trim(first, "[left out]")
        talk.send(lambda _: None, 30)
        assert service.problems == []
        before, after = (request.body["input"] for request in service.requests[1:])
    assert [item["output"] for item in after if item["type"] == "function_call_output"] == ["[left out]", "y"]
    assert [item for item in after if item in before] == [item for item in before if item.get("output") != "x" * 500]

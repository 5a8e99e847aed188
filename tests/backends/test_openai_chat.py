"""Chat Completions: as OpenAI speaks them, and as servers of one's own do, which take the format lightly."""

import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from relay.backends.talk import Fault as Broken
from relay.backends.talk import Result, Talk, Tool, Turn
from tests.backends.openai_legs import DONE, KEY, VARIABLE, played, talking
from tests.service import Json, Service, Usage, do, say
from tests.service import Turn as Played

TOOLS = [Tool(name="bash", description="Run.", schema={"type": "object"})]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


def test_a_leg_writes_a_file_runs_a_command_and_replies(tmp_path: Path) -> None:
    script = {"": [Played(say("I write."), do.write("a.txt", "one\n")), do.run("wc -l < a.txt"), do.reply(DONE)]}
    leg = played(tmp_path, script, api="chat", model="qwen3-coder")
    assert (leg.taken.ended_by, json.loads(leg.taken.reply or b"")) == ("reply", DONE)
    assert (tmp_path / "leg/a.txt").read_text() == "one\n"
    assert leg.texts("text") == ["I write."]
    assert leg.taken.model == "qwen3-coder"
    assert leg.taken.cost_microusd is None
    assert leg.taken.usage.complete
    assert [message["role"] for message in leg.bodies[1]["messages"]] == ["system", "user", "assistant", "tool"]


def test_requests_only_grow_at_their_end(tmp_path: Path) -> None:
    script = {"": [*[do.run(f"echo {number}").but(thinking="Hm.") for number in range(4)], do.reply(DONE)]}
    leg = played(tmp_path, script, api="chat")
    for before, after in itertools.pairwise(leg.bodies):
        assert json.dumps(after["messages"]).startswith(json.dumps(before["messages"])[:-1])
        assert {**before, "messages": 0} == {**after, "messages": 0}
    assert len(leg.bodies) == 5


def test_what_only_openai_knows_is_not_sent_to_others(tmp_path: Path) -> None:
    [body] = played(tmp_path, {"": [do.reply(DONE)]}, api="chat", effort="low", max_output=900).bodies
    assert body.keys() == {
        *("model", "messages", "tools", "stream", "stream_options"),
        *("max_tokens", "reasoning_effort"),
    }
    assert body["stream_options"] == {"include_usage": True}
    assert {"strict"} & {name for tool in body["tools"] for name in tool["function"]} == set()


def test_figures_are_the_services_own(tmp_path: Path) -> None:
    counted = Usage(input=1000, cached=600, output=50, reasoning=20)
    usage = played(tmp_path, {"": [do.reply(DONE).but(usage=counted)]}, api="chat").taken.usage
    assert (usage.input, usage.cached, usage.output, usage.reasoning) == (1000, 600, 50, 20)


def test_a_thought_goes_back_under_its_name_where_calls_came_of_it(tmp_path: Path) -> None:
    script = {"": [do.run("true").but(thinking="Hm."), say("So.").but(thinking="Oh."), do.reply(DONE)]}
    leg = played(tmp_path, script, api="chat")
    answers = [message for message in leg.bodies[2]["messages"] if message["role"] == "assistant"]
    assert [message.get("reasoning_content") for message in answers] == ["Hm.", None]
    assert leg.texts("thought") == ["Hm.", "Oh."]


def test_an_old_result_can_be_left_out_and_nothing_else_changes() -> None:
    with Service({"": [do.run("cat big"), say("Done.")]}) as service, talking(service, TOOLS, api="chat") as talk:
        talk.say("Look.")
        name = talk.send(lambda _: None, 30).calls[0].id
        talk.answer((Result(id=name, text="x" * 500),))
        talk.trim(name, "[left out]")
        talk.send(lambda _: None, 30)
        assert service.requests[1].body["messages"][-1]["content"] == "[left out]"
        assert service.problems == []


# --- servers of one's own ---------------------------------------------------------------------------------------------


class Odd:
    """A server that sends the chunks it is given, a list for each request, and keeps what it was asked."""

    def __init__(self, answers: Sequence[Sequence[Json | str]]) -> None:
        self.asked: list[Json] = []
        left = iter(answers)
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for chunk in next(left):
                    data = chunk if isinstance(chunk, str) else json.dumps(chunk)
                    self.wfile.write(f"data: {data}\n\n".encode())

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def listening(self) -> Iterator[Talk]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with talking(None, TOOLS, api="chat", base_url=f"{self.url}/v1") as talk:
                yield talk
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:  # noqa: ANN401 - JSON
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def piece(name: str | None = None, arguments: Any = None, **more: Any) -> Json:  # noqa: ANN401 - JSON
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"tool_calls": [{"function": function, **more}]}


def answered(*chunks: Json | str) -> Turn:
    """Return the turn that comes of chunks."""
    odd = Odd([chunks])
    with odd.listening() as talk:
        talk.say("Go.")
        return talk.send(lambda _: None, 30)


END = chunk(finish="tool_calls")
LS, PWD = '{"command": "ls"}', '{"command": "pwd"}'


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(piece("bash", LS)), chunk(piece("bash", PWD)), END],
        [chunk(piece("bash", LS, index=0)), chunk(piece("bash", PWD, index=0)), END],
        [chunk(piece("bash", LS, index=0, id="a")), chunk(piece("bash", PWD, index=0, id="b")), END],
        [chunk({"tool_calls": piece("bash", LS)["tool_calls"] + piece("bash", PWD)["tool_calls"]}), END],
        [chunk(piece("bash", {"command": "ls"}, index=0)), chunk(piece("bash", {"command": "pwd"}, index=1)), END],
        [
            chunk(piece("bash", "", index=0, id="a")),
            chunk(piece(arguments=LS[:9], index=0)),
            chunk(piece(arguments=LS[9:], index=0)),
            chunk(piece("bash", "", index=1, id="b")),
            chunk(piece(arguments=PWD, index=1)),
            END,
        ],
        [
            chunk(piece("bash", LS[:9], index=0, id="a")),
            chunk(piece("bash", LS[9:], index=0, id="a")),
            chunk(piece("bash", PWD[:9], index=1, id="b")),
            chunk(piece("bash", PWD[9:], index=1, id="b")),
            END,
        ],
        [chunk(piece("bash", LS, index=0, id="a")), chunk(piece("bash", PWD, index=1, id="a")), chunk(finish="stop")],
        [chunk(piece("bash", LS)), chunk(piece("bash", PWD)), "[DONE]"],
    ],
    ids=["bare", "all-0", "ids-tell", "one-chunk", "objects", "pieces", "names-again", "one-id", "no-reason"],
)
def test_two_calls_are_two_calls_however_they_come(chunks: list[Json | str]) -> None:
    turn = answered(*chunks)
    assert [(call.tool, json.loads(call.arguments)["command"]) for call in turn.calls] == [
        ("bash", "ls"),
        ("bash", "pwd"),
    ]
    assert len({call.id for call in turn.calls}) == 2
    assert all(call.id for call in turn.calls)
    assert turn.stop == "calls"


def test_names_of_calls_differ_through_a_whole_conversation() -> None:
    odd = Odd([[chunk(piece("bash", LS, id="call_0")), END], [chunk(piece("bash", PWD, id="call_0")), END], [END]])
    with odd.listening() as talk:
        talk.say("Go.")
        names = []
        for _ in range(2):
            [call] = talk.send(lambda _: None, 30).calls
            talk.answer((Result(id=call.id, text="done"),))
            names.append(call.id)
        talk.send(lambda _: None, 30)
    assert len(set(names)) == 2
    assert [message["tool_call_id"] for message in odd.asked[-1]["messages"] if message["role"] == "tool"] == names


@pytest.mark.parametrize("broken", ['{"command": ', "ls -l", "[1]", ""])
def test_arguments_that_are_no_object_are_shown_as_they_are_and_go_back_as_one(broken: str) -> None:
    odd = Odd([[chunk(piece("bash", broken, id="a")), END], [chunk({"content": "Oh."}, "stop")]])
    with odd.listening() as talk:
        talk.say("Go.")
        [call] = talk.send(lambda _: None, 30).calls
        assert call.arguments == broken
        talk.answer((Result(id="a", text="that is no JSON", ok=False),))
        assert talk.send(lambda _: None, 30).texts == ("Oh.",)
    [sent] = odd.asked[1]["messages"][2]["tool_calls"]
    assert json.loads(sent["function"]["arguments"]) == {"arguments": broken}


def test_where_nobody_counts_the_figures_are_incomplete_and_the_room_is_guessed() -> None:
    odd = Odd([[chunk({"content": "Hi."}, "stop")]])
    with odd.listening() as talk:
        talk.say("x" * 40_000)
        turn = talk.send(lambda _: None, 30)
    assert (turn.usage.complete, turn.usage.input) == (False, 0)
    assert 10_000 <= turn.context < 11_000


def test_a_server_that_dropped_the_beginning_is_not_believed_about_the_room() -> None:
    usage = {"prompt_tokens": 2050, "completion_tokens": 3}
    odd = Odd([[chunk({"content": "Hi."}, "stop", usage=usage)]])
    with odd.listening() as talk:
        talk.say("x" * 40_000)
        turn = talk.send(lambda _: None, 30)
    assert (turn.usage.input, turn.usage.complete) == (2050, True)
    assert turn.context >= 10_000


def test_figures_without_details_are_figures() -> None:
    turn = answered(
        chunk({"content": "Hi."}, "stop"), {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    )
    assert (turn.usage.input, turn.usage.cached, turn.usage.output, turn.usage.complete) == (7, 0, 2, True)


@pytest.mark.parametrize(
    ("word", "stop"),
    [("stop", "done"), ("eos", "done"), ("length", "cut"), ("LENGTH", "cut"), ("content_filter", "refusal")],
)
def test_any_word_may_be_the_reason_to_stop(word: str, stop: str) -> None:
    assert answered(chunk({"content": "Hi."}, word)).stop == stop


def test_half_a_call_at_the_end_of_a_cut_off_answer_is_no_call() -> None:
    turn = answered(chunk(piece("bash", LS, index=0)), chunk(piece("bash", '{"comm', index=1)), chunk(finish="length"))
    assert (turn.stop, [call.arguments for call in turn.calls]) == ("cut", [LS])


@pytest.mark.parametrize(
    ("chunks", "kind"),
    [
        ([chunk({"content": "I beg"})], "overload"),
        ([chunk(piece("bash", LS))], "overload"),
        ([chunk({"content": "I beg"}, usage={"prompt_tokens": 7, "completion_tokens": 2})], "overload"),
        ([chunk(piece("bash", '{"comm'))], "overload"),
        ([], "overload"),
        ([chunk({"content": "I"}), {"error": {"code": 500, "message": "Context size has been exceeded."}}], "context"),
        ([{"error": {"message": "the model crashed", "type": "server_error"}}], "overload"),
        ([{"error": "unexpected server status"}], "overload"),
    ],
)
def test_a_stream_without_an_end_is_no_answer(chunks: list[Json | str], kind: str) -> None:
    with pytest.raises(Broken) as caught:
        answered(*chunks)
    assert caught.value.kind == kind


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_a_thought_has_either_name(name: str) -> None:
    turn = answered(chunk({name: "Let me "}), chunk({name: "see."}), chunk({"content": "Seen."}, "stop"))
    assert (turn.thoughts, turn.texts) == (("Let me see.",), ("Seen.",))


@pytest.mark.parametrize("chunks", [[chunk({"content": "Hi."}), "[DONE]"], [chunk({"content": "Hi."}, "stop")]])
def test_an_answer_ends_by_a_reason_or_by_the_end_of_its_stream(chunks: list[Json | str]) -> None:
    assert answered(*chunks).texts == ("Hi.",)

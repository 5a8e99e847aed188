"""The service of models that tests run against is what the vendors' own clients take it for."""

import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import anthropic
import httpx2
import openai
import pytest

from tests.service import Fault, Hits, Service, Turn, Usage, do, say
from tests.service.clients import KEY, Speech, Talk, carrier
from tests.service.script import Kind

WIRES: Final[tuple[Speech, ...]] = ("messages", "responses", "chat")
every_wire = pytest.mark.parametrize("wire", WIRES)
streamed_or_whole = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@every_wire
@streamed_or_whole
def test_a_conversation_is_played_turn_by_turn(wire: Speech, *, stream: bool) -> None:
    script = {"phase one": [Turn("I look.", do.run("ls -la"), do.run("pwd"), thinking="Where?"), say("Done ✓.")]}
    with Service(script) as service:
        talk = Talk(service, wire, stream)
        first, second = talk.ask("This is phase one."), talk.ask()
        assert (first.text, second.text, second.calls) == ("I look.", "Done ✓.", [])
        assert first.calls == [("bash", {"command": "ls -la"}), ("bash", {"command": "pwd"})]
        ends = {"messages": "tool_use end_turn", "responses": "completed completed", "chat": "tool_calls stop"}
        assert f"{first.stop} {second.stop}" == ends[wire]
        assert first.whole.usage.output_tokens > 0 if wire != "chat" else first.whole.usage.completion_tokens > 0
        assert [request.turn for request in service.requests] == [0, 1]
        assert service.problems == []


def test_the_newest_text_that_a_pattern_is_found_in_decides() -> None:
    script = {"phase one": [say("1a"), say("1b"), say("1c")], "write your note": [say("note")], "": [say("else")]}
    with Service(script) as service:
        talk = Talk(service, "chat")
        said = [talk.ask(text).text for text in ("phase one", "go on", "now write your note", "thanks")]
        assert said == ["1a", "1b", "note", "note"]
        assert Talk(service, "chat").ask("something").text == "else"


def test_who_tries_again_gets_the_same_turn_unless_it_is_counted_by_hits() -> None:
    turns = [say("a"), say("b")]
    with Service({"stateless": turns, "counted": Hits(turns)}) as service:
        assert [Talk(service, "messages").ask("stateless").text for _ in range(2)] == ["a", "a"]
        assert [Talk(service, "messages").ask("counted").text for _ in range(3)] == ["a", "b", "b"]


def test_what_the_script_does_not_foresee_is_a_problem_and_not_an_answer() -> None:
    with Service({"phase one": [do.reply(lambda _: 1 // 0)]}) as service:
        with pytest.raises(anthropic.BadRequestError, match="nothing for this request"):
            Talk(service, "messages").ask("phase two")
        with pytest.raises(openai.BadRequestError, match="see its problems"):
            Talk(service, "responses").ask("phase one")
        first, second = service.problems
        assert "phase two" in first
        assert "ZeroDivisionError" in second


END: Final = 1_800_000_000
FAILURES: Final[Sequence[tuple[Kind, int, str, int, str]]] = (
    ("rate_limit", 429, "rate limit of 50,000", 429, "Please try again in 2.5s"),
    ("quota", 429, "exceed your account's rate limit", 429, "exceeded your current quota"),
    ("credit", 400, "credit balance is too low", 429, "exceeded your current quota"),
    ("spend", 400, "You will regain access on 2027-01-15 at 08:00 UTC", 429, "hard limit"),
    ("auth", 401, "invalid x-api-key", 401, r"Incorrect API key provided: sk-secre\*+7890"),
    ("forbidden", 403, "does not have permission", 403, "does not have access"),
    ("not_found", 404, "model: m", 404, "model `m` does not exist"),
    ("overloaded", 529, "Overloaded", 503, "currently overloaded"),
    ("server", 500, "Internal server error", 500, "had an error while processing"),
    ("context", 400, "prompt is too long: 208310 tokens > 200000 maximum", 400, "context"),
    ("bad_request", 400, "Input should be a valid list", 400, "Invalid value"),
)


@every_wire
@pytest.mark.parametrize("failure", FAILURES, ids=[failure[0] for failure in FAILURES])
def test_a_failure_is_worded_as_the_vendor_words_it(wire: Speech, failure: tuple[Kind, int, str, int, str]) -> None:
    kind, *rest = failure
    status, words = rest[:2] if wire == "messages" else rest[2:]
    end = None if kind == "quota" else END
    with Service({"go": [Fault(kind, retry_after=2.5, times=1, resets_at=end), say("fine")]}) as service:
        talk = Talk(service, wire, stream=True)
        error = _refused(talk, "go")
        assert error.status_code == status
        assert re.search(str(words), error.message)
        assert error.response.headers["retry-after"] == "2.5"
        assert talk.ask().text == "fine"
        assert [(one.status, one.fault) for one in service.requests] == [(status, kind), (200, None)]


def _refused(talk: Talk, text: str, **more: object) -> anthropic.APIStatusError | openai.APIStatusError:
    """Ask, and return the error that comes back."""
    try:
        talk.ask(text, **more)
    except (anthropic.APIStatusError, openai.APIStatusError) as error:
        return error
    pytest.fail("it was answered")


def test_a_limit_says_when_it_ends() -> None:
    with Service({"go": [Fault("quota", resets_at=END)]}) as service:
        headers = _refused(Talk(service, "messages"), "go").response.headers
        assert headers["anthropic-ratelimit-requests-reset"] == "2027-01-15T08:00:00Z"
        assert headers["anthropic-ratelimit-unified-reset"] == str(END)
        told = _refused(Talk(service, "responses"), "go").body
        assert isinstance(told, Mapping)
        assert (told["type"], told["resets_at"]) == ("usage_limit_reached", END)


@every_wire
@streamed_or_whole
def test_a_refusal_and_a_cut_are_answers_and_turns_of_their_own(wire: Speech, *, stream: bool) -> None:
    cut_off = {"messages": "max_tokens", "responses": "max_output_tokens", "chat": "length"}
    script = {"phase one": [Fault("max_tokens", text="I beg"), Fault("refusal", text="No."), say("fine")]}
    with Service(script) as service:
        talk = Talk(service, wire, stream)
        cut = talk.ask("phase one")
        assert (cut.text, cut.stop) == ("I beg", cut_off[wire])
        refused = talk.ask("and then?")
        assert refused.stop == "refusal" if wire == "messages" else "No." in str(refused.whole.model_dump())
        assert talk.ask("and now?").text == "fine"


@every_wire
@pytest.mark.parametrize("kind", ["drop", "refuse", "malformed", "stream_error", "stall", "hang"])
def test_a_stream_that_breaks_reaches_the_client_as_an_error(wire: Speech, kind: Kind) -> None:
    errors = (anthropic.APIError, openai.APIError, httpx2.TransportError, ValueError)
    with Service({"go": [Fault(kind, times=1), say("fine " * 30)]}) as service:
        began = time.monotonic()
        try:
            broken = Talk(service, wire, stream=True, timeout=0.3).ask("go")
        except errors:
            pass
        else:
            assert (wire, kind, broken.whole.status) == ("responses", "stream_error", "failed")
        assert Talk(service, wire, stream=True).ask("go").text == "fine " * 30
        assert service.requests[0].fault == kind
    assert time.monotonic() - began < 10  # the waiting ends with the service


@every_wire
def test_a_slow_answer_is_whole_in_the_end(wire: Speech) -> None:
    with Service({"go": [Fault("slow", seconds=0.01), say("fine " * 30).but(delay=0.05)]}) as service:
        began = time.monotonic()
        assert Talk(service, wire, stream=True).ask("go").text == "fine " * 30
        assert time.monotonic() - began > 0.1


def test_an_error_of_the_api_may_be_any() -> None:
    with Service({"go": [Fault("status", status=418, type="teapot_error", message="short and stout")]}) as service:
        error = _refused(Talk(service, "messages"), "go")
        assert (error.status_code, error.type, "short and stout" in error.message) == (418, "teapot_error", True)


@every_wire
def test_what_a_turn_says_of_tokens_and_model_is_reported(wire: Speech) -> None:
    usage = Usage(input=1000, cached=600, written=100, output=50, reasoning=20)
    with Service({"go": [Turn("fine", usage=usage, model="m-2027-01-01")]}) as service:
        got = Talk(service, wire, stream=True).ask("go").whole
        assert got.model == "m-2027-01-01"
        told = got.usage.model_dump()
        if wire == "messages":
            names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
            assert [told[name] for name in names] == [300, 600, 100, 50]
            assert told["output_tokens_details"]["thinking_tokens"] == 20
        else:
            incoming, outgoing = ("prompt", "completion") if wire == "chat" else ("input", "output")
            assert (told[f"{incoming}_tokens"], told[f"{outgoing}_tokens"]) == (1000, 50)
            assert told[f"{incoming}_tokens_details"]["cached_tokens"] == 600
            assert told[f"{outgoing}_tokens_details"]["reasoning_tokens"] == 20


@every_wire
def test_a_call_without_its_result_is_refused_as_the_real_service_refuses_it(wire: Speech) -> None:
    with Service({"go": [do.run("ls"), say("fine")]}) as service:
        talk = Talk(service, wire)
        talk.ask("go")
        talk.history.pop()
        error = _refused(talk, "go on")
        assert error.status_code == 400
        assert re.search(r"without `tool_result`|No tool output found|did not have response messages", error.message)
        assert len(service.problems) == 1


def test_more_marks_than_the_cache_takes_are_refused() -> None:
    marked = {"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}
    with Service({"": [say("fine")]}) as service:
        assert "Found 5." in _refused(Talk(service, "messages"), "go", system=[marked] * 5).message
        assert Talk(service, "messages").ask("go", system=[marked] * 4).text == "fine"


def test_requests_are_noted_down_with_their_size_and_headers() -> None:
    with Service({"": [say("fine")]}) as service:
        Talk(service, "messages").ask("go")
        [request] = service.requests
        assert (request.path, request.headers["authorization"]) == ("/v1/messages", f"Bearer {KEY}")
        assert request.size == int(request.headers["content-length"])
        assert request.body["messages"] == [{"role": "user", "content": "go"}]


def test_what_else_clients_ask_is_answered_and_noted_apart() -> None:
    with Service({"": [say("fine")]}, models=["one", "two"]) as service, carrier() as client:
        assert client.head(service.url).status_code == 200
        assert client.get(f"{service.url}/v1/responses", headers={"upgrade": "websocket"}).status_code == 426
        assert client.post(f"{service.url}/v1/else", json={}).status_code == 404
        prompt = {"model": "m", "max_tokens": 9, "input": "go"}
        assert client.post(f"{service.url}/responses", json=prompt).json()["status"] == "completed"
        ours = anthropic.Anthropic(base_url=service.url, api_key=KEY, http_client=client)
        theirs = openai.OpenAI(base_url=f"{service.url}/v1", api_key=KEY, http_client=client)
        assert (
            [model.id for model in ours.models.list()] == [model.id for model in theirs.models.list()] == ["one", "two"]
        )
        assert ours.models.retrieve("three").id == theirs.models.retrieve("three").id == "three"
        assert ours.messages.count_tokens(model="m", messages=[{"role": "user", "content": "go"}]).input_tokens > 0
        assert (len(service.requests), len(service.others)) == (1, 8)


@pytest.mark.parametrize("wire", ["responses", "chat"])
@streamed_or_whole
def test_calls_may_be_wrong_in_every_way(wire: Speech, *, stream: bool) -> None:
    with Service(
        {"go": [do.call("bash", '{"command": ') + do.call("teleport", {"to": "the moon"}), say("fine")]}
    ) as service:
        talk = Talk(service, wire, stream)
        assert talk.ask("go").calls == [("bash", '{"command": '), ("teleport", {"to": "the moon"})]
        assert talk.ask().text == "fine"


def test_many_may_ask_at_once() -> None:
    with Service({"go": Hits([say(f"{n}") for n in range(40)])}) as service, ThreadPoolExecutor(8) as pool:
        said = pool.map(lambda _: Talk(service, "chat").ask("go").text, range(40))
        assert sorted(map(int, said)) == list(range(40))


def test_nothing_is_left_of_a_service_that_ended() -> None:
    with carrier() as client:
        with Service({"": [say("fine")]}) as service:
            client.head(service.url)
        assert [thread for thread in threading.enumerate() if thread.name == "service"] == []
        with pytest.raises(httpx2.TransportError):
            client.head(service.url)

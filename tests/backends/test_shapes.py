"""What a service says is taken with care: no receipt is sealed that nobody can read, no odd event ends Relay itself."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from relay.backends import loop, said
from relay.backends.sending import TRIES
from relay.backends.talk import Result, Turn
from relay.terms import Taken, Usage
from tests.backends import legs
from tests.backends.lanes import lane
from tests.backends.raw import APIS, DONE, Raw, reply, stream, take

NAMES = {
    "anthropic": ("input_tokens", "output_tokens", "cache_read_input_tokens"),
    "responses": ("input_tokens", "output_tokens", "total_tokens"),
    "chat": ("prompt_tokens", "completion_tokens", "total_tokens"),
}


def counted(api: str, *counts: object) -> dict[str, object]:
    return dict(zip(NAMES[api], counts, strict=False))


def played(root: Path, api: str, *events: Any, **line: Any) -> Taken:  # noqa: ANN401 - JSON
    """Take a leg whose only answer is these events, and look at it as whoever reads its receipt does."""
    with Raw(stream(*events)) as server:
        taken = take(root, api, server, line=line)
    assert msgspec.json.decode(msgspec.json.encode(taken), type=Taken) == taken
    return taken


@pytest.mark.parametrize("api", APIS)
def test_a_whole_number_may_be_written_with_a_point(tmp_path: Path, api: str) -> None:
    taken = played(tmp_path, api, *reply(api, counted(api, 10.0, 3.0)))
    assert (taken.ended_by, taken.usage.input, taken.usage.output, taken.usage.complete) == ("reply", 10, 3, True)
    assert type(taken.usage.input) is int


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("count", [5.5, -7, "12", True, 10**13, [1], {"a": 1}, 1e300], ids=str)
def test_a_count_that_is_none_leaves_the_figures_a_lower_bound(tmp_path: Path, api: str, count: object) -> None:
    taken = played(tmp_path, api, *reply(api, counted(api, 10, count)))
    assert (taken.ended_by, taken.usage.input, taken.usage.output, taken.usage.complete) == ("reply", 10, 0, False)
    taken = played(tmp_path, api, *reply(api, counted(api, count, 3)))
    assert (taken.ended_by, taken.usage.input, taken.usage.complete) == ("reply", 0, False)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("usage", ["many", 5, [1]], ids=str)
def test_figures_that_are_none_cost_no_answer(tmp_path: Path, api: str, usage: object) -> None:
    taken = played(tmp_path, api, *reply(api, usage))
    assert (taken.ended_by, taken.usage.complete, taken.usage.turns) == ("reply", False, 1)


@pytest.mark.parametrize("detail", ["many", {"cached_tokens": -1}, {"cached_tokens": 0.5}], ids=str)
def test_details_that_are_none_are_left_out(tmp_path: Path, detail: object) -> None:
    taken = played(tmp_path, "chat", *reply("chat", {"prompt_tokens": 10, "prompt_tokens_details": detail}))
    assert (taken.usage.input, taken.usage.cached, taken.usage.complete) == (10, 0, False)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("odd", [9, ["a"], {"a": 1}, "\ud800", "a\x1b[2J", "x" * 1000], ids=ascii)
def test_a_name_that_is_none_is_not_taken(tmp_path: Path, api: str, odd: object) -> None:
    taken = played(tmp_path, api, *reply(api, counted(api, 10, 3), id=odd, model=odd), price=(1.0, 2.0))
    asked = "claude-opus-5-5" if api == "anthropic" else "gpt-6-sol"
    assert (taken.ended_by, taken.session, taken.model, taken.cost_microusd) == ("reply", None, asked, 16)


class Liar:
    """A conversation of a backend that looks at nothing: what it says is sealed, unless somebody looks at last."""

    def say(self, text: str) -> None:
        """Forget it."""

    def answer(self, results: tuple[Result, ...]) -> None:
        """Forget it."""

    def trim(self, id: str, text: str) -> None:  # noqa: A002 - as in the Protocol
        """Forget it."""

    def hang_up(self) -> None:
        """Do nothing."""

    def send(self, heard: object, seconds: float) -> Turn:
        """Say what is of another type than it claims to be."""
        del heard, seconds
        odd: Any = 5
        return Turn(stop="refusal", model=odd, usage=Usage(input=2, turns=1), context=2)


def test_what_nobody_could_read_later_ends_the_leg_with_a_reason_instead(tmp_path: Path) -> None:
    asked = legs.ask(tmp_path, legs.agent("http://127.0.0.1:1"))
    taken = loop.run(asked, lane(asked), Liar(), price=lambda _: 0, window=1000)
    assert (taken.ended_by, taken.usage.complete, taken.cost_microusd) == ("crash", False, None)
    assert "the leg ended by `refusal`" in (taken.problem or "")
    assert "`$.model`" in (taken.problem or "")
    assert msgspec.json.decode(msgspec.json.encode(taken), type=Taken) == taken


# --- whole JSON that is no event of the protocol --------------------------------------------------------------------


def anthropic(number: int, event: object) -> list[Any]:
    """Return a reply with another event in the place of one of its own."""
    return [event if at == number else own for at, own in enumerate(reply("anthropic"))]


def block(**block: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": 0, "content_block": block}


def delta(index: object = 0, **delta: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def item(item: object) -> dict[str, object]:
    return {"type": "response.output_item.done", "item": item}


def chunk(**delta: object) -> dict[str, object]:
    return {"choices": [{"delta": delta, "finish_reason": "stop"}]}


ENDED = {"type": "response.completed", "response": {"status": "completed", "output": None}}
CALL = {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}
NO_EVENTS: list[tuple[str, list[Any]]] = [
    *((api, [event, *reply(api)]) for api in APIS for event in (None, [1], "x", 5)),
    ("anthropic", [{"a": 1}, *reply("anthropic")]),
    ("anthropic", [{"type": 5}, *reply("anthropic")]),
    ("anthropic", anthropic(0, {"type": "message_start"})),
    ("anthropic", anthropic(0, {"type": "message_start", "message": "x"})),
    ("anthropic", anthropic(1, {"type": "content_block_start", "index": 0})),
    ("anthropic", anthropic(1, block(id="a", name="bash"))),
    ("anthropic", anthropic(1, block(type="tool_use", name="bash", input={}))),
    ("anthropic", anthropic(1, block(type="tool_use", id="a", input={}))),
    ("anthropic", anthropic(1, block(type="tool_use", id=5, name="bash"))),
    ("anthropic", anthropic(1, block(type="tool_use", id="a", name="\ud800"))),
    ("anthropic", anthropic(1, block(type="text", text=5))),
    ("anthropic", anthropic(2, {"type": "content_block_delta", "index": 0})),
    ("anthropic", anthropic(2, delta(7, type="text_delta", text="x"))),
    ("anthropic", anthropic(2, delta("0", type="text_delta", text="x"))),
    ("anthropic", anthropic(2, delta(type="input_json_delta", partial_json={"a": 1}))),
    ("anthropic", anthropic(3, {"type": "message_delta"})),
    ("anthropic", anthropic(3, {"type": "message_delta", "delta": {"stop_reason": 5}})),
    ("responses", [{"a": 1}, *reply("responses")]),
    ("responses", [{"type": "response.output_item.done"}, *reply("responses")]),
    ("responses", [item(None), *reply("responses")]),
    ("responses", [item({"content": []}), *reply("responses")]),
    ("responses", [item({**CALL, "call_id": None}), ENDED]),
    ("responses", [item({**CALL, "call_id": ""}), ENDED]),
    ("responses", [item({**CALL, "arguments": 5}), ENDED]),
    ("responses", [item({**CALL, "name": "\ud800"}), ENDED]),
    ("responses", [item({"type": "message", "content": [None]}), ENDED]),
    ("responses", [ENDED]),
    ("responses", [{"type": "response.completed"}]),
    ("responses", [{"type": "response.completed", "response": {"output": [None]}}]),
    ("chat", [{"choices": [None]}, *reply("chat")]),
    ("chat", [{"choices": {}}, *reply("chat")]),
    ("chat", [chunk(content=5), *reply("chat")]),
    ("chat", [chunk(tool_calls=[None]), *reply("chat")]),
    ("chat", [chunk(tool_calls=[{"function": "x"}]), *reply("chat")]),
]


@pytest.mark.parametrize(("api", "events"), NO_EVENTS, ids=lambda value: ascii(value)[:60])
def test_whole_json_that_is_no_event_is_asked_again_and_given_up_at_last(
    tmp_path: Path, api: str, events: list[Any]
) -> None:
    with Raw(stream(*events), stream(*reply(api))) as server:
        assert take(tmp_path, api, server).ended_by == "reply"
        assert len(server.asked) == 2
    with Raw(stream(*events)) as server:
        taken = take(tmp_path, api, server)
        assert (taken.ended_by, len(server.asked)) == ("overload", TRIES)
    assert "what is no answer" in (taken.problem or "")


def test_depth_beyond_all_sense_is_no_event(tmp_path: Path) -> None:
    deep = b'{"type": "ping", "choices": [], "a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for api in APIS:
        with Raw(stream(deep, *reply(api)), stream(*reply(api))) as server:
            assert take(tmp_path, api, server).ended_by == "reply"
            assert len(server.asked) == 2


@pytest.mark.parametrize("api", APIS)
def test_arguments_may_be_an_object(tmp_path: Path, api: str) -> None:
    with Raw(stream(*reply(api, arguments=DONE))) as server:
        taken = take(tmp_path, api, server)
    assert (taken.ended_by, msgspec.json.decode(taken.reply or b"")) == ("reply", DONE)


@pytest.mark.parametrize("content", [["a", {"type": "text", "text": "b"}, {"type": "image"}, 5], "ab"], ids=str)
def test_a_text_may_come_in_parts(tmp_path: Path, content: object) -> None:
    told: list[Any] = []
    with Raw(stream(chunk(content=content), b"[DONE]"), stream(*reply("chat"))) as server:
        assert take(tmp_path, "chat", server, told=told).ended_by == "reply"
    assert [one.text for one in told if one.type == "text"] == ["ab"]


def test_a_text_of_an_item_may_stand_alone(tmp_path: Path) -> None:
    told: list[Any] = []
    spoken = [item({"type": "message", "content": "ab"}), {"type": "response.completed", "response": {}}]
    with Raw(stream(*spoken), stream(*reply("responses"))) as server:
        assert take(tmp_path, "responses", server, told=told).ended_by == "reply"
    assert [one.text for one in told if one.type == "text"] == ["ab"]


def test_half_a_letter_goes_no_further(tmp_path: Path) -> None:
    told: list[Any] = []
    halves = [{"choices": [{"delta": {"content": half}}]} for half in ("\ud83d", "\ude00 \ud800")]
    with Raw(stream(*halves, b"[DONE]"), stream(*reply("chat"))) as server:
        assert take(tmp_path, "chat", server, told=told).ended_by == "reply"
        assert "\N{GRINNING FACE} \ufffd".encode() in server.asked[1].body
    assert [one.text for one in told if one.type == "text"] == ["\N{GRINNING FACE} \ufffd"]


@pytest.mark.parametrize("api", APIS)
def test_half_a_letter_in_an_error_is_not_sealed(tmp_path: Path, api: str) -> None:
    body = b'{"error": {"type": "invalid_request_error", "message": "no \\ud800"}}'
    head = b"HTTP/1.1 400 No\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    with Raw(lambda: [head, body]) as server:
        taken = take(tmp_path, api, server)
    assert taken.ended_by == "setup"
    assert (taken.problem or "").endswith("no ?")


def test_what_comes_after_the_end_of_an_answer_costs_no_answer(tmp_path: Path) -> None:
    with Raw(stream(*reply("anthropic"), b"{half")) as server:
        assert take(tmp_path, "anthropic", server).ended_by == "reply"
        assert len(server.asked) == 1


def test_counts_are_read_where_they_stand() -> None:
    counts = said.Counts({"a": 1, "b": None, "c": {"d": 2.0}})
    assert (counts("a"), counts("b"), counts("c", "d"), counts("c", "e"), counts("f", "g"), counts.odd) == (
        *(1, 0, 2, 0, 0),
        False,
    )
    assert (counts("a", "b"), counts.odd) == (0, True)

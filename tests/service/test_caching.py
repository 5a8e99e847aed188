"""What was sent before and would not have been read from a cache is counted, and usage is reported as it would be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from tests.service import Json, Service, say, uncovered
from tests.service.caching import Cache
from tests.service.clients import carrier

MARK: Final = {"cache_control": {"type": "ephemeral"}}
LONG: Final = "x" * 4000


@dataclass(frozen=True)
class Sent:
    """A request, as far as it matters here."""

    body: Json
    path: str = "/v1/messages"
    accepted: bool = True


def _text(text: str, *, mark: bool = False) -> Json:
    return {"type": "text", "text": text} | (MARK if mark else {})


def _messages(blocks: Sequence[Json], *, model: str = "m", system: Sequence[Json] = ()) -> Sent:
    """Say one block after another, by turns."""
    speakers = ("user", "assistant")
    said = [{"role": speakers[at % 2], "content": [block]} for at, block in enumerate(blocks)]
    return Sent({"model": model, "system": list(system), "messages": said})


def _size(block: Json) -> int:
    """Return the bytes of a block as they count."""
    return Cache().prefixes("/v1/messages", {"model": "m", "messages": [{"role": "user", "content": [block]}]}).ends[0]


def test_a_mark_that_moves_forward_covers_everything() -> None:
    sent = [_messages([*map(_text, "abcdefg"[: 2 * turn]), _text("abcdefg"[2 * turn], mark=True)]) for turn in range(4)]
    assert uncovered(sent) == [0, 0, 0, 0]


def test_what_stands_after_the_last_mark_is_uncovered_when_it_is_sent_again() -> None:
    system = [_text(LONG, mark=True)]
    first = _messages([_text("abc")], system=system)
    second = _messages([_text("abc"), _text("d"), _text("e")], system=system)
    third = _messages([_text("abc"), _text("d"), _text("e"), _text("f"), _text("g")], system=system)
    abc, short = _size(_text("abc")), _size(_text("d"))
    assert uncovered([first, second, third]) == [0, abc, abc + 2 * short]


def test_without_a_mark_all_that_is_sent_again_is_uncovered() -> None:
    first, second = _messages([_text(LONG)]), _messages([_text(LONG), _text("b"), _text("c")])
    assert uncovered([first, second]) == [0, _size(_text(LONG))]


@pytest.mark.parametrize(("blocks", "covered"), [(20, True), (21, False)])
def test_a_mark_is_looked_for_twenty_blocks_back(blocks: int, *, covered: bool) -> None:
    first = _messages([_text(LONG, mark=True)])
    texts = [_text(LONG), *(_text(f"{n}") for n in range(blocks - 2))]
    second = _messages([*texts, _text("end", mark=True)])
    assert uncovered([first, second]) == [0, 0 if covered else _size(_text(LONG))]


def test_a_change_at_the_start_leaves_nothing_that_was_sent_before() -> None:
    first = _messages([_text("a", mark=True)], system=[_text("at noon")])
    second = _messages([_text("a", mark=True)], system=[_text("at one")])
    other = _messages([_text("a", mark=True)], system=[_text("at noon")], model="other")
    assert uncovered([first, second, other]) == [0, 0, 0]


def test_another_conversation_counts_only_where_it_is_asked_for() -> None:
    system = [_text(LONG)]
    sent = [_messages([_text(text, mark=True)], system=system) for text in ("one", "two")]
    assert uncovered(sent) == [0, 0]
    assert uncovered(sent, across=True) == [0, _size(_text(LONG))]


def test_what_was_not_answered_was_not_sent_and_is_not_kept() -> None:
    plain = _messages([_text(LONG)])
    assert uncovered([Sent(plain.body, accepted=False), plain]) == [0, 0]


def test_a_mark_inside_the_result_of_a_tool_counts() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [_text("out", mark=True)]}
    bare = {"type": "tool_result", "tool_use_id": "t", "content": [_text("out")]}
    assert uncovered([_messages([_text("a"), _text("b"), result]), _messages([_text("a"), _text("b"), bare])]) == [
        0,
        _size(_text("a")) + _size(_text("b")) + _size(bare),  # the second one has no mark at which it could read
    ]
    again = _messages([_text("a"), _text("b"), bare, _text("c"), _text("d", mark=True)])
    assert uncovered([_messages([_text("a"), _text("b"), result]), again]) == [0, 0]


def test_a_mark_on_the_request_is_one_on_its_last_block() -> None:
    first, second = _messages([_text(LONG)]), _messages([_text(LONG), _text("b"), _text("c")])
    assert uncovered([Sent(first.body | MARK), Sent(second.body | MARK)]) == [0, 0]


def _responses(key: str | None, *texts: str) -> Sent:
    said = [{"role": "user", "content": text} for text in texts]
    body = {"model": "m", "instructions": LONG, "input": said} | ({"prompt_cache_key": key} if key else {})
    return Sent(body, "/v1/responses")


def test_openai_keeps_by_itself_what_has_the_same_key() -> None:
    assert uncovered([_responses("k", "a"), _responses("k", "a", "b")]) == [0, 0]
    first, second = uncovered([_responses("k", "a"), _responses("l", "a", "b")])
    assert first == 0
    assert second > len(LONG)


def test_usage_says_what_was_read_and_what_was_written() -> None:
    system = [_text(LONG, mark=True)]
    sent = [
        _messages([_text("a")], system=system),
        _messages([_text("a"), _text("b" * 400), _text("c", mark=True)], system=system),
        _messages([_text("a"), _text("b" * 400), _text("c"), _text("d"), _text("e" * 40)], system=system),
    ]
    with Service({"": [say("fine")]}) as service, carrier() as client:
        told = []
        for one in sent:
            usage = client.post(service.url + one.path, json=one.body | {"max_tokens": 9}).json()["usage"]
            told.append([usage[f"{name}input_tokens"] for name in ("cache_read_", "cache_creation_", "")])
        kept = _size(system[0]) // 4
        assert told[0][:2] == [0, kept]
        assert told[1][0] == kept
        assert 100 < told[1][1] < 140
        assert told[1][2] == 0
        assert told[2][:2] == [kept, 0]  # no mark after the system's text, so no more is looked for
        assert told[2][2] > 110
        asked = [client.post(service.url + one.path, json=one.body).json() for one in [_responses("k", "a")] * 2]
        cached = [answer["usage"]["input_tokens_details"]["cached_tokens"] for answer in asked]
        assert cached == [0, asked[1]["usage"]["input_tokens"]]

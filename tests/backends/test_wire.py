"""What comes over the wire: events however their bytes are cut, and requests that go nowhere else."""

from pathlib import Path

import pytest

from relay.backends import wire
from tests.backends.raw import APIS, HEAD, Raw, reply, stream, take
from tests.service import Service, say

WORDS = ["a", "b\nc", "\N{GRINNING FACE}\u2028\x85d", "e"]
STREAM = (
    b": hello\r\n\r\nevent: x\ndata: a\n\ndata:b\ndata:c\nid: 5\n\n\r\n"
    + f"data: {WORDS[2]}".encode()
    + b"\r\n\r\nevent: ping\n\ndata:\n\ndatabase: x\n\ndata: e"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_events_are_the_same_however_their_bytes_are_cut(size: int) -> None:
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert list(wire.data(pieces)) == WORDS


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert list(wire.data([b"data: a\xff\xc3\n\n"])) == ["a\ufffd\ufffd"]


def test_an_answer_that_does_not_end_is_not_kept_without_end() -> None:
    piece = b"x" * (1 << 20)
    heard = 0

    def endless() -> object:
        nonlocal heard
        while True:
            heard += 1
            yield piece

    with pytest.raises(ValueError, match="an answer of more than"):
        list(wire.data(endless()))  # type: ignore[arg-type]
    assert heard == (wire.MOST >> 20) + 1


@pytest.mark.parametrize("api", APIS)
def test_an_answer_with_a_byte_that_is_no_text_is_an_answer(tmp_path: Path, api: str) -> None:
    pieces = [piece.replace(b"wrote it", b"wrote \xff it") for piece in stream(*reply(api))()]
    with Raw(lambda: pieces) as server:
        taken = take(tmp_path, api, server)
    assert (taken.ended_by, len(server.asked)) == ("reply", 1)
    assert "wrote \ufffd it" in (taken.reply or b"").decode()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_conversation_does_not_follow_a_redirect(tmp_path: Path, api: str, status: int) -> None:
    with Service({"": [say("Come in.")]}) as elsewhere:
        head = f"HTTP/1.1 {status} Gone\r\nlocation: {elsewhere.url}/v1/x\r\ncontent-length: 0\r\n\r\n".encode()
        with Raw(lambda: [head]) as server:
            taken = take(tmp_path, api, server)
        assert (taken.ended_by, len(server.asked)) == ("setup", 1)
        assert f"answered {status}: it sends one elsewhere, to `{elsewhere.url}/v1/x`" in (taken.problem or "")
        assert (elsewhere.requests, elsewhere.others) == ([], [])


@pytest.mark.parametrize("api", APIS)
def test_an_event_may_say_that_the_stream_is_complete(tmp_path: Path, api: str) -> None:
    whole = [*reply(api), b"[DONE]", b"{half"]
    with Raw(lambda: [HEAD, *(piece for piece in stream(*whole)() if piece != HEAD)]) as server:
        assert take(tmp_path, api, server).ended_by == "reply"
        assert len(server.asked) == 1

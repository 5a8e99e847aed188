"""The end of a leg's time holds whatever a service sends: a byte now and then keeps nobody waiting."""

import threading
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from tests.backends.raw import APIS, HEAD, SLOWLY, Answer, Raw, reply, stream, take
from tests.service.wire import stream_head

_OPEN = Path("/proc/self/fd")
MANY = 400
"""Pieces of an answer: were they heard to their end, the server would not find itself hung up on."""
ERROR = b"HTTP/1.1 500 No\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n"


def endless(*begin: bytes, piece: bytes) -> Answer:
    return lambda: chain(begin, repeat(piece, MANY))


TRICKLES = {
    "comments": endless(HEAD, piece=b": keep-alive\n\n"),
    "comments-in-chunks": endless(stream_head({}), piece=b"e\r\n: keep-alive\n\n\r\n"),
    "headers": endless(b"HTTP/1.1 200 OK\r\n", piece=b"x-a: b\r\n"),
    "half-a-header": endless(b"HTTP/1.1 200 OK\r\nx-a: ", piece=b"b"),
    "one-event": endless(HEAD, b'data: {"type": "', piece=b"x"),
    "half-a-chunk": endless(stream_head({}), b"ffff\r\n", piece=b"x"),
    "an-error": endless(ERROR, piece=b" "),
    "redirect": endless(ERROR.replace(b"500", b"307"), piece=b" "),
}


@pytest.fixture
def _nothing_left() -> Iterator[None]:
    """See to it that neither a thread nor a socket outlives a leg."""
    threads, files = threading.active_count(), len(list(_OPEN.iterdir()))
    yield
    assert threading.active_count() == threads
    assert len(list(_OPEN.iterdir())) == files


@pytest.fixture(autouse=True)
def _imported() -> None:
    """Import the SDKs first: some of what they load stays open."""
    for api in ("anthropic", "openai"):
        __import__(api)


@pytest.mark.usefixtures("_nothing_left")
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("kind", TRICKLES)
def test_a_trickle_does_not_outlive_a_leg(tmp_path: Path, api: str, kind: str) -> None:
    with Raw(TRICKLES[kind], pause=SLOWLY) as server:
        taken = take(tmp_path, api, server, seconds=0.5)
    assert (taken.ended_by, taken.problem) == ("timeout", "did not end within 0.5 s")
    assert (len(server.asked), server.gone) == (1, 1)


@pytest.mark.usefixtures("_nothing_left")
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("kind", ["comments", "headers", "one-event", "an-error"])
def test_a_trickle_without_a_word_is_silence(tmp_path: Path, api: str, kind: str) -> None:
    with Raw(TRICKLES[kind], pause=SLOWLY) as server:
        taken = take(tmp_path, api, server, idle=0.4)
    assert (taken.ended_by, taken.problem) == ("idle", "the service sent nothing for 0.4 s")
    assert (len(server.asked), server.gone) == (1, 1)


@pytest.mark.parametrize("api", APIS)
def test_comments_for_a_while_are_patience_and_no_silence(tmp_path: Path, api: str) -> None:
    def waited() -> Iterator[bytes]:
        yield HEAD
        yield from repeat(b": in the queue\n\n", 10)
        yield from list(stream(*reply(api))())[1:]

    with Raw(waited, pause=SLOWLY) as server:
        assert take(tmp_path, api, server, idle=30.0).ended_by == "reply"


@pytest.mark.usefixtures("_nothing_left")
def test_a_reply_that_is_whole_is_taken_though_the_service_goes_on_whispering(tmp_path: Path) -> None:
    whole = list(stream(*reply("anthropic"))())
    with Raw(endless(*whole, piece=b": more\n\n"), pause=SLOWLY) as server:
        assert take(tmp_path, "anthropic", server, seconds=1.0).ended_by == "reply"
    assert server.gone == 1


def test_a_service_that_takes_its_time_between_words_is_heard_out(tmp_path: Path) -> None:
    with Raw(stream(*reply("anthropic")), pause=0.2) as server:
        assert take(tmp_path, "anthropic", server, idle=0.9).ended_by == "reply"

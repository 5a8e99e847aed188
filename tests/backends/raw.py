"""A server that sends what it is given, byte by byte if need be, and legs of each protocol that are taken with it."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from relay.backends import anthropic, openai
from relay.terms import Kind, Taken, Told
from tests.backends import legs, openai_legs
from tests.backends.lanes import lane
from tests.service import Json, Message
from tests.service.wire import Connection, Gone

APIS: Final = ("anthropic", "responses", "chat")
HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
DONE: Final = {"status": "done", "summary": "wrote it"}
SLOWLY: Final = 0.02
"""Seconds between two pieces."""

Answer = Callable[[], Iterable[bytes]]


class Raw:
    """Answers one request after the other with the pieces it is given, hanging up after each; the last one repeats.

    `gone` counts the connections that the client closed while there was more to say.
    """

    def __init__(self, *answers: Answer, pause: float = 0.0) -> None:
        self.asked: list[Message] = []
        self.gone = 0
        self._answers, self._pause = answers, pause
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._listen, daemon=True)]
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(Connection(raw),), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: Connection) -> None:
        try:
            self.asked.append(connection.read())
            for piece in self._answers[min(len(self.asked), len(self._answers)) - 1]():
                connection.send(piece)
                time.sleep(self._pause)
        except Gone:
            self.gone += 1
        finally:
            connection.release()


def stream(*events: object) -> Answer:
    """Return an answer of events, each JSON or as it stands."""
    return lambda: [HEAD, *(b"data: %b\n\n" % _text(event) for event in events)]


def _text(event: object) -> bytes:
    return event if isinstance(event, bytes) else json.dumps(event).encode()


def take(
    root: Path,
    api: str,
    server: Raw,
    kind: Kind = "work",
    told: list[Told] | None = None,
    line: dict[str, Any] | None = None,
    **limits: Any,  # noqa: ANN401 - whatever a limit may be
) -> Taken:
    """Take a leg with a server by a protocol; its waits are not waited."""
    heard = [] if told is None else told
    if api == "anthropic":
        asked = legs.ask(root, legs.agent(server.url, **line or {}), kind, **limits)
        return anthropic.take(asked, lane(asked, told=heard.append), pause=lambda _: None)
    who = openai_legs.agent(None, base_url=f"{server.url}/v1", api=api, **line or {})
    asked = openai_legs.ask(root, who, kind, **limits)
    return openai.take(asked, lane(asked, told=heard.append), pause=lambda _: None)


def reply(api: str, usage: object = None, arguments: object = None, **named: object) -> list[Any]:
    """Return the events of an answer that is a reply; `named` are its `id` and its `model`."""
    text = json.dumps(DONE)
    named = {"id": "answer-1", "model": "claude-opus-5-5" if api == "anthropic" else "gpt-6-sol"} | named
    if api == "anthropic":
        block: Json = {"type": "tool_use", "id": "toolu_1", "name": "reply", "input": arguments or {}}
        pieces = [] if arguments else [{"type": "input_json_delta", "partial_json": text}]
        return [
            {"type": "message_start", "message": {**named, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            *({"type": "content_block_delta", "index": 0, "delta": piece} for piece in pieces),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage},
            {"type": "message_stop"},
        ]
    if api == "responses":
        item = {"type": "function_call", "call_id": "call_1", "name": "reply", "arguments": arguments or text}
        last = {**named, "status": "completed", "output": [item], "usage": usage, "error": None}
        return [
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": last},
        ]
    call = {"index": 0, "id": "call_1", "function": {"name": "reply", "arguments": arguments or text}}
    choice = {"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    return [{**named, "choices": [choice], "usage": usage}, b"[DONE]"]

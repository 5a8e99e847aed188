"""Where requests are answered: read, noted down, and answered as the script says, faults included."""

import itertools
import json
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from tests.service import faults
from tests.service.anthropic import Messages
from tests.service.caching import TOKEN, Cache
from tests.service.chat import Chat
from tests.service.conversation import Asked, Ids, Json, Play, Player, Unscripted
from tests.service.faults import Failure
from tests.service.notebook import Notebook, Request
from tests.service.protocol import CREATED, Answer, Counts, Wire
from tests.service.responses import Responses
from tests.service.script import Fault, Turn, settled
from tests.service.tools import Call, calls
from tests.service.wire import Connection, Gone, Message, event, stream_end, stream_head

WIRES: Final[Mapping[str, Wire]] = {
    "/messages": Messages(),
    "/responses": Responses(),
    "/chat/completions": Chat(),
}
"""By the end of the path: base URLs with `/v1` and without, and those of gateways, all lead there."""

_BROKEN_OFF: Final = frozenset({"refuse", "drop", "hang", "stall", "slow", "malformed", "stream_error"})
"""The faults that are no error of HTTP."""


@dataclass(slots=True)
class Exchange:
    """One request on its way to an answer."""

    connection: Connection
    message: Message
    wire: Wire
    body: Json
    at: float
    route: str
    ids: Ids

    @property
    def chat(self) -> bool:
        """Tell whether it speaks Chat Completions."""
        return self.route == "/chat/completions"


class Desk:
    """Answers requests, from as many threads as there are connections."""

    def __init__(self, player: Player, models: tuple[str, ...], notebook: Notebook, closing: threading.Event) -> None:
        self._player = player
        self._models = models
        self._notebook = notebook
        self._closing = closing
        self._cache = Cache()
        self._numbers = itertools.count(1)

    def serve(self, connection: Connection, message: Message) -> None:
        """Answer one request."""
        at = time.monotonic()
        route = next((end for end in WIRES if message.route.endswith(end)), None)
        if route is None or message.method != "POST":
            self._notebook.add(message)
            self._aside(connection, message)
            return
        wire = WIRES[route]
        try:
            body = json.loads(message.body)
            exchange = Exchange(connection, message, wire, body, at, route, Ids(next(self._numbers)))
            self._answer(exchange)
        except Gone:
            raise
        except Exception:  # noqa: BLE001 - a test's own code runs here; whatever it does, the client is told and the test too
            self._notebook.add(traceback.format_exc())
            told = faults.refusal(wire.vendor, "the test service failed; see its problems")
            connection.document(told.status, told.body, {"x-should-retry": "false"})

    def _aside(self, connection: Connection, message: Message) -> None:
        """Answer what asks for no answer of the model."""
        anthropic = "anthropic-version" in message.headers
        if message.method == "HEAD":
            connection.document(HTTPStatus.OK, {}, {}, head=True)
        elif message.method == "GET" and "upgrade" in message.headers:
            error = {"message": "this service does not speak WebSocket", "type": "invalid_request_error"}
            connection.document(HTTPStatus.UPGRADE_REQUIRED, {"error": error}, {})
        elif message.method == "GET" and "/models" in message.route:
            connection.document(HTTPStatus.OK, self._listed(message.route, anthropic=anthropic), {})
        elif message.route.endswith("/messages/count_tokens"):
            connection.document(HTTPStatus.OK, {"input_tokens": len(message.body) // TOKEN}, {})
        else:
            told = faults.refusal("anthropic" if anthropic else "openai", f"no such route: {message.route}", 404)
            connection.document(told.status, told.body, {})

    def _listed(self, route: str, *, anthropic: bool) -> Json:
        """List the models, or describe the one that is asked for."""
        one = route.rpartition("/models")[2].strip("/")
        names = (one,) if one else self._models
        if anthropic:
            made = {"type": "model", "created_at": "2026-09-01T00:00:00Z", "lifecycle": "active"}
            limits = {"max_input_tokens": 200_000, "max_tokens": 64_000}
            rows: list[Json] = [{**made, **limits, "id": name, "display_name": name} for name in names]
            page: Json = {"data": rows, "has_more": False, "first_id": names[0], "last_id": names[-1]}
        else:
            rows = [{"id": name, "object": "model", "created": CREATED, "owned_by": "relay"} for name in names]
            page = {"object": "list", "data": rows}
        return rows[0] if one else page

    def _answer(self, exchange: Exchange) -> None:
        """Answer a request for an answer."""
        vendor, model = exchange.wire.vendor, str(exchange.body.get("model", ""))
        asked = exchange.wire.asked(exchange.body)
        refused = exchange.wire.refused(exchange.body)
        if refused:
            self._notebook.add(refused)
            self._fail(exchange, faults.refusal(vendor, refused), "refused")
            return
        try:
            play = self._player.play(asked)
        except Unscripted as unscripted:
            self._notebook.add(f"the script has nothing for: {unscripted}")
            self._fail(exchange, faults.refusal(vendor, "the script has nothing for this request"), "unscripted")
            return
        fault = play.fault
        if fault and fault.fails and fault.kind not in _BROKEN_OFF:
            told = faults.failure(vendor, fault, exchange.message.headers, model, chat=exchange.chat)
            self._fail(exchange, told, fault.kind, play)
        elif fault and fault.kind == "refuse":
            self._note(exchange, 0, fault.kind, play)
            raise Gone
        else:
            self._note(exchange, HTTPStatus.OK, fault.kind if fault else None, play)
            self._speak(exchange, asked, play.turn, fault)

    def _note(self, exchange: Exchange, status: int, fault: str | None, play: Play | None = None) -> None:
        message = exchange.message
        noted = Request(message.path, message.headers, exchange.body, len(message.body), exchange.at, status, fault)
        self._notebook.add(replace(noted, pattern=play.pattern, turn=play.index) if play else noted)

    def _fail(self, exchange: Exchange, told: Failure, kind: str, play: Play | None = None) -> None:
        self._note(exchange, told.status, kind, play)
        exchange.connection.document(told.status, told.body, {"request-id": exchange.ids("req")} | told.headers)

    def _speak(self, exchange: Exchange, asked: Asked, turn: Turn, fault: Fault | None) -> None:
        """Send the answer of the model, as far as the fault lets it."""
        parts = tuple(part for act in turn.acts for part in calls(act, asked))
        thinking = settled(turn.thinking, asked.prompt)
        counts = self._counts(exchange, turn, parts, thinking)
        answer = Answer(exchange.ids, turn.model or asked.model, parts, thinking, turn.stop, counts)
        self._wait(turn.delay + (fault.pause if fault and fault.kind == "hang" else 0))
        whole = exchange.wire.whole(answer)
        if asked.stream:
            self._stream(exchange, whole, fault)
        else:
            self._document(exchange, whole, fault)

    def _counts(self, exchange: Exchange, turn: Turn, parts: tuple[str | Call, ...], thinking: str) -> Counts:
        """Count tokens, as far as the turn does not say."""
        given = turn.usage
        total, read, written = self._cache.tokens(exchange.route, exchange.body)
        if given.input is not None:
            total, read, written = given.input, 0, 0
        said = sum(len(part.text() if isinstance(part, Call) else part) for part in parts)
        reasoning = given.reasoning if given.reasoning is not None else len(thinking) // TOKEN
        return Counts(
            input=total,
            cached=given.cached if given.cached is not None else read,
            written=given.written if given.written is not None else written,
            output=given.output if given.output is not None else max(1, said // TOKEN) + reasoning,
            reasoning=reasoning,
        )

    def _document(self, exchange: Exchange, whole: Json, fault: Fault | None) -> None:
        """Send an answer that is not streamed."""
        kind = fault.kind if fault else None
        text = json.dumps(whole, ensure_ascii=False)
        if kind == "drop":
            raise Gone
        if kind == "stream_error":
            told = faults.failure(exchange.wire.vendor, Fault("server"), exchange.message.headers, "")
            exchange.connection.document(told.status, told.body, told.headers)
            return
        if fault and kind in {"stall", "slow"}:
            self._wait(fault.pause)
        text = text[: len(text) // 2] if kind == "malformed" else text
        exchange.connection.document(HTTPStatus.OK, text, {"request-id": exchange.ids("req")})

    def _stream(self, exchange: Exchange, whole: Json, fault: Fault | None) -> None:
        """Send an answer event by event, or all at once where nothing goes wrong with it."""
        kind, after = (fault.kind, fault.after) if fault else (None, -1)
        waiting = [stream_head({"request-id": exchange.ids("req"), "x-request-id": exchange.ids("req")})]
        events = list(exchange.wire.events(whole, exchange.body))
        after = min(after, len(events) - 1)
        for count, (name, data) in enumerate(events):
            if kind == "slow" or (count == after and kind in {"drop", "stall"}):
                exchange.connection.send(b"".join(waiting))
                waiting = []
                if kind == "drop":
                    raise Gone
                self._wait(fault.pause if fault else 0)
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            if count == after and kind == "malformed":
                text = text[: len(text) // 2]
            if fault and count == after and kind == "stream_error":
                broken, said = exchange.wire.broken(fault, whole, count)
                waiting.append(event(broken, json.dumps(said)))
                break
            waiting.append(event(name, text))
        exchange.connection.send(b"".join([*waiting, stream_end()]))

    def _wait(self, seconds: float) -> None:
        """Wait, but not longer than the service lives."""
        if seconds > 0 and self._closing.wait(seconds):
            raise Gone

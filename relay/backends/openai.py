"""OpenAI's Responses, streamed: the service keeps nothing, the whole conversation goes out with each request.

What the model thought comes back sealed, and goes out again unread. Requests only grow at their end, in the order
instructions, tools, input, and name one cache for all legs of a phase: so all but the end is read from that cache.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from relay.backends import loop, openai_chat, openai_faults, openai_service, prices, tools
from relay.backends.base import Lane, Needs
from relay.backends.openai_service import Service
from relay.backends.talk import Call, Fault, Result, Talk, Tool, Turn
from relay.errors import Exit, RelayError
from relay.host import clock
from relay.terms import Agent, Ask, Taken, Usage

if TYPE_CHECKING:
    from openai import OpenAI

by_hand = False
FEW: Final = 16
"""Tokens of the answer to a probe: the fewest that the service lets one ask for."""
SILENT: Final = 60.0
"""Seconds that a probe waits."""
_THINKS: Final = r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|\d\d))(?!.*-chat)"
"""Models that think: only they have anything to seal, others refuse to be asked for it."""


def preflight(agent: Agent, where: Path) -> str:
    """Return the version of the SDK; a key that is not set is a `RelayError` with exit 4. Nothing is sent."""
    del where
    openai_service.ready(agent)
    return openai_service.version()


def needs(ask: Ask) -> Needs:
    """Return the folder in which long output is kept: the agent's commands may read it; the loop runs outside."""
    return Needs(readable=(Path(ask.reply_path).parent,))


def take(ask: Ask, lane: Lane, pause: Callable[[float], None] = clock.pause) -> Taken:
    """Take one leg: the loop, over whichever protocol the agent's service speaks."""
    version = openai_service.version()
    try:
        service = openai_service.ready(ask.agent)
    except RelayError as error:
        missing = error.exit_code is Exit.HUMAN and "is not set" in error.message
        return Taken(ended_by="auth" if missing else "setup", problem=error.message, version=version)
    with openai_service.client(service) as client:
        return loop.run(
            ask,
            lane,
            _talk(client, service, ask.agent, loop.system(ask), tools.offered(ask), cache(ask)),
            price=lambda turn: prices.cost("openai", turn.model, turn, ask.agent.price),
            priced=prices.known("openai", ask.agent, service.model),
            window=prices.window("openai", ask.agent, service.model),
            secrets=service.secrets(),
            pause=pause,
            version=version,
        )


def probe(agent: Agent) -> str:
    """Ask for a few tokens and say what came; `RelayError` with exit 4 where set-up is missing, with 5 for a fault."""
    service = openai_service.ready(agent)
    few: Agent = msgspec.structs.replace(agent, max_output=FEW)
    began = clock.monotonic()
    with openai_service.client(service) as client:
        talk = _talk(client, service, few, "", (), "relay-probe")
        talk.say("Say ok.")
        try:
            turn = talk.send(lambda _: None, SILENT)
        except Fault as fault:
            hint = f"look at `[agents.{agent.name}]` in relay.toml; its key: {openai_service.found(agent)}"
            raise RelayError(fault.problem, hint=hint, exit_code=Exit.AGENT) from None
    counted = f"{turn.usage.input} tokens in, {turn.usage.output} out" if turn.usage.complete else "tokens not counted"
    return f"`{turn.model}` at `{service.host}` answered in {clock.monotonic() - began:.1f} s, {counted}"


def key(agent: Agent) -> str:
    """Say where the key is found, or which variable is not set."""
    return openai_service.found(agent)


def cache(ask: Ask) -> str:
    """Name the cache that all legs of a phase share: their requests begin alike. The service takes 64 characters."""
    return "relay-" + hashlib.sha256(f"{ask.run}\n{ask.phase}".encode()).hexdigest()[:32]


def _talk(client: "OpenAI", service: Service, agent: Agent, system: str, offered: Sequence[Tool], cached: str) -> Talk:
    kind = openai_chat.Chat if agent.api == "chat" else Responses
    return kind(client, service, agent, system, offered, cached)


class Responses:
    """A conversation over `/responses`."""

    def __init__(
        self, client: "OpenAI", service: Service, agent: Agent, system: str, offered: Sequence[Tool], cached: str
    ) -> None:
        self._client, self._service = client, service
        self._input: list[dict[str, Any]] = []
        self._results: dict[str, dict[str, Any]] = {}
        self._request: dict[str, Any] = {
            "model": service.model,
            "store": False,
            "prompt_cache_key": cached,
            "tools": [_offer(tool) for tool in offered],
        }
        if system:
            self._request["instructions"] = system
        if agent.max_output is not None:
            self._request["max_output_tokens"] = agent.max_output
        if agent.effort is not None:
            self._request["reasoning"] = {"effort": agent.effort}
        if agent.effort is not None or re.match(_THINKS, service.model):
            self._request["include"] = ["reasoning.encrypted_content"]

    def say(self, text: str) -> None:
        """Add words of Relay's."""
        self._input.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})

    def answer(self, results: tuple[Result, ...]) -> None:
        """Add what came of all calls of the last turn."""
        for result in results:
            item = {"type": "function_call_output", "call_id": result.id, "output": result.text}
            self._results[result.id] = item
            self._input.append(item)

    def trim(self, id: str, text: str) -> None:  # noqa: A002 - as in the Protocol
        """Put `text` in the place of the result of an old call."""
        self._results[id]["output"] = text

    def send(self, heard: Callable[[str], None], seconds: float) -> Turn:
        """Send the conversation and return the answer, which is then part of it; raises `Fault`."""
        final, items = None, []
        with closing(openai_faults.events(lambda: self._create(seconds), self._service)) as events:
            for event in events:
                heard(event.delta if event.type == "response.output_text.delta" else "")
                if event.type == "response.output_item.done":
                    items.append(event.item)
                elif event.type in {"response.completed", "response.incomplete", "response.failed"}:
                    final = event.response
                elif event.type == "error":
                    raise openai_faults.told(event.to_dict(), self._service, None)
        if final is None:
            raise Fault("overload", f"`{self._service.host}` hung up in the middle of an answer")
        if final.status == "failed" or final.error is not None:
            raise openai_faults.told(final.error.to_dict() if final.error else {}, self._service, None)
        heard_of = [item.to_dict() for item in items or final.output]
        why = (final.incomplete_details.reason if final.incomplete_details else None) or ""
        cut = final.status == "incomplete" and why != "content_filter"
        kept = _kept(heard_of, cut=cut)
        self._input += kept
        return _turn(kept, final, self._service.model, cut=cut, filtered=why == "content_filter")

    def _create(self, seconds: float) -> Any:  # noqa: ANN401 - the SDK's stream of any of its events
        # The conversation goes past the SDK's look at each of its parts, which takes longer with each turn.
        create: Any = self._client.responses.create
        timeout = openai_service.patience(seconds)
        return create(**self._request, input=[], extra_body={"input": self._input}, stream=True, timeout=timeout)


def _offer(tool: Tool) -> dict[str, Any]:
    strict = openai_service.fits_strictly(tool.schema)
    named = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", **named, "strict": strict}


def _kept(items: list[dict[str, Any]], *, cut: bool) -> list[dict[str, Any]]:
    """Return what goes out again of an answer.

    The service stored nothing, so names that it gave are names of nothing, but for a seal, which must keep its own; a
    thought that is neither sealed nor open is gone. Of an answer that was cut off, a call may be half of one, and a
    thought at its end belongs to nothing: the service refuses both.
    """
    kept = []
    for item in items:
        if item["type"] == "reasoning":
            if item.get("encrypted_content") or item.get("content"):
                kept.append(item)
        elif not (cut and item["type"] == "function_call" and item.get("status") != "completed"):
            kept.append({name: value for name, value in item.items() if name not in {"id", "status"}})
    while cut and kept and kept[-1]["type"] == "reasoning":
        kept.pop()
    return kept


def _turn(kept: list[dict[str, Any]], final: Any, model: str, *, cut: bool, filtered: bool) -> Turn:  # noqa: ANN401
    """Read an answer."""
    parts = [part for item in kept if item["type"] == "message" for part in item.get("content") or ()]
    thoughts = [item for item in kept if item["type"] == "reasoning"]
    called = [item for item in kept if item["type"] == "function_call"]
    refused = filtered or any(part["type"] == "refusal" for part in parts)
    texts = [part.get("text") or part.get("refusal") or "" for part in parts]
    usage = final.usage
    written = (usage.input_tokens_details and usage.input_tokens_details.cache_write_tokens) if usage else 0
    return Turn(
        texts=tuple(filter(None, texts)),
        thoughts=tuple(part["text"] for item in thoughts for part in item.get("summary") or item.get("content") or ()),
        calls=tuple(Call(id=item["call_id"], tool=item["name"], arguments=item["arguments"]) for item in called),
        stop="refusal" if refused else "cut" if cut else "calls" if called else "done",
        model=final.model or model,
        usage=_usage(usage),
        context=usage.input_tokens if usage else 0,
        written=written or 0,
        id=final.id or "",
    )


def _usage(usage: Any) -> Usage:  # noqa: ANN401 - of the SDK, whose fields may be missing all the same
    """Return the figures of one answer; gateways may leave out the details, or all of it."""
    if usage is None:
        return Usage(turns=1, complete=False)
    read, made = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input=usage.input_tokens or 0,
        cached=(read.cached_tokens or 0) if read else 0,
        output=usage.output_tokens or 0,
        reasoning=(made.reasoning_tokens or 0) if made else 0,
        turns=1,
    )

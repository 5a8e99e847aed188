"""OpenAI's Responses, streamed: the service keeps nothing, the whole conversation goes out with each request.

What the model thought comes back sealed, and goes out again unread. Requests only grow at their end, in the order
instructions, tools, input, and name one cache for all legs of a phase: so all but the end is read from that cache.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final

import msgspec

from relay.backends import openai_faults, openai_service, said
from relay.backends.openai_service import Service
from relay.backends.talk import Call, Fault, Result, Tool, Turn
from relay.backends.wire import DONE, Wire
from relay.terms import Agent, Usage

_THINKS: Final = r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|\d\d))(?!.*-chat)"
"""Models that think: only they have anything to seal, others refuse to be asked for it."""


class _Event(msgspec.Struct):
    type: str
    delta: Any = None


class _Heard(msgspec.Struct):
    item: dict[str, Any]


class _Why(msgspec.Struct):
    reason: str | None = None


class _Final(msgspec.Struct):
    status: str | None = None
    error: Any = None
    output: list[dict[str, Any]] | None = None
    incomplete_details: _Why | None = None
    usage: Any = None
    model: Any = None
    id: Any = None


class _Last(msgspec.Struct):
    response: _Final


class _Part(msgspec.Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str
    content: str | list[_Part] | None = None
    summary: list[_Part] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str | dict[str, Any] | None = None


class Responses:
    """A conversation over `/responses`."""

    def __init__(
        self, wire: Wire, service: Service, agent: Agent, system: str, offered: Sequence[Tool], cached: str
    ) -> None:
        self._wire, self._service = wire, service
        self._input: list[dict[str, Any]] = []
        self._results: dict[str, dict[str, Any]] = {}
        self._request: dict[str, Any] = {
            "model": service.model,
            "input": self._input,
            "stream": True,
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
        final: _Final | None = None
        items: list[dict[str, Any]] = []
        events = openai_faults.events(self._wire, "/responses", self._request, seconds, self._service)
        with closing(events):
            for event in events:
                if event is DONE:
                    break
                try:
                    words = _take(event, items)
                except ValueError as error:
                    raise openai_faults.odd(error, self._service) from None
                heard(words if isinstance(words, str) else "")
                if event["type"] == "error":
                    raise openai_faults.told(event, self._service, None)
                final = words if isinstance(words, _Final) else final
        if final is None:
            raise Fault("overload", f"`{self._service.host}` hung up in the middle of an answer")
        if final.status == "failed" or final.error:
            raise openai_faults.told(final.error, self._service, None)
        try:
            kept, turn = _answer(items, final, self._service.model)
        except (ValueError, RecursionError) as error:
            raise openai_faults.odd(error, self._service) from None
        self._input += kept
        return turn

    def hang_up(self) -> None:
        """Break off what `send` waits for, from another thread."""
        self._wire.hang_up()


def _offer(tool: Tool) -> dict[str, Any]:
    strict = openai_service.fits_strictly(tool.schema)
    named = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", **named, "strict": strict}


def _take(event: dict[str, Any], items: list[dict[str, Any]]) -> str | _Final:
    """Take an event; return what it says in words, or the end of the answer. `ValueError` for what is no event."""
    one = msgspec.convert(event, _Event)
    if one.type == "response.output_text.delta":
        return one.delta if isinstance(one.delta, str) else ""
    if one.type == "response.output_item.done":
        items.append(msgspec.convert(event, _Heard).item)
    elif one.type in {"response.completed", "response.incomplete", "response.failed"}:
        return msgspec.convert(event, _Last).response
    return ""


def _answer(items: list[dict[str, Any]], final: _Final, model: str) -> tuple[list[dict[str, Any]], Turn]:
    """Return what goes out again of an answer, and the answer in the loop's words; `ValueError` where it is none."""
    why = (final.incomplete_details.reason if final.incomplete_details else None) or ""
    cut = final.status == "incomplete" and why != "content_filter"
    if not items and final.output is None:
        raise ValueError("an answer without output")
    kept = _kept(items or final.output or [], cut=cut)
    said.sound(kept)
    return kept, _turn(kept, final, model, cut=cut, filtered=why == "content_filter")


def _kept(items: list[dict[str, Any]], *, cut: bool) -> list[dict[str, Any]]:
    """Return what goes out again of an answer.

    The service stored nothing, so names that it gave are names of nothing, but for a seal, which must keep its own; a
    thought that is neither sealed nor open is gone. Of an answer that was cut off, a call may be half of one, and a
    thought at its end belongs to nothing: the service refuses both.
    """
    kept = []
    for item in items:
        one = msgspec.convert(item, _Item)
        if one.type == "reasoning":
            if item.get("encrypted_content") or item.get("content"):
                kept.append(item)
        elif not (cut and one.type == "function_call" and item.get("status") != "completed"):
            again = {name: value for name, value in item.items() if name not in {"id", "status"}}
            if one.type == "function_call":
                if not (one.call_id and one.name):
                    raise ValueError("a call without a `call_id` or a tool")
                again["arguments"] = _arguments(one)
            kept.append(again)
    while cut and kept and kept[-1]["type"] == "reasoning":
        kept.pop()
    return kept


def _arguments(call: _Item) -> str:
    """Return the arguments of a call as text, which some gateways give as an object."""
    given = call.arguments
    return given if isinstance(given, str) else "" if given is None else msgspec.json.encode(given).decode()


def _parts(content: str | list[_Part] | None) -> list[_Part]:
    return [_Part(text=content)] if isinstance(content, str) else content or []


def _turn(kept: list[dict[str, Any]], final: _Final, model: str, *, cut: bool, filtered: bool) -> Turn:
    """Read an answer."""
    items = [msgspec.convert(item, _Item) for item in kept]
    parts = [part for item in items if item.type == "message" for part in _parts(item.content)]
    thoughts = [part for item in items if item.type == "reasoning" for part in item.summary or _parts(item.content)]
    calls = tuple(
        Call(id=item.call_id, tool=item.name, arguments=_arguments(item))
        for item in items
        if item.type == "function_call"
    )
    refused = filtered or any(part.type == "refusal" for part in parts)
    counts = said.Counts(final.usage)
    usage = Usage(
        input=counts("input_tokens"),
        cached=counts("input_tokens_details", "cached_tokens"),
        output=counts("output_tokens"),
        reasoning=counts("output_tokens_details", "reasoning_tokens"),
        turns=1,
    )
    written = counts("input_tokens_details", "cache_write_tokens")
    return Turn(
        texts=tuple(filter(None, (part.text or part.refusal for part in parts))),
        thoughts=tuple(filter(None, (part.text for part in thoughts))),
        calls=calls,
        stop="refusal" if refused else "cut" if cut else "calls" if calls else "done",
        model=said.name(final.model) or model,
        usage=msgspec.structs.replace(usage, complete=final.usage is not None and not counts.odd),
        context=usage.input,
        written=written,
        id=said.name(final.id),
    )

"""Chat Completions, streamed: for servers that speak nothing newer, such as Ollama, vLLM and llama.cpp.

They take the format lightly, so this reads it lightly: a call may come whole or in pieces, without a number, all with
the number 0, without a name of its own or with one that was used before; its arguments may be an object, or no JSON;
nobody may have counted tokens; the reason to stop may be any word. But there must be one, or `[DONE]`: some servers end
a stream by hanging up, and without either nobody can tell an answer from half of one.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final, Literal

import msgspec

from relay.backends import openai_faults, openai_service, said
from relay.backends.openai_chunks import Answer, Part, add, is_object
from relay.backends.openai_service import Service
from relay.backends.talk import Call, Fault, Result, Tool, Turn
from relay.backends.wire import DONE, Wire
from relay.terms import Agent, Usage

_STOPS: Final[dict[str, Literal["cut", "refusal"]]] = {
    "length": "cut",
    "max_tokens": "cut",
    "model_length": "cut",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
}
_TOKEN: Final = 4
"""Letters of a token, roughly: for what a conversation takes up where nobody counts, or counts not all of it."""


class Chat:
    """A conversation over `/chat/completions`."""

    def __init__(
        self, wire: Wire, service: Service, agent: Agent, system: str, offered: Sequence[Tool], cached: str
    ) -> None:
        self._wire, self._service = wire, service
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        self._results: dict[str, dict[str, Any]] = {}
        self._ids: set[str] = set()
        self._request: dict[str, Any] = {
            "model": service.model,
            "messages": self._messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if offered:
            self._request["tools"] = [_offer(tool, own=service.own) for tool in offered]
        self._offered = len(json.dumps(self._request.get("tools")))
        if service.own:  # others may refuse what they do not know
            self._request["prompt_cache_key"] = cached
        if agent.max_output is not None:
            self._request["max_completion_tokens" if service.own else "max_tokens"] = agent.max_output
        if agent.effort is not None:
            self._request["reasoning_effort"] = agent.effort

    def say(self, text: str) -> None:
        """Add words of Relay's."""
        self._messages.append({"role": "user", "content": text})

    def answer(self, results: tuple[Result, ...]) -> None:
        """Add what came of all calls of the last turn."""
        for result in results:
            message = {"role": "tool", "tool_call_id": result.id, "content": result.text}
            self._results[result.id] = message
            self._messages.append(message)

    def trim(self, id: str, text: str) -> None:  # noqa: A002 - as in the Protocol
        """Put `text` in the place of the result of an old call."""
        self._results[id]["content"] = text

    def send(self, heard: Callable[[str], None], seconds: float) -> Turn:
        """Send the conversation and return the answer, which is then part of it; raises `Fault`."""
        answer = Answer()
        events = openai_faults.events(self._wire, "/chat/completions", self._request, seconds, self._service)
        with closing(events):
            for event in events:
                if event is DONE:
                    answer.done = True
                    break
                try:
                    words = add(answer, event)
                except (ValueError, RecursionError) as error:
                    raise openai_faults.odd(error, self._service) from None
                heard(words)
        if not (answer.stop or answer.done):
            raise Fault("overload", f"`{self._service.host}` hung up in the middle of an answer")
        answer.clean()
        cut = _STOPS.get(answer.stop.lower()) == "cut"
        calls = tuple(self._named(part) for part in answer.parts if not cut or part.whole)
        least = 0 if self._service.own else self._size()
        self._messages += _message(answer, calls)
        return _turn(answer, calls, self._service.model, least)

    def hang_up(self) -> None:
        """Break off what `send` waits for, from another thread."""
        self._wire.hang_up()

    def _named(self, part: Part) -> Call:
        """Return a call under a name that no other one has: results are told apart by it."""
        name = stem = part.id or "call"
        number = len(self._ids)
        while name in self._ids or (not part.id and name == stem):
            name, number = f"{stem}_{number}", number + 1
        self._ids.add(name)
        return Call(id=name, tool=part.tool, arguments=part.arguments)

    def _size(self) -> int:
        """Return how many tokens went out, roughly.

        Ollama drops the beginning of what is longer than its window, and counts what is left: by its figures no
        conversation would ever be too long.
        """
        calls = (call for message in self._messages for call in message.get("tool_calls") or ())
        said = sum(len(message["content"]) for message in self._messages)
        said += sum(len(call["function"]["arguments"]) for call in calls)
        return (said + self._offered) // _TOKEN


def _offer(tool: Tool, *, own: bool) -> dict[str, Any]:
    described: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    if own and openai_service.fits_strictly(tool.schema):
        described["strict"] = True
    return {"type": "function", "function": described}


def _message(answer: Answer, calls: tuple[Call, ...]) -> Iterator[dict[str, Any]]:
    """Yield the answer as it goes out again.

    Arguments that are no object are wrapped into one: servers parse those of old calls, and refuse all that follows. A
    thought goes back to a server that shows it, where calls came of it: models that think between calls need it.
    """
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or answer.refusal}
    if calls:
        if answer.thought:
            message[answer.thought_name] = answer.thought
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": _object(call.arguments)}}
            for call in calls
        ]
    if calls or message["content"]:
        yield message


def _object(arguments: str) -> str:
    return arguments if is_object(arguments) else json.dumps({"arguments": arguments})


def _turn(answer: Answer, calls: tuple[Call, ...], model: str, least: int) -> Turn:
    stop = _STOPS.get(answer.stop.lower())
    text = answer.text or answer.refusal
    usage, written = _usage(answer.usage)
    return Turn(
        texts=(text,) if text else (),
        thoughts=(answer.thought,) if answer.thought else (),
        calls=calls,
        stop="refusal" if answer.refusal else stop or ("calls" if calls else "done"),
        model=answer.model or model,
        usage=usage,
        context=max(usage.input, least),
        written=written,
        id=answer.id,
    )


def _usage(usage: object) -> tuple[Usage, int]:
    """Return the figures of one answer, and what of its input was written to a cache."""
    counts = said.Counts(usage)
    figures = Usage(
        input=counts("prompt_tokens"),
        cached=counts("prompt_tokens_details", "cached_tokens"),
        output=counts("completion_tokens"),
        reasoning=counts("completion_tokens_details", "reasoning_tokens"),
        turns=1,
    )
    written = counts("prompt_tokens_details", "cache_write_tokens")
    return msgspec.structs.replace(figures, complete=bool(figures.input) and not counts.odd), written

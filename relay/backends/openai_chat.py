"""Chat Completions, streamed: for servers that speak nothing newer, such as Ollama, vLLM and llama.cpp.

They take the format lightly, so this reads it lightly: a call may come whole or in pieces, without a number, all with
the number 0, without a name of its own or with one that was used before; its arguments may be an object, or no JSON;
nobody may have counted tokens; the reason to stop may be any word.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from relay.backends import openai_faults, openai_service
from relay.backends.openai_service import Service
from relay.backends.talk import Call, Fault, Result, Tool, Turn
from relay.terms import Agent, Usage

if TYPE_CHECKING:
    from openai import OpenAI

_THOUGHTS: Final = ("reasoning_content", "reasoning")
"""What servers call a thought: llama.cpp and DeepSeek the first, Ollama, vLLM and OpenRouter the second."""
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


@dataclass
class _Part:
    """A call as it comes in."""

    number: int | None
    id: str = ""
    tool: str = ""
    arguments: str = ""

    @property
    def whole(self) -> bool:
        return _is_object(self.arguments)


@dataclass
class _Answer:
    """An answer as it comes in."""

    text: str = ""
    refusal: str = ""
    thought: str = ""
    thought_name: str = ""
    parts: list[_Part] = field(default_factory=list)
    stop: str | None = None
    usage: Any = None
    model: str = ""
    id: str = ""


class Chat:
    """A conversation over `/chat/completions`."""

    def __init__(
        self, client: "OpenAI", service: Service, agent: Agent, system: str, offered: Sequence[Tool], cached: str
    ) -> None:
        self._client, self._service = client, service
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        self._results: dict[str, dict[str, Any]] = {}
        self._ids: set[str] = set()
        self._request: dict[str, Any] = {"model": service.model, "stream_options": {"include_usage": True}}
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
        answer = _Answer()
        with closing(openai_faults.events(lambda: self._create(seconds), self._service)) as events:
            for event in events:
                heard(_add(answer, event))
        if answer.stop is None and answer.usage is None and not _whole(answer.parts):
            raise Fault("overload", f"`{self._service.host}` hung up in the middle of an answer")
        cut = _STOPS.get((answer.stop or "").lower()) == "cut"
        calls = tuple(self._named(part) for part in answer.parts if not cut or part.whole)
        least = 0 if self._service.own else self._size()
        self._messages += _message(answer, calls)
        return _turn(answer, calls, self._service.model, least)

    def _create(self, seconds: float) -> Any:  # noqa: ANN401 - the SDK's stream of any of its chunks
        # The conversation goes past the SDK's look at each of its parts, which takes longer with each turn.
        create: Any = self._client.chat.completions.create
        timeout = openai_service.patience(seconds)
        return create(
            **self._request, messages=[], extra_body={"messages": self._messages}, stream=True, timeout=timeout
        )

    def _named(self, part: _Part) -> Call:
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


def _add(answer: _Answer, chunk: Any) -> str:  # noqa: ANN401 - of the SDK, whose fields may be missing all the same
    """Add a chunk to an answer, and return what of it is text."""
    answer.model, answer.id = answer.model or chunk.model or "", answer.id or chunk.id or ""
    answer.usage = chunk.usage or answer.usage
    text = ""
    for choice in chunk.choices or ():
        answer.stop = choice.finish_reason or answer.stop
        delta = choice.delta
        if delta is None:
            continue
        text += delta.content or ""
        answer.refusal += delta.refusal or ""
        more = delta.model_extra or {}
        name = next((name for name in _THOUGHTS if more.get(name)), "")
        if name:
            answer.thought_name, answer.thought = name, answer.thought + str(more[name])
        for piece in delta.tool_calls or ():
            _call(answer.parts, piece)
    answer.text += text
    return text


def _call(parts: list[_Part], piece: Any) -> None:  # noqa: ANN401 - as above
    """Add a piece of a call to the call that it belongs to, which may be a new one."""
    function = piece.function
    tool = (function.name or "") if function else ""
    given: Any = function.arguments if function else None
    arguments = given if isinstance(given, str) else "" if given is None else json.dumps(given)
    same = next((part for part in reversed(parts) if piece.index is None or part.number == piece.index), None)
    # Numbers alone do not tell: Ollama numbered all calls of an answer 0 for a while, and before that not at all.
    other = same is not None and (
        bool(piece.id and same.id and piece.id != same.id) or bool(tool and not (piece.id and same.id) and same.whole)
    )
    if same is None or other:
        parts.append(_Part(number=piece.index, id=piece.id or "", tool=tool, arguments=arguments))
        return
    same.id, same.tool = same.id or piece.id or "", same.tool or tool
    same.arguments += arguments


def _whole(parts: list[_Part]) -> bool:
    """Tell whether calls came whole, so that they were meant where no reason to stop came after them."""
    return bool(parts) and all(part.whole for part in parts)


def _message(answer: _Answer, calls: tuple[Call, ...]) -> Iterator[dict[str, Any]]:
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
    return arguments if _is_object(arguments) else json.dumps({"arguments": arguments})


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _turn(answer: _Answer, calls: tuple[Call, ...], model: str, least: int) -> Turn:
    stop = _STOPS.get((answer.stop or "").lower())
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


def _usage(usage: Any) -> tuple[Usage, int]:  # noqa: ANN401 - as above
    """Return the figures of one answer, and what of its input was written to a cache."""
    if usage is None or not usage.prompt_tokens:
        return Usage(turns=1, complete=False), 0
    read, made = usage.prompt_tokens_details, usage.completion_tokens_details
    figures = Usage(
        input=usage.prompt_tokens,
        cached=(read.cached_tokens or 0) if read else 0,
        output=usage.completion_tokens or 0,
        reasoning=(made.reasoning_tokens or 0) if made else 0,
        turns=1,
    )
    return figures, (read.cache_write_tokens or 0) if read else 0

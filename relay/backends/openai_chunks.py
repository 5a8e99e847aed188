"""One answer of Chat Completions, put together from the chunks of its stream, however its server cuts them."""

import json
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from relay.backends import said

_THOUGHTS: Final = ("reasoning_content", "reasoning")
"""What servers call a thought: llama.cpp and DeepSeek the first, Ollama, vLLM and OpenRouter the second."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _Piece(msgspec.Struct):
    index: Any = None
    id: Any = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | list[Any] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_Piece] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    model: Any = None
    id: Any = None


@dataclass
class Part:
    """A call as it comes in."""

    number: object
    id: str = ""
    tool: str = ""
    arguments: str = ""

    @property
    def whole(self) -> bool:
        """Tell whether its arguments have come to their end."""
        return is_object(self.arguments)


@dataclass
class Answer:
    """An answer as it comes in."""

    text: str = ""
    refusal: str = ""
    thought: str = ""
    thought_name: str = ""
    parts: list[Part] = field(default_factory=list)
    stop: str = ""
    done: bool = False
    usage: Any = None
    model: str = ""
    id: str = ""

    def clean(self) -> None:
        """Leave no half letters in it: nothing with one could go out again, or be written down."""
        self.text, self.refusal, self.thought = map(said.letters, (self.text, self.refusal, self.thought))
        for part in self.parts:
            part.tool, part.arguments = said.letters(part.tool), said.letters(part.arguments)


def add(answer: Answer, event: object) -> str:
    """Add an event to an answer, and return what of it is text; `ValueError` where it is no chunk of one."""
    chunk = msgspec.convert(event, _Chunk)
    answer.model, answer.id = answer.model or said.name(chunk.model), answer.id or said.name(chunk.id)
    answer.usage = chunk.usage or answer.usage
    text = ""
    for choice in chunk.choices or ():
        answer.stop = said.name(choice.finish_reason) or answer.stop
        delta = choice.delta
        if delta is None:
            continue
        text += _words(delta.content)
        answer.refusal += delta.refusal or ""
        name = next((name for name in _THOUGHTS if getattr(delta, name)), "")
        if name:
            answer.thought_name, answer.thought = name, answer.thought + str(getattr(delta, name))
        for piece in delta.tool_calls or ():
            _call(answer.parts, piece)
    answer.text += text
    return text


def _words(content: str | list[Any] | None) -> str:
    """Return the text of what may come in parts, as some servers let it."""
    if isinstance(content, list):
        parts = [part if isinstance(part, dict) else {"text": part} for part in content]
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return content or ""


def _call(parts: list[Part], piece: _Piece) -> None:
    """Add a piece of a call to the call that it belongs to, which may be a new one."""
    function, called = piece.function or _Function(), said.name(piece.id)
    tool, given = function.name or "", function.arguments
    arguments = given if isinstance(given, str) else "" if given is None else json.dumps(given)
    same = next((part for part in reversed(parts) if piece.index is None or part.number == piece.index), None)
    # Numbers alone do not tell: Ollama numbered all calls of an answer 0 for a while, and before that not at all.
    other = same is not None and (
        bool(called and same.id and called != same.id) or bool(tool and not (called and same.id) and same.whole)
    )
    if same is None or other:
        parts.append(Part(number=piece.index, id=called, tool=tool, arguments=arguments))
        return
    same.id, same.tool = same.id or called, same.tool or tool
    same.arguments += arguments


def is_object(text: str) -> bool:
    """Tell whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False

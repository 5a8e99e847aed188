"""One answer of Anthropic's Messages, put together from the events of its stream."""

from typing import Any, Final, Literal

import msgspec

from relay.backends import said
from relay.backends.talk import Call, Turn
from relay.terms import Usage

_PIECES: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Where the piece of a delta stands; in its block it has the same name, but for a call's arguments."""
_STOPS: Final[dict[str, Literal["calls", "cut", "refusal"]]] = {
    "tool_use": "calls",
    "max_tokens": "cut",
    "refusal": "refusal",
}


class _Event(msgspec.Struct):
    type: str


class _Begin(msgspec.Struct):
    message: dict[str, Any]


class _Block(msgspec.Struct):
    type: str
    id: str = ""
    name: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    input: Any = None


class _Open(msgspec.Struct):
    index: int
    content_block: dict[str, Any]


class _Delta(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None


class _Piece(msgspec.Struct):
    index: int
    delta: _Delta


class _Stop(msgspec.Struct):
    stop_reason: str | None = None


class _End(msgspec.Struct):
    delta: _Stop
    usage: Any = None


class Answer:
    """Takes the events of a stream; `whole` once the last one has come.

    What is no event of the protocol is a `ValueError`. Counts and names that are none cost no answer.
    """

    def __init__(self) -> None:
        self.whole = False
        self.stop = ""
        self._id = self._model = ""
        self._usage: dict[str, Any] = {}
        self._counted = True
        self._raw: dict[int, dict[str, Any]] = {}
        self._blocks: dict[int, _Block] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def take(self, event: object) -> str:
        """Take an event; return what it says in words."""
        kind = msgspec.convert(event, _Event).type
        if kind == "content_block_delta":
            piece = msgspec.convert(event, _Piece)
            if piece.index not in self._blocks:
                raise ValueError(f"a piece of block {piece.index}, which never began")
            name = _PIECES.get(piece.delta.type, "")
            words: str = (getattr(piece.delta, name) if name else None) or ""
            self._pieces.setdefault((piece.index, name), []).append(words)
            return words if name == "text" else ""
        if kind == "content_block_start":
            opened = msgspec.convert(event, _Open)
            block = msgspec.convert(opened.content_block, _Block)
            if block.type == "tool_use" and not (block.id and block.name):
                raise ValueError("a call without an id or a tool")
            self._raw[opened.index], self._blocks[opened.index] = opened.content_block, block
        elif kind == "message_start":
            message = msgspec.convert(event, _Begin).message
            self._id, self._model = said.name(message.get("id")), said.name(message.get("model"))
            self._count(message.get("usage"))
        elif kind == "message_delta":
            last = msgspec.convert(event, _End)
            self.stop = last.delta.stop_reason or ""
            self._count(last.usage)
        elif kind == "message_stop":
            self.whole = True
        return ""

    def _count(self, usage: object) -> None:
        if isinstance(usage, dict):
            self._usage |= {name: count for name, count in usage.items() if count is not None}
        elif usage is not None:
            self._counted = False

    def content(self) -> list[dict[str, Any]]:
        """Return what goes out again: the service takes no empty text, and no thought that leads nowhere.

        `ValueError` where it cannot go out again.
        """
        content = []
        for index, block in sorted(self._blocks.items()):
            raw = self._raw[index]
            if block.type == "tool_use":
                content.append(raw | {"input": _object(self._arguments(index))})
            elif block.type == "text":
                if text := self._joined(index, "text"):
                    content.append(raw | {"text": text})
            elif block.type == "thinking":
                thought, signature = self._joined(index, "thinking"), self._joined(index, "signature")
                content.append(raw | {"thinking": thought, "signature": signature})
            else:
                content.append(raw)
        while content and content[-1]["type"] in {"thinking", "redacted_thinking"}:
            content.pop()
        said.sound(content)
        return content

    def turn(self, asked: str) -> Turn:
        """Return the answer in the loop's words; `asked` is the model that was asked, where it names none."""
        blocks = sorted(self._blocks.items())
        calls = tuple(
            Call(id=block.id, tool=block.name, arguments=self._arguments(index))
            for index, block in blocks
            if block.type == "tool_use"
        )
        counts = said.Counts(self._usage)
        written, read = counts("cache_creation_input_tokens"), counts("cache_read_input_tokens")
        total = counts("input_tokens") + written + read
        output, reasoning = counts("output_tokens"), counts("output_tokens_details", "thinking_tokens")
        return Turn(
            texts=tuple(self._joined(index, "text") for index, block in blocks if block.type == "text"),
            thoughts=tuple(self._joined(index, "thinking") for index, block in blocks if block.type == "thinking"),
            calls=calls,
            stop=_STOPS.get(self.stop) or ("calls" if calls else "done"),
            model=self._model or asked,
            usage=Usage(
                input=total,
                cached=read,
                output=output,
                reasoning=reasoning,
                turns=1,
                complete="output_tokens" in self._usage and self._counted and not counts.odd,
            ),
            context=total,
            written=written,
            id=self._id,
        )

    def _arguments(self, index: int) -> str:
        """Return the arguments of a call, which some gateways give whole with its beginning."""
        given = self._blocks[index].input
        return self._joined(index, "partial_json") or (msgspec.json.encode(given).decode() if given else "")

    def _joined(self, index: int, name: str) -> str:
        """Return a block's text: what it began with, and its pieces."""
        begun: str = getattr(self._blocks[index], name, None) or ""
        return said.letters(begun + "".join(self._pieces.get((index, name), ())))


def _object(text: str) -> dict[str, Any]:
    """Return the arguments of a call as the service wants them back: an object, even where the model wrote none."""
    try:
        value = msgspec.json.decode(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

"""One answer of Anthropic's Messages, put together from the events of its stream."""

from typing import Any, Final, Literal

import msgspec

from relay.backends.talk import Call, Turn
from relay.terms import Usage

_PIECES: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Where the piece of a delta stands; in its block it has the same name, but for a call's arguments."""
_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_STOPS: Final[dict[str, Literal["calls", "cut", "refusal"]]] = {
    "tool_use": "calls",
    "max_tokens": "cut",
    "refusal": "refusal",
}


class Answer:
    """Takes the events of a stream; `whole` once the last one has come."""

    def __init__(self) -> None:
        self.whole = False
        self.stop = ""
        self._id = self._model = ""
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def take(self, event: dict[str, Any]) -> str:
        """Take an event; return what it says in words."""
        kind = event["type"]
        if kind == "content_block_delta":
            name = _PIECES.get(event["delta"]["type"], "")
            piece: str = event["delta"].get(name, "")
            self._pieces.setdefault((event["index"], name), []).append(piece)
            return piece if name == "text" else ""
        if kind == "content_block_start":
            self._blocks[event["index"]] = event["content_block"]
        elif kind == "message_start":
            message = event["message"]
            self._id, self._model = message.get("id") or "", message.get("model") or ""
            self._count(message.get("usage"))
        elif kind == "message_delta":
            self.stop = event["delta"].get("stop_reason") or ""
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.whole = True
        return ""

    def _count(self, usage: dict[str, Any] | None) -> None:
        self._usage |= {name: count for name, count in (usage or {}).items() if count is not None}

    def content(self) -> list[dict[str, Any]]:
        """Return what goes out again: the service takes no empty text, and no thought that leads nowhere."""
        content = []
        for index, block in sorted(self._blocks.items()):
            kind = block["type"]
            if kind == "tool_use":
                content.append(block | {"input": _object(self._joined(index, "partial_json"))})
            elif kind == "text":
                if text := block.get("text", "") + self._joined(index, "text"):
                    content.append(block | {"text": text})
            elif kind == "thinking":
                thought = block.get("thinking", "") + self._joined(index, "thinking")
                signature = block.get("signature", "") + self._joined(index, "signature")
                content.append(block | {"thinking": thought, "signature": signature})
            else:
                content.append(block)
        while content and content[-1]["type"] in {"thinking", "redacted_thinking"}:
            content.pop()
        return content

    def turn(self) -> Turn:
        """Return the answer in the loop's words."""
        blocks = sorted(self._blocks.items())
        calls = tuple(
            Call(id=block["id"], tool=block["name"], arguments=self._joined(index, "partial_json"))
            for index, block in blocks
            if block["type"] == "tool_use"
        )
        counts = {name: self._usage.get(name, 0) for name in _COUNTS}
        written, read = counts["cache_creation_input_tokens"], counts["cache_read_input_tokens"]
        total = counts["input_tokens"] + written + read
        details = self._usage.get("output_tokens_details") or {}
        return Turn(
            texts=tuple(self._joined(index, "text") for index, block in blocks if block["type"] == "text"),
            thoughts=tuple(self._joined(index, "thinking") for index, block in blocks if block["type"] == "thinking"),
            calls=calls,
            stop=_STOPS.get(self.stop) or ("calls" if calls else "done"),
            model=self._model,
            usage=Usage(
                input=total,
                cached=read,
                output=counts["output_tokens"],
                reasoning=details.get("thinking_tokens") or 0,
                turns=1,
                complete="output_tokens" in self._usage,
            ),
            context=total,
            written=written,
            id=self._id,
        )

    def _joined(self, index: int, name: str) -> str:
        """Return the pieces as one text; a letter may be cut in two, and half a letter is none."""
        text = "".join(self._pieces.get((index, name), ()))
        return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _object(text: str) -> dict[str, Any]:
    """Return the arguments of a call as the service wants them back: an object, even where the model wrote none."""
    try:
        value = msgspec.json.decode(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

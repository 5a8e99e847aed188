"""Anthropic's Messages."""

from collections.abc import Iterator
from typing import Any, Final, Literal

from tests.service.conversation import Asked, Json, Said, Tool, plain
from tests.service.protocol import Answer, Event, pieces, properties
from tests.service.script import Fault
from tests.service.tools import Call

BREAKPOINTS: Final = 4
"""So many blocks of a request may carry a mark for the cache."""


def blocks(content: Any) -> list[Json]:  # noqa: ANN401 - JSON
    """Return the blocks of a content, which may be a string."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


class Messages:
    """The protocol of `/v1/messages`."""

    vendor: Literal["anthropic", "openai"] = "anthropic"

    def asked(self, body: Json) -> Asked:
        """Read a request."""
        tools = [
            Tool(tool["name"], tool.get("type") or "custom", properties(tool.get("input_schema")))
            for tool in body.get("tools") or ()
            if "name" in tool
        ]
        wanted = (body.get("output_config") or {}).get("format") or body.get("output_format")
        return Asked(
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            system=plain(body.get("system")),
            said=[said for message in body["messages"] for said in _said(message)],
            tools={tool.name: tool for tool in tools},
            structured=bool(wanted),
        )

    def refused(self, body: Json) -> str | None:
        """Return what the real service would refuse in a request, in its words."""
        if not isinstance(body.get("max_tokens"), int):
            return "max_tokens: Field required"
        if not body["messages"]:
            return "messages: at least one message is required"
        if (marked := _marked(body)) > BREAKPOINTS:
            return f"A maximum of {BREAKPOINTS} blocks with cache_control may be provided. Found {marked}."
        return _unpaired([message for message in body["messages"] if message["role"] != "system"])

    def whole(self, answer: Answer) -> Json:
        """Write an answer as one document."""
        content: list[Json] = []
        if answer.thinking:
            content.append({"type": "thinking", "thinking": answer.thinking, "signature": "c2lnbmVk"})
        for part in answer.parts:
            if isinstance(part, Call):
                content.append({"type": "tool_use", "id": answer.ids("toolu"), "name": part.name})
                content[-1]["input"] = part.arguments
            else:
                content.append({"type": "text", "text": part})
        stop = answer.stop or ("tool_use" if answer.calls else "end_turn")
        refusal = {"type": "refusal", "category": None, "explanation": None} if stop == "refusal" else None
        counts = answer.counts
        return {
            "id": answer.ids("msg"),
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "stop_details": refusal,
            "usage": {
                "input_tokens": counts.input - counts.cached - counts.written,
                "cache_creation_input_tokens": counts.written,
                "cache_read_input_tokens": counts.cached,
                "cache_creation": {"ephemeral_5m_input_tokens": counts.written, "ephemeral_1h_input_tokens": 0},
                "output_tokens": counts.output,
                "output_tokens_details": {"thinking_tokens": counts.reasoning},
                "service_tier": "standard",
            },
        }

    def events(self, whole: Json, body: Json) -> Iterator[Event]:
        """Write the same answer as the events of a stream."""
        del body
        usage = whole["usage"]
        opening = {"content": [], "stop_reason": None, "stop_details": None, "usage": usage | {"output_tokens": 1}}
        yield _event("message_start", message=whole | opening)
        yield _event("ping")
        for index, block in enumerate(whole["content"]):
            empty, deltas = _deltas(block)
            yield _event("content_block_start", index=index, content_block=empty)
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        end = {name: whole[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
        spent = {name: count for name, count in usage.items() if name not in {"cache_creation", "service_tier"}}
        yield _event("message_delta", delta=end, usage=spent)
        yield _event("message_stop")

    def broken(self, fault: Fault, whole: Json, count: int) -> Event:
        """Return the event of an error in a stream."""
        del whole, count
        error = {"type": fault.type or "overloaded_error", "message": fault.message or "Overloaded"}
        return _event("error", error=error)


def _event(name: str, **data: Any) -> Event:  # noqa: ANN401 - JSON
    return name, {"type": name, **data}


def _deltas(block: Json) -> tuple[Json, Iterator[Json]]:
    """Return a block as it begins, and what is added to it."""
    if block["type"] == "text":
        return block | {"text": ""}, ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    if block["type"] == "thinking":
        thought: Iterator[Json] = ({"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"]))
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return block | {"thinking": "", "signature": ""}, iter([*thought, signed])
    text = Call("", block["input"]).text()
    return block | {"input": {}}, ({"type": "input_json_delta", "partial_json": p} for p in pieces(text))


def _said(message: Json) -> Iterator[Said]:
    """Yield what one message says: all of an answer at once, else block by block."""
    content = blocks(message["content"])
    if message["role"] == "assistant":
        yield Said("model", plain(content))
        return
    for block in content:
        if block.get("type") == "tool_result":
            yield Said("tool", plain(block.get("content")))
        elif block.get("type") == "text":
            yield Said("system" if message["role"] == "system" else "user", block["text"])


def _marked(body: Json) -> int:
    """Count the marks for the cache, on the request, on blocks and on blocks inside of them."""
    count = int("cache_control" in body)
    rows = [body.get("tools"), body.get("system"), *(message["content"] for message in body["messages"])]
    for row in rows:
        for block in row if isinstance(row, list) else ():
            count += "cache_control" in block
            inner = block.get("content")
            if isinstance(inner, list):
                count += sum("cache_control" in part for part in inner)
    return count


def _unpaired(messages: list[Json]) -> str | None:
    """Say which call has no result, which result no call, and which text is empty."""
    calls: list[str] = []
    for at, message in enumerate(messages):
        asked, results = [], []
        for block in blocks(message["content"]):
            kind = block.get("type")
            if kind == "tool_use":
                asked.append(block["id"])
            elif kind == "tool_result":
                results.append(block["tool_use_id"])
            elif kind == "text" and not block["text"]:
                return "messages: text content blocks must be non-empty"
        if missing := [call for call in calls if call not in results]:
            return (
                f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        if unknown := [result for result in results if result not in calls]:
            return (
                f"messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {unknown[0]}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        calls = asked
    if calls:
        return f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks immediately after"
    return None

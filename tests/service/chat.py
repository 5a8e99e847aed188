"""OpenAI's Chat Completions, as local servers speak it too."""

from collections.abc import Iterator
from typing import Any, Final, Literal

from tests.service.conversation import Asked, Json, Said, Tool, number, plain
from tests.service.faults import OPENAI
from tests.service.protocol import CREATED, Answer, Event, pieces, properties
from tests.service.script import Fault

SPEAKERS: Final[dict[str, Literal["user", "model", "tool", "system"]]] = {
    "assistant": "model",
    "tool": "tool",
    "user": "user",
}


class Chat:
    """The protocol of `/v1/chat/completions`."""

    vendor: Literal["anthropic", "openai"] = "openai"

    def asked(self, body: Json) -> Asked:
        """Read a request."""
        told = [plain(one.get("content")) for one in body["messages"] if one["role"] in {"system", "developer"}]
        tools = [
            Tool(tool["function"]["name"], "function", properties(tool["function"].get("parameters")))
            for tool in body.get("tools") or ()
            if tool.get("type") == "function"
        ]
        wanted = (body.get("response_format") or {}).get("type")
        return Asked(
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            system="\n".join(told),
            said=[_said(message) for message in body["messages"] if message["role"] in SPEAKERS],
            tools={tool.name: tool for tool in tools},
            structured=wanted in {"json_schema", "json_object"},
        )

    def refused(self, body: Json) -> str | None:
        """Return what the real service would refuse in a request, in its words."""
        waiting: list[str] = []
        for message in body["messages"]:
            if message["role"] == "tool":
                if message.get("tool_call_id") not in waiting:
                    return (
                        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                        "'tool_calls'."
                    )
                waiting.remove(message["tool_call_id"])
                continue
            if waiting:
                break
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if waiting:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
            )
        return None

    def whole(self, answer: Answer) -> Json:
        """Write an answer as one document."""
        text = "".join(answer.texts)
        refused = answer.stop == "refusal"
        message: Json = {"role": "assistant", "content": None if refused else text or None}
        message["refusal"] = text if refused else None
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        if answer.calls:
            message["tool_calls"] = [
                {"id": answer.ids("call"), "type": "function", "function": {"name": c.name, "arguments": c.text()}}
                for c in answer.calls
            ]
        usual = "tool_calls" if answer.calls else "stop"
        stop = {None: usual, "max_tokens": "length", "refusal": "stop"}.get(answer.stop, answer.stop)
        counts = answer.counts
        return {
            "id": answer.ids("chatcmpl"),
            "object": "chat.completion",
            "created": CREATED,
            "model": answer.model,
            "choices": [{"index": 0, "message": message, "finish_reason": stop, "logprobs": None}],
            "usage": {
                "prompt_tokens": counts.input,
                "completion_tokens": counts.output,
                "total_tokens": counts.input + counts.output,
                "prompt_tokens_details": {"cached_tokens": counts.cached},
                "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
            },
        }

    def events(self, whole: Json, body: Json) -> Iterator[Event]:
        """Write the same answer as the events of a stream; its usage only for who asks."""
        [choice] = whole["choices"]
        said = choice["message"]
        head = {"id": whole["id"], "object": "chat.completion.chunk", "created": CREATED, "model": whole["model"]}
        counted = bool((body.get("stream_options") or {}).get("include_usage"))
        usage: Json = {"usage": None} if counted else {}

        def chunk(delta: Json, finish: str | None = None) -> Event:
            choices = [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]
            return None, {**head, "choices": choices, **usage}

        yield chunk({"role": "assistant", "content": ""})
        for key in ("reasoning_content", "content", "refusal"):
            for piece in pieces(said.get(key) or ""):
                yield chunk({key: piece})
        for index, call in enumerate(said.get("tool_calls") or ()):
            opening = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield chunk({"tool_calls": [opening]})
            for piece in pieces(call["function"]["arguments"]):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, choice["finish_reason"])
        if counted:
            yield None, {**head, "choices": [], "usage": whole["usage"]}
        yield None, "[DONE]"

    def broken(self, fault: Fault, whole: Json, count: int) -> Event:
        """Return an error in place of a piece."""
        del whole, count
        said = fault.message or OPENAI["server"].message
        return None, {"error": {"message": said, "type": "server_error", "param": None, "code": fault.type}}


def _said(message: Json) -> Said:
    calls: list[Any] = message.get("tool_calls") or []
    answer = number(calls[0].get("id")) if calls else None
    return Said(SPEAKERS[message["role"]], plain(message.get("content")), answer)

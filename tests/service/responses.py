"""OpenAI's Responses."""

import itertools
from collections.abc import Iterator
from typing import Any, Final, Literal

from tests.service.conversation import Asked, Json, Said, Tool, number, plain
from tests.service.faults import OPENAI
from tests.service.protocol import CREATED, Answer, Event, pieces, properties
from tests.service.script import Fault
from tests.service.tools import Call

OF_MODEL: Final = frozenset({"reasoning", "web_search_call", "function_call", "custom_tool_call"}) | {
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
}
"""The types of item, besides messages, that are part of an answer."""


def items(body: Json) -> list[Json]:
    """Return the items that go in, which may be one string."""
    given = body.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


class Responses:
    """The protocol of `/v1/responses`."""

    vendor: Literal["anthropic", "openai"] = "openai"

    def asked(self, body: Json) -> Asked:
        """Read a request."""
        given = items(body)
        told = [plain(item.get("content")) for item in given if item.get("role") in {"developer", "system"}]
        later = [item.get("tools") for item in given if item.get("type") == "additional_tools"]
        tools = [tool for offered in [body.get("tools"), *later] for tool in _tools(offered or ())]
        wanted = ((body.get("text") or {}).get("format") or {}).get("type")
        return Asked(
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            system="\n".join([body.get("instructions") or "", *told]),
            said=[said for item in given for said in _said(item)],
            tools={tool.name: tool for tool in tools},
            structured=wanted in {"json_schema", "json_object"},
        )

    def refused(self, body: Json) -> str | None:
        """Return what the real service would refuse in a request, in its words."""
        if body.get("previous_response_id"):
            return f"Previous response with id '{body['previous_response_id']}' not found."
        calls = [item for item in items(body) if str(item.get("type")).endswith("_call") and "call_id" in item]
        made = {item["call_id"] for item in calls}
        got = {item["call_id"] for item in items(body) if str(item.get("type")).endswith("_call_output")}
        for item in calls:
            if item["call_id"] not in got:
                return f"No tool output found for {item['type'].replace('_', ' ')} {item['call_id']}."
        for call in got - made:
            return f"No tool call found for function call output with call_id {call}."
        return None

    def whole(self, answer: Answer) -> Json:
        """Write an answer as one document."""
        cut = answer.stop in {"max_tokens", "content_filter"}
        counts = answer.counts
        why = {"reason": "max_output_tokens" if answer.stop == "max_tokens" else answer.stop} if cut else None
        return {
            "id": answer.ids("resp"),
            "object": "response",
            "created_at": CREATED,
            "status": "incomplete" if cut else "completed",
            "model": answer.model,
            "output": list(_output(answer, cut=cut)),
            "error": None,
            "incomplete_details": why,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": counts.input,
                "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": counts.written},
                "output_tokens": counts.output,
                "output_tokens_details": {"reasoning_tokens": counts.reasoning},
                "total_tokens": counts.input + counts.output,
            },
        }

    def events(self, whole: Json, body: Json) -> Iterator[Event]:
        """Write the same answer as the events of a stream."""
        del body
        empty: Json = {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        steps = [
            ("response.created", {"response": whole | empty}),
            ("response.in_progress", {"response": whole | empty}),
        ]
        grown = (step for at, item in enumerate(whole["output"]) for step in _grown(at, item))
        end = [(f"response.{whole['status']}", {"response": whole})]
        for count, (name, data) in enumerate(itertools.chain(steps, grown, end)):
            yield name, {"type": name, "sequence_number": count, **data}

    def broken(self, fault: Fault, whole: Json, count: int) -> Event:
        """Return the event of a response that failed."""
        error = {"code": fault.type or "server_error", "message": fault.message or OPENAI["server"].message}
        failed = whole | {"status": "failed", "error": error, "output": [], "usage": None}
        return "response.failed", {"type": "response.failed", "sequence_number": count, "response": failed}


def _tools(offered: Any, namespace: str | None = None) -> Iterator[Tool]:  # noqa: ANN401 - JSON
    for tool in offered:
        name = str(tool.get("name") or tool.get("type"))
        if tool.get("type") == "namespace":
            yield from _tools(tool.get("tools") or (), name)
        else:
            yield Tool(name, str(tool.get("type")), properties(tool.get("parameters")), namespace)


def _said(item: Json) -> Iterator[Said]:
    kind = item.get("type") or "message"
    if kind in OF_MODEL or item.get("role") == "assistant":
        yield Said("model", plain(item.get("content")), number(item.get("call_id") or item.get("id")))
    elif kind.endswith("_output"):
        yield Said("tool", plain(item.get("output")))
    elif item.get("role") == "user":
        parts = item.get("content")
        for part in [parts] if isinstance(parts, str) else parts or ():
            yield Said("user", plain(part if isinstance(part, str) else [part]))


def _output(answer: Answer, *, cut: bool) -> Iterator[Json]:
    """Yield the items of an answer."""
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        yield {"type": "reasoning", "id": answer.ids("rs"), "summary": summary, "encrypted_content": "c2VhbGVk"}
    for part in answer.parts:
        if isinstance(part, Call):
            yield _called(part, answer)
            continue
        said: Json = {"type": "output_text", "text": part, "annotations": [], "logprobs": []}
        if answer.stop == "refusal":
            said = {"type": "refusal", "refusal": part}
        status = "incomplete" if cut else "completed"
        yield {"type": "message", "id": answer.ids("msg"), "role": "assistant", "status": status, "content": [said]}


def _called(call: Call, answer: Answer) -> Json:
    common: Json = {"id": answer.ids("fc"), "call_id": answer.ids("call"), "status": "completed"}
    given = call.arguments
    if call.form == "custom":
        return {"type": "custom_tool_call", **common, "name": call.name, "input": call.text()}
    if call.form == "shell":
        return {"type": "shell_call", **common, "action": given}
    if call.form == "apply_patch":
        return {"type": "apply_patch_call", **common, "operation": given}
    if call.form == "local_shell":
        action = {"type": "exec", "env": {}, **(given if isinstance(given, dict) else {"command": [given]})}
        return {"type": "local_shell_call", **common, "action": action}
    namespace = {"namespace": call.namespace} if call.namespace else {}
    return {"type": "function_call", **common, "name": call.name, "arguments": call.text(), **namespace}


def _grown(index: int, item: Json) -> Iterator[tuple[str, Json]]:
    """Yield the events of one item, from empty to whole."""
    kind, at = item["type"], {"item_id": item["id"], "output_index": index}
    bare: dict[str, Json] = {
        "message": {"content": []},
        "reasoning": {"summary": []},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
    }
    begun = item | bare.get(kind, {}) | ({} if kind == "reasoning" else {"status": "in_progress"})
    yield "response.output_item.added", {"output_index": index, "item": begun}
    if kind == "message":
        part = item["content"][0]
        key, stem = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
        at["content_index"] = 0
        yield "response.content_part.added", {**at, "part": part | {key: ""}}
        more: Json = {"logprobs": []} if key == "text" else {}
        for piece in pieces(part[key]):
            yield f"response.{stem}.delta", {**at, "delta": piece, **more}
        yield f"response.{stem}.done", {**at, key: part[key], **more}
        yield "response.content_part.done", {**at, "part": part}
    elif kind == "reasoning":
        [part] = item["summary"]
        at["summary_index"] = 0
        yield "response.reasoning_summary_part.added", {**at, "part": part | {"text": ""}}
        for piece in pieces(part["text"]):
            yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
        yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**at, "part": part}
    elif kind in {"function_call", "custom_tool_call"}:
        key, stem = ("arguments", "function_call_arguments") if kind == "function_call" else ("input", f"{kind}_input")
        for piece in pieces(item[key]):
            yield f"response.{stem}.delta", {**at, "delta": piece}
        named = {"name": item["name"]} if kind == "function_call" else {}
        yield f"response.{stem}.done", {**at, key: item[key], **named}
    yield "response.output_item.done", {"output_index": index, "item": item}

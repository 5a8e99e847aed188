"""The vendors' own clients in conversation with the service: what they make of it is what counts."""

import json
import ssl
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import anthropic
import httpx2
import openai

from tests.service.conversation import Json
from tests.service.server import Service

Speech = Literal["messages", "responses", "chat"]

KEY: Final = "sk-secret-1234567890"
SHELL: Final = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def carrier() -> httpx2.Client:
    """Return what carries requests, past all proxies; without certificates, which take long to read."""
    return httpx2.Client(trust_env=False, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _parsed(arguments: str) -> object:
    """Return what arguments say, or themselves where they are no JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


class Heard(NamedTuple):
    """What a client makes of an answer."""

    text: str
    calls: list[tuple[str, Any]]
    stop: str | None
    whole: Any


@dataclass
class Talk:
    """A conversation by the vendor's own client: it asks, and answers calls of tools with `ok`."""

    service: Service
    wire: Speech
    stream: bool = False
    timeout: float = 20
    history: list[Any] = field(default_factory=list)

    def ask(self, text: str | None = None, **more: object) -> Heard:
        """Say something, or only go on, and return the answer, which becomes part of the conversation."""
        if text is not None:
            self.history.append({"role": "user", "content": text})
        with carrier() as http:
            common: Any = {"api_key": KEY, "max_retries": 0, "timeout": self.timeout, "http_client": http}
            if self.wire == "messages":
                return self._messages(anthropic.Anthropic(base_url=self.service.url, **common), more)
            client = openai.OpenAI(base_url=f"{self.service.url}/v1", **common)
            return self._responses(client, more) if self.wire == "responses" else self._chat(client, more)

    def _messages(self, client: anthropic.Anthropic, more: Json) -> Heard:
        tools = [{"name": "bash", "input_schema": SHELL}]
        asked: Any = {"model": "m", "max_tokens": 99, "messages": self.history, "tools": tools} | more
        if self.stream:
            with client.messages.stream(**asked) as stream:
                got = stream.get_final_message()
        else:
            got = client.messages.create(**asked)
        called = [block for block in got.content if block.type == "tool_use"]
        self.history.append(
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in got.content]}
        )
        results = [{"type": "tool_result", "tool_use_id": block.id, "content": "ok"} for block in called]
        self.history += [{"role": "user", "content": results}] if results else []
        text = "".join(block.text for block in got.content if block.type == "text")
        return Heard(text, [(block.name, block.input) for block in called], got.stop_reason, got)

    def _responses(self, client: openai.OpenAI, more: Json) -> Heard:
        tools = [{"type": "function", "name": "bash", "parameters": SHELL, "strict": False}]
        asked: Any = {"model": "m", "input": self.history, "tools": tools, "store": False} | more
        if self.stream:
            with client.responses.stream(**asked) as stream:
                got: Any = [event for event in stream if event.type.startswith("response.")][-1].response  # type: ignore[union-attr]
        else:
            got = client.responses.create(**asked)
        called = [item for item in got.output if item.type == "function_call"]
        self.history += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in got.output]
        self.history += [{"type": "function_call_output", "call_id": c.call_id, "output": "ok"} for c in called]
        stop = got.incomplete_details.reason if got.incomplete_details else got.status
        return Heard(got.output_text, [(c.name, _parsed(c.arguments)) for c in called], stop, got)

    def _chat(self, client: openai.OpenAI, more: Json) -> Heard:
        tools = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}]
        asked: Any = {"model": "m", "messages": self.history, "tools": tools} | more
        if self.stream:
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                try:
                    got: Any = stream.get_final_completion()
                except openai.LengthFinishReasonError as cut:
                    got = cut.completion
        else:
            got = client.chat.completions.create(**asked)
        [choice] = got.choices
        called = choice.message.tool_calls or []
        self.history.append(choice.message.model_dump(exclude_none=True, exclude={"parsed"}))
        self.history += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in called]
        made = [(call.function.name, _parsed(call.function.arguments)) for call in called]
        return Heard(choice.message.content or "", made, choice.finish_reason, got)

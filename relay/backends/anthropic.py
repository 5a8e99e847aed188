"""Anthropic's Messages, streamed, through its own SDK; any service that speaks them, by `base_url`.

A cache keeps what lies before a mark, and looks for it at most 20 blocks before one
(https://docs.claude.com/en/docs/build-with-claude/prompt-caching). So four blocks are marked, all that the service
takes: the system prompt, with the tools before it; the prompt; the end of what was sent before and is the same still;
the end of this request.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from relay.backends import anthropic_faults, loop, prices, sending, tools
from relay.backends.anthropic_answer import Answer
from relay.backends.base import Lane, Needs
from relay.backends.talk import Fault, Result, Tool, Turn
from relay.backends.wire import DONE, Wire, near
from relay.errors import Exit, RelayError
from relay.host import clock
from relay.terms import Agent, Ask, Taken

by_hand = False
HOME: Final = "https://api.anthropic.com"
KEY: Final = "ANTHROPIC_API_KEY"
MODEL: Final = "claude-opus-5-5"
"""The model of an agent that names none; only Anthropic itself has it."""
MOST: Final = 32_000
"""Tokens of the longest answer where `max_output` says nothing: every current model gives as many."""
FEW: Final = 16
"""Tokens of the answer to a probe."""
SILENT: Final = 60.0
"""Seconds that a probe takes at most."""
_MARK: Final = {"type": "ephemeral"}


def preflight(agent: Agent, where: Path) -> str:
    """Return the version of the SDK; a key that is not set is a `RelayError` with exit 4. Nothing is sent."""
    del where
    _ready(agent)
    return _version()


def needs(ask: Ask) -> Needs:
    """Return the folder in which long output is kept: the agent's commands may read it; the loop runs outside."""
    return Needs(readable=(Path(ask.reply_path).parent,))


def take(ask: Ask, lane: Lane, pause: Callable[[float], None] = clock.pause) -> Taken:
    """Take one leg: the loop, over a conversation of Messages."""
    agent = ask.agent
    try:
        secrets = _ready(agent)
    except RelayError as error:
        missing = "is not set" in error.message
        return Taken(ended_by="auth" if missing else "setup", problem=error.message, version=_version())
    model = agent.model or MODEL
    with _wire(agent, secrets) as wire:
        return loop.run(
            ask,
            lane,
            Messages(wire, agent, loop.system(ask), tools.offered(ask)),
            price=lambda turn: prices.cost("anthropic", turn.model, turn, agent.price, asked=model),
            priced=prices.known("anthropic", agent, model),
            window=prices.window("anthropic", agent, model),
            secrets=secrets,
            pause=pause,
            version=_version(),
        )


def probe(agent: Agent) -> str:
    """Ask for a few tokens and say what came; `RelayError` with exit 4 where set-up is missing, with 5 for a fault."""
    secrets = _ready(agent)
    few: Agent = msgspec.structs.replace(agent, max_output=FEW, effort=None)
    began = clock.monotonic()
    with _wire(agent, secrets) as wire:
        talk = Messages(wire, few, "", ())
        talk.say("Say ok.")
        try:
            with sending.bounded(talk, lambda: began + SILENT - clock.monotonic()):
                turn = talk.send(lambda _: None, SILENT)
        except Fault as fault:
            hint = f"look at `[agents.{agent.name}]` in relay.toml; its key: {key(agent)}"
            raise RelayError(fault.problem, hint=hint, exit_code=Exit.AGENT) from None
    counted = f"{turn.usage.input} tokens in, {turn.usage.output} out"
    return f"`{turn.model}` at `{_host(agent)}` answered in {clock.monotonic() - began:.1f} s, {counted}"


def key(agent: Agent) -> str:
    """Say where the key is found, or which variable is not set; never its value."""
    name = _variable(agent)
    if not name:
        return "none needed"
    return name if os.environ.get(name, "").strip() else f"{name} is not set"


def _variable(agent: Agent) -> str:
    """Return the variable that holds the key; a server of one's own on this machine needs none."""
    return agent.key or ("" if agent.base_url and near(agent.base_url) else KEY)


def _ready(agent: Agent) -> dict[str, str]:
    """Return the key by its variable, if one is needed; `RelayError` (exit 4) where something is missing."""
    line = f"look at `[agents.{agent.name}]` in relay.toml"
    parts = urlsplit(agent.base_url or HOME)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        problem = f"`base_url` of agent `{agent.name}` is no address: `{agent.base_url}`"
        raise RelayError(problem, hint=f'{line}: base_url = "http://127.0.0.1:8080"', exit_code=Exit.HUMAN)
    if agent.base_url and not agent.model:
        raise RelayError(f"agent `{agent.name}` names no model", hint=f"{line}: model = ...", exit_code=Exit.HUMAN)
    name = _variable(agent)
    if not name:
        return {}
    value = os.environ.get(name, "").strip()
    if not value:
        hint = f"export {name}=..., or name another variable by `key` in `[agents.{agent.name}]`"
        raise RelayError(f"`{name}` is not set", hint=hint, exit_code=Exit.HUMAN)
    if not (value.isascii() and value.isprintable() and " " not in value):
        problem = f"`{name}` holds what can be no key: it has spaces or characters that no header may have"
        raise RelayError(problem, hint=f"export {name}=... again", exit_code=Exit.HUMAN)
    return {name: value}


def _version() -> str:
    return f"anthropic {metadata.version('anthropic')}"


def _host(agent: Agent) -> str:
    return urlsplit(agent.base_url or HOME).netloc.rpartition("@")[2]


def _wire(agent: Agent, secrets: dict[str, str]) -> Wire:
    import anthropic

    return Wire(anthropic, next(iter(secrets.values()), "none"), (agent.base_url or HOME).rstrip("/"))


class Messages:
    """A conversation over `/v1/messages`."""

    def __init__(self, wire: Wire, agent: Agent, system: str, offered: Sequence[Tool]) -> None:
        self._wire, self._host = wire, _host(agent)
        self._messages: list[dict[str, Any]] = []
        self._results: dict[str, tuple[int, dict[str, Any]]] = {}
        self._marked: list[dict[str, Any]] = []
        self._kept = 0
        self._request: dict[str, Any] = {
            "model": agent.model or MODEL,
            "max_tokens": agent.max_output or MOST,
            "messages": self._messages,
            "stream": True,
        }
        if offered:
            self._request["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in offered
            ]
        if system:
            self._request["system"] = [{"type": "text", "text": system, "cache_control": _MARK}]
        if agent.effort is not None:
            self._request["output_config"] = {"effort": agent.effort}
            self._request["thinking"] = {"type": "adaptive", "display": "summarized"}

    def say(self, text: str) -> None:
        """Add words of Relay's."""
        self._add({"type": "text", "text": text})

    def answer(self, results: tuple[Result, ...]) -> None:
        """Add what came of all calls of the last turn."""
        for result in results:
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.id, "content": result.text}
            if not result.ok:
                block["is_error"] = True
            self._add(block)
            self._results[result.id] = (len(self._messages) - 1, block)

    def trim(self, id: str, text: str) -> None:  # noqa: A002 - as in the Protocol
        """Put `text` in the place of the result of an old call; what the cache has now ends before that."""
        at, block = self._results[id]
        block["content"] = text
        self._kept = min(self._kept, max(0, at - 2))

    def send(self, heard: Callable[[str], None], seconds: float) -> Turn:
        """Send the conversation and return the answer, which is then part of it; raises `Fault`."""
        self._mark()
        answer = Answer()
        try:
            self._read(answer, heard, seconds)
        except Fault:
            if not answer.whole:  # what comes after its end is of no account
                raise
        if not answer.whole:
            raise Fault("overload", f"`{self._host}` hung up in the middle of an answer")
        if answer.stop == "model_context_window_exceeded":
            raise Fault("context", "the answer ran past the end of the model's window")
        try:
            content, turn = answer.content(), answer.turn(self._request["model"])
        except (ValueError, RecursionError) as error:
            raise self._odd(error) from None
        self._kept = len(self._messages) - 1
        if content:
            self._messages.append({"role": "assistant", "content": content})
        return turn

    def hang_up(self) -> None:
        """Break off what `send` waits for, from another thread."""
        self._wire.hang_up()

    def _read(self, answer: Answer, heard: Callable[[str], None], seconds: float) -> None:
        """Send, and put an answer together from each event, pings too."""
        events = self._wire.events(
            "/v1/messages", self._request, seconds, lambda error: anthropic_faults.of(error, self._host)
        )
        with closing(events):
            for event in events:
                if event is DONE:
                    return
                try:
                    words = answer.take(event)
                except ValueError as error:
                    raise self._odd(error) from None
                heard(words)
                if event["type"] == "error":
                    raise anthropic_faults.told(event, self._host, None)

    def _odd(self, error: Exception) -> Fault:
        return Fault("overload", f"`{self._host}` sent what is no answer: {error}")

    def _add(self, block: dict[str, Any]) -> None:
        if not self._messages or self._messages[-1]["role"] != "user":
            self._messages.append({"role": "user", "content": []})
        self._messages[-1]["content"].append(block)

    def _mark(self) -> None:
        """Move the marks: to the prompt, to the end of what the cache has, to the end of this request."""
        for block in self._marked:
            block.pop("cache_control", None)
        self._marked = [
            self._messages[0]["content"][0],
            *(self._messages[at]["content"][-1] for at in (self._kept, -1)),
        ]
        for block in self._marked:
            block["cache_control"] = _MARK

"""OpenAI's protocols through its own SDK; any service that speaks one of them, by `base_url`.

Responses by itself, Chat Completions where the agent's line says `api = "chat"`.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from relay.backends import loop, openai_chat, openai_service, prices, sending, tools
from relay.backends.base import Lane, Needs
from relay.backends.openai_responses import Responses
from relay.backends.openai_service import Service
from relay.backends.talk import Fault, Talk, Tool
from relay.backends.wire import Wire
from relay.errors import Exit, RelayError
from relay.host import clock
from relay.terms import Agent, Ask, Taken

by_hand = False
FEW: Final = 16
"""Tokens of the answer to a probe: the fewest that the service lets one ask for."""
SILENT: Final = 60.0
"""Seconds that a probe takes at most."""


def preflight(agent: Agent, where: Path) -> str:
    """Return the version of the SDK; a key that is not set is a `RelayError` with exit 4. Nothing is sent."""
    del where
    openai_service.ready(agent)
    return openai_service.version()


def needs(ask: Ask) -> Needs:
    """Return the folder in which long output is kept: the agent's commands may read it; the loop runs outside."""
    return Needs(readable=(Path(ask.reply_path).parent,))


def take(ask: Ask, lane: Lane, pause: Callable[[float], None] = clock.pause) -> Taken:
    """Take one leg: the loop, over whichever protocol the agent's service speaks."""
    version = openai_service.version()
    try:
        service = openai_service.ready(ask.agent)
    except RelayError as error:
        missing = error.exit_code is Exit.HUMAN and "is not set" in error.message
        return Taken(ended_by="auth" if missing else "setup", problem=error.message, version=version)
    with openai_service.wire(service) as wire:
        return loop.run(
            ask,
            lane,
            _talk(wire, service, ask.agent, loop.system(ask), tools.offered(ask), cache(ask)),
            price=lambda turn: prices.cost("openai", turn.model, turn, ask.agent.price, asked=service.model),
            priced=prices.known("openai", ask.agent, service.model),
            window=prices.window("openai", ask.agent, service.model),
            secrets=service.secrets(),
            pause=pause,
            version=version,
        )


def probe(agent: Agent) -> str:
    """Ask for a few tokens and say what came; `RelayError` with exit 4 where set-up is missing, with 5 for a fault."""
    service = openai_service.ready(agent)
    few: Agent = msgspec.structs.replace(agent, max_output=FEW)
    began = clock.monotonic()
    with openai_service.wire(service) as wire:
        talk = _talk(wire, service, few, "", (), "relay-probe")
        talk.say("Say ok.")
        try:
            with sending.bounded(talk, lambda: began + SILENT - clock.monotonic()):
                turn = talk.send(lambda _: None, SILENT)
        except Fault as fault:
            hint = f"look at `[agents.{agent.name}]` in relay.toml; its key: {openai_service.found(agent)}"
            raise RelayError(fault.problem, hint=hint, exit_code=Exit.AGENT) from None
    counted = f"{turn.usage.input} tokens in, {turn.usage.output} out" if turn.usage.complete else "tokens not counted"
    return f"`{turn.model}` at `{service.host}` answered in {clock.monotonic() - began:.1f} s, {counted}"


def key(agent: Agent) -> str:
    """Say where the key is found, or which variable is not set."""
    return openai_service.found(agent)


def cache(ask: Ask) -> str:
    """Name the cache that all legs of a phase share: their requests begin alike. The service takes 64 characters."""
    return "relay-" + hashlib.sha256(f"{ask.run}\n{ask.phase}".encode()).hexdigest()[:32]


def _talk(wire: Wire, service: Service, agent: Agent, system: str, offered: Sequence[Tool], cached: str) -> Talk:
    kind = openai_chat.Chat if agent.api == "chat" else Responses
    return kind(wire, service, agent, system, offered, cached)

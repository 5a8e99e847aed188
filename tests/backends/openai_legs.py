"""Legs over OpenAI's protocols, taken against the service of the tests."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relay.backends import openai, openai_chat, openai_responses, openai_service
from relay.backends.talk import Talk, Tool
from relay.record import reply
from relay.terms import Agent, Ask, Kind, Limits, Taken, Told
from tests.backends.lanes import lane
from tests.service import Json, Script, Service

KEY = f"sk-test-{secrets.token_hex(16)}"
VARIABLE = "TEST_SERVICE_KEY"
DONE = {"status": "done", "summary": "wrote it"}


@dataclass
class Leg:
    """How a leg ended, what it told, how long it waited, and the bodies of its requests."""

    taken: Taken
    told: list[Told] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    bodies: list[Json] = field(default_factory=list)

    def texts(self, kind: str) -> list[str]:
        """Return the texts of what it told of one kind."""
        return [told.text for told in self.told if told.type == kind]


def agent(service: Service | None, **line: Any) -> Agent:  # noqa: ANN401 - whatever a line may say
    """Return an agent of OpenAI's, or of a service of the tests, as a line in relay.toml would say it."""
    where = {"base_url": f"{service.url}/v1", "key": VARIABLE} if service else {}
    return Agent(**{"name": "gpt", "backend": "openai", "vendor": "openai", "model": "gpt-6-sol", **where, **line})


def ask(root: Path, who: Agent, kind: Kind = "work", **limits: Any) -> Ask:  # noqa: ANN401 - as above
    """Return what a leg in `root` asks."""
    folder = root / "leg"
    folder.mkdir(exist_ok=True)
    beside = root / "leg.io" / "reply.json"
    beside.parent.mkdir(exist_ok=True)
    return Ask(
        run="261129-0230-fix-login",
        leg="01-implement",
        phase="implement",
        kind=kind,
        boundary="implement" if kind == "work" else "verify-only",
        round=1,
        turn=1,
        nonce="n" * 32,
        prompt="make it so",
        folder=str(folder),
        reply_path=str(beside),
        limits=Limits(**{"seconds": 600, **limits}),
        agent=who,
        schema=reply.schema(kind),
    )


def take(asked: Ask) -> Leg:
    """Take a leg; its waits are counted, not waited."""
    told: list[Told] = []
    waits: list[float] = []
    return Leg(openai.take(asked, lane(asked, told=told.append), pause=waits.append), told, waits)


def played(root: Path, script: Script, **line: Any) -> Leg:  # noqa: ANN401 - as above
    """Take a leg against a service that plays a script, and that has nothing to complain about."""
    with Service(script) as service:
        leg = take(ask(root, agent(service, **line)))
        assert service.problems == []
        leg.bodies = [request.body for request in service.requests]
        return leg


@contextmanager
def talking(service: Service | None, offered: Sequence[Tool] = (), **line: Any) -> Iterator[Talk]:  # noqa: ANN401 - as above
    """Return a conversation with a service, outside of any leg."""
    who = agent(service, **line)
    at = openai_service.of(who)
    kind = openai_chat.Chat if who.api == "chat" else openai_responses.Responses
    with openai_service.wire(at) as wire:
        yield kind(wire, at, who, "Be brief.", offered, "cache")

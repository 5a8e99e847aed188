"""A leg of an agent over an API, taken against the service of the tests, and what was heard of it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relay.backends import anthropic
from relay.host.jail.cell import Cell
from relay.record import reply
from relay.terms import Agent, Ask, Kind, Limits, Taken, Told
from tests.backends.lanes import lane
from tests.service import Json, Script, Service

NONCE = "0123456789abcdef0123456789abcdef"
DONE: Json = {"status": "done", "summary": "wrote it"}
APPROVE: Json = {"verdict": "approve", "nonce": NONCE, "summary": "looked at it"}


def agent(url: str | None = None, **line: Any) -> Agent:  # noqa: ANN401 - whatever a line of relay.toml may say
    """Return an agent whose service is the one of the tests."""
    known = {"name": "claude", "backend": "anthropic", "vendor": "anthropic", "model": "claude-opus-5-5"}
    return Agent(**{**known, "base_url": url, **line})


def ask(root: Path, who: Agent, kind: Kind = "work", *, context: float = 0.6, **limits: Any) -> Ask:  # noqa: ANN401
    """Return what a leg is asked that works in `root/leg`, or judges what stands there."""
    (root / "leg").mkdir(exist_ok=True)
    (root / "leg.io").mkdir(exist_ok=True)
    return Ask(
        run="261129-0230-fix-login",
        leg="01-implement",
        phase="implement" if kind == "work" else "review",
        kind=kind,
        boundary="implement" if kind == "work" else "verify-only",
        round=1,
        turn=1,
        nonce=NONCE,
        prompt="make it so",
        folder=str(root / "leg"),
        reply_path=str(root / "leg.io/reply.json"),
        limits=Limits(**{"seconds": 300.0, **limits}),
        agent=who,
        schema=reply.schema(kind),
        context=context,
    )


@dataclass
class Leg:
    """A leg in a folder of the test: `with Service(...)` is made for each script that is played."""

    root: Path
    told: list[Told] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    service: Service = field(init=False)
    cell: Cell | None = None
    on_told: Callable[[Told], object] = lambda _: None

    def play(
        self,
        script: Script,
        kind: Kind = "work",
        *,
        problems: int = 0,
        context: float = 0.6,
        **more: Any,  # noqa: ANN401
    ) -> Taken:
        """Take a leg while the service plays a script; `more` are limits, or of the agent's line."""
        limits = {name: more.pop(name) for name in ("seconds", "idle", "turns", "tokens", "microusd") if name in more}
        with Service(script) as self.service:
            asked = ask(self.root, agent(self.service.url, **more), kind, context=context, **limits)
            taken = anthropic.take(asked, lane(asked, told=self._hear, cell=self.cell), pause=self.waits.append)
        assert len(self.service.problems) == problems, self.service.problems
        return taken

    def _hear(self, told: Told) -> None:
        self.told.append(told)
        self.on_told(told)

    def texts(self, kind: str) -> list[str]:
        """Return the texts of all that was told of one type."""
        return [told.text for told in self.told if told.type == kind]

    @property
    def bodies(self) -> list[Json]:
        """Return what was asked of the service, request by request."""
        return [request.body for request in self.service.requests]

    def said(self) -> str:
        """Return all that the model was told, in the last request."""
        return json.dumps(self.bodies[-1]["messages"])

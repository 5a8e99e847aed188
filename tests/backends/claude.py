"""A leg for the real Claude Code, against the service of this machine: what is asked, and what came of it."""

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relay.backends import claude_code
from relay.host import jail, repository, worktree
from relay.host.jail.cell import Cell
from relay.record import reply
from relay.terms import Agent, Ask, Kind, Limits, Taken, Told
from tests.backends import programs
from tests.backends.lanes import lane
from tests.host.jail.cell import rung_of
from tests.service import Script, Service, do
from tests.world import World

KEY = "sk-ant-test-of-relay"
BEGINS = 15.0
"""Seconds in which Claude Code has begun to work, on a busy machine as well."""
MODEL = "claude-sonnet-4-5"
PROMPT = "Please make it so, naïvely."
DONE: dict[str, Any] = {"status": "done", "summary": "add adds"}
BROKEN = "def add(a, b):\n    return a - b\n"
EDIT = do.edit("calc.py", "    return a - b\n", "    return a + b\n")
FIXED = "def add(a, b):\n    return a + b\n"


@contextmanager
def opened(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], "Leg"]]:
    """Yield what opens a leg on a script, with the real program on PATH and a service of its own."""
    path(patch)
    patch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with ExitStack() as stack:

        def open_(script: Script) -> Leg:
            leg = Leg(folder.resolve(), stack.enter_context(Service(script)))
            leg.make()
            return leg

        yield open_


def path(patch: pytest.MonkeyPatch) -> None:
    """Put the real program first on PATH; the test is skipped aloud where it cannot be had."""
    patch.setenv("PATH", f"{programs.folder('claude')}:/usr/local/bin:/usr/bin:/bin")


@dataclass
class Leg:
    """What a leg is made of; `told` is what it told."""

    root: Path
    service: Service
    told: list[Told] = field(default_factory=list)
    asked: Ask | None = None

    @property
    def tree(self) -> Path:
        return self.root / "trees" / "01-leg"

    @property
    def io(self) -> Path:
        return self.root / "trees" / "01-leg.io"

    def make(self) -> None:
        """Make a project with a worktree for the leg, as Relay does."""
        world = World(self.root, {"calc.py": BROKEN})
        self.repo = repository.discover(world.root)
        self.lease = worktree.lease(self.repo, self.tree, world.git("rev-parse", "HEAD"), "run=x")
        self.io.mkdir()

    def cell(self, asked: Ask) -> Cell:
        """Return a jail for the leg, as a run has one; the test is skipped aloud where none holds."""
        needs = claude_code.needs(asked)
        access = jail.Access.WRITE if asked.boundary == "implement" else jail.Access.SCRATCH
        home = Path.home().resolve()
        readable = (*jail.readable(os.environ["PATH"], home), *map(Path, map(os.path.realpath, needs.readable)))
        mounts = jail.around(self.repo, self.lease, access, home=home, readable=readable, writable=needs.writable)
        return Cell(rung=rung_of(os.geteuid()), mounts=mounts, loopback=needs.hosts)

    def ask(
        self,
        kind: Kind = "work",
        *,
        limits: Limits | None = None,
        env: Mapping[str, str] = {},
        **more: Any,  # noqa: ANN401 - fields of an agent
    ) -> Ask:
        """Return what the leg is asked; `more` are fields of its agent, or `context` and `prompt` of the ask."""
        nonce = secrets.token_hex(16)
        context = more.pop("context", 0.6)
        prompt = more.pop("prompt", PROMPT)
        who = Agent(
            name="claude",
            backend="claude-code",
            vendor="anthropic",
            **{"model": MODEL, "base_url": self.service.url, **more},
        )
        return Ask(
            run="261129-0230-fix-login",
            leg="01-leg",
            phase="implement" if kind == "work" else "review",
            kind=kind,
            boundary="implement" if kind == "work" else "verify-only",
            round=1,
            turn=1,
            nonce=nonce,
            prompt=prompt,
            folder=str(self.tree),
            reply_path=str(self.io / "reply.json"),
            limits=limits or Limits(seconds=100),
            agent=who,
            schema=reply.schema(kind),
            context=context,
            env={"RELAY_NONCE": nonce, "RELAY_KIND": kind, "CLAUDE_CODE_MAX_RETRIES": "1", **env},
        )

    def take(self, asked: Ask, *, cell: Cell | None = None, told: Callable[[Told], None] = lambda _: None) -> Taken:
        """Take the leg; nothing unforeseen may have been asked of the service."""

        def heard(one: Told) -> None:
            self.told.append(one)
            told(one)

        claude_code.needs(asked)
        self.asked = asked
        taken = claude_code.take(asked, lane(asked, told=heard, cell=cell))
        assert self.service.problems == []
        return taken

    def of(self, type_: str) -> list[Told]:
        """Return what was told of one type."""
        return [one for one in self.told if one.type == type_]

    def result(self) -> dict[str, Any]:
        """Return the newest result as the program gave it."""
        lines = [json.loads(one.text) for one in self.of("line") if one.text.startswith("{")]
        return [line for line in lines if line.get("type") == "result"][-1]  # type: ignore[no-any-return]


def replied(taken: Taken) -> dict[str, Any]:
    """Return the reply of a leg that ended with one."""
    assert taken.ended_by in {"reply", "handover"}, taken
    assert taken.reply is not None
    return msgspec.json.decode(taken.reply)  # type: ignore[no-any-return]

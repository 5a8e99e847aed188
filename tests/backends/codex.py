"""A leg for the real Codex, against the service of this machine: what is asked, and what came of it."""

import hashlib
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relay.backends import codex
from relay.host import jail, pids, repository
from relay.host.jail import rungs
from relay.host.jail.cell import Cell
from relay.host.lease import Lease
from relay.record import reply
from relay.terms import Agent, Ask, Kind, Limits, Taken, Told
from tests.backends import programs
from tests.backends.lanes import lane
from tests.service import Script, Service
from tests.world import CHECKOUT

KEY = "sk-test-of-relay-0123456789"
MODEL = "gpt-5.5"
PROMPT = "Please make it so, naïvely."
DONE: dict[str, Any] = {"status": "done", "summary": "add adds"}
BROKEN = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"


@contextmanager
def opened(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], "Leg"]]:
    """Yield what opens a leg on a script, with the real program on PATH, a key, and a service of its own."""
    path(patch)
    patch.setenv("OPENAI_API_KEY", KEY)
    patch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with ExitStack() as stack:

        def open_(script: Script) -> Leg:
            leg = Leg(folder.resolve(), stack.enter_context(Service(script)))
            leg.make()
            return leg

        yield open_


def path(patch: pytest.MonkeyPatch) -> None:
    """Put the real program first on PATH; the test is skipped aloud where it cannot be had."""
    patch.setenv("PATH", f"{programs.folder('codex')}:/usr/local/bin:/usr/bin:/bin")


def walled(code: str) -> str:
    """Return what some Python prints where nobody may make a namespace, so that no sandbox starts."""
    shut = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"'
    words = [
        "unshare",
        "-Ur",
        "sh",
        "-c",
        shut,
        sys.executable,
        "-c",
        f"import sys\nsys.path[:] = {sys.path!r}\n{code}",
    ]
    ended = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if ended.returncode and "unshare" in ended.stderr:
        pytest.skip(f"no user namespace can be had here: {ended.stderr}")
    return ended.stdout or ended.stderr


@dataclass
class Leg:
    """What a leg is made of; `told` is what it told."""

    root: Path
    service: Service
    told: list[Told] = field(default_factory=list)
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def tree(self) -> Path:
        return self.root / "trees" / "01-leg"

    @property
    def io(self) -> Path:
        return self.root / "trees" / "01-leg.io"

    def make(self) -> None:
        """Make a repository with a worktree."""
        main = self.root / "main"
        main.mkdir()
        self.io.mkdir(parents=True)
        (main / "calc.py").write_text(BROKEN)
        name = ("-c", "user.name=Relay", "-c", "user.email=relay@example.org")
        tree = ("worktree", "add", "-q", "--detach", str(self.tree))
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "begin"), tree):
            subprocess.run(["git", *name, *words], cwd=main, check=True)

    def agent(self, **more: Any) -> Agent:  # noqa: ANN401 - fields of an agent
        """Return the agent, whose service is this one's."""
        known = {"model": MODEL, "base_url": f"{self.service.url}/v1"}
        return Agent(name="codex", backend="codex", vendor="openai", **{**known, **more})

    def ask(
        self,
        kind: Kind = "work",
        *,
        limits: Limits | None = None,
        env: Mapping[str, str] = {},
        **more: Any,  # noqa: ANN401
    ) -> Ask:
        """Return what the leg is asked; `more` are fields of its agent, or `context` and `prompt` of the ask."""
        context, prompt = more.pop("context", 0.6), more.pop("prompt", PROMPT)
        return Ask(
            run="261129-0230-fix-login",
            leg="01-leg",
            phase="implement" if kind == "work" else "review",
            kind=kind,
            boundary="implement" if kind == "work" else "verify-only",
            round=1,
            turn=1,
            nonce=self.nonce,
            prompt=prompt,
            folder=str(self.tree),
            reply_path=str(self.io / "reply.json"),
            limits=limits or Limits(seconds=100),
            agent=self.agent(**more),
            schema=reply.schema(kind),
            context=context,
            env={"RELAY_NONCE": self.nonce, "RELAY_KIND": kind, **env},
        )

    def cell(self, asked: Ask, access: jail.Access = jail.Access.WRITE) -> Cell:
        """Return a cell for the leg, with what the backend needs; the test is skipped aloud where no jail holds."""
        found, needs = rungs.probe(), codex.needs(asked)
        if isinstance(found, rungs.Cause):
            pytest.skip(f"no jail holds here: {found.cause}")
        pointer = hashlib.sha256((self.tree / ".git").read_bytes()).hexdigest()
        lease = Lease(path=self.tree, git_dir=self.root / "main/.git/worktrees/01-leg", pointer_sha256=pointer)
        mounts = jail.around(
            repository.discover(self.root / "main"),
            lease,
            access,
            home=Path.home(),
            readable=needs.readable,
            writable=needs.writable,
        )
        own = tuple(host for host in needs.hosts if host.startswith("127."))
        return Cell(rung=found, mounts=mounts, nests=needs.nests, loopback=own)

    def take(
        self, asked: Ask, *, cell: Cell | None = None, told: Callable[[Told], None] = lambda _: None, problems: int = 0
    ) -> Taken:
        """Take the leg; nothing unforeseen was asked of the service, and nothing is left of it afterwards."""

        def heard(one: Told) -> None:
            self.told.append(one)
            told(one)

        taken = codex.take(asked, lane(asked, told=heard, cell=cell))
        assert len(self.service.problems) == problems, self.service.problems
        assert pids.survivors(self.nonce) == []
        assert not (self.io / "codex").exists()
        return taken

    def of(self, type_: str) -> list[Told]:
        """Return what was told of one type."""
        return [one for one in self.told if one.type == type_]

    def results(self) -> list[str]:
        """Return what came of each call, without what Codex says about it."""
        return [one.text.rpartition("Output:\n")[2] for one in self.of("result")]

    def bodies(self) -> list[dict[str, Any]]:
        """Return the requests."""
        return [request.body for request in self.service.requests]


def replied(taken: Taken) -> dict[str, Any]:
    """Return the reply of a leg that ended with one."""
    assert taken.ended_by in {"reply", "handover"}, taken
    assert taken.reply is not None
    return msgspec.json.decode(taken.reply)  # type: ignore[no-any-return]

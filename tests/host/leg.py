"""A worktree in the hands of an agent: what the tests of snapshots share."""

from dataclasses import dataclass
from pathlib import Path

from relay.host import git, repository, snapshot, worktree
from relay.host.jail import Rung
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.host.snapshot import Snapshot
from tests.world import World

FILES = {"a.py": "a = 1\n", "sub/b.py": "b = 1\n", "docs/c.md": "c\n", ".gitignore": "*.log\n__pycache__/\n"}


@dataclass
class Leg:
    """A worktree in the hands of an agent."""

    project: World
    repo: Repository
    lease: Lease
    start: str
    before: dict[str, str]
    rung: Rung

    @property
    def top(self) -> Path:
        return self.lease.path

    def write(self, name: str, text: str | bytes = "new = 1\n") -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def git(self, *args: str) -> str:
        return self.project.git("-C", str(self.top), *args)

    def take(self) -> Snapshot:
        return snapshot.take(self.repo, self.lease, self.start, "the work", self.before, git.NOBODY, self.rung)

    def changed(self, made: Snapshot) -> set[str]:
        return {change.path for change in git.numstat(self.repo, self.start, made.commit)}


def begin(project: World, rung: Rung) -> Leg:
    repo = repository.discover(project.root)
    start = project.git("rev-parse", "HEAD")
    lease = worktree.lease(repo, project.folder / "trees/01", start, "run=x")
    return Leg(project, repo, lease, start, snapshot.baseline(repo, lease, rung), rung)


def why(made: Snapshot) -> dict[str, str]:
    return {refused.path: refused.why for refused in made.refused}


def program(path: Path, marker: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n", encoding="utf-8")
    path.chmod(0o755)

"""A repository with hooks of a person's, a leg's worktree, and the folder of the leg's record: what `guarded` needs."""

from dataclasses import dataclass
from pathlib import Path

from relay.host import repository, worktree
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.host.tripwire import fingerprint, guarded
from tests.world import World


@dataclass
class Desk:
    """A repository, a leg's worktree and its folder in the record."""

    project: World
    repo: Repository
    lease: Lease
    record: Path
    before: dict[str, str]

    @property
    def common(self) -> Path:
        return self.project.root / ".git"

    @property
    def evidence(self) -> Path:
        return self.record / guarded.EVIDENCE

    def keep(self) -> None:
        guarded.keep(self.repo, self.record)
        self.before = fingerprint.take(self.repo, self.lease, tree=False)

    def put_back(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return guarded.put_back(self.repo, self.record, self.before)

    def config(self, *args: str) -> str:
        return self.project.git("config", *args)


def hook(path: Path, text: str = "mine\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def make(folder: Path) -> Desk:
    """Make the repository, with a hook and a folder of hooks."""
    project = World(folder, {"a.py": "a = 1\n", ".gitignore": ".husky/_/\n"})
    repo = repository.discover(project.root)
    lease = worktree.lease(repo, folder / "trees/01", project.git("rev-parse", "HEAD"), "run=x")
    record = project.root / ".git/relay/runs/x/legs/01"
    record.mkdir(parents=True)
    hook(project.root / ".git/hooks/pre-push")
    hook(project.root / ".git/hooks/pre-commit.d/one")
    return Desk(project, repo, lease, record, {})

"""Other repositories on the disk of this machine, and what somebody else does there."""

from collections.abc import Mapping
from pathlib import Path

from tests.world import BROKEN, FIXED, World

__all__ = ["FIXED", "Away", "accepted"]


class Away:
    """A bare repository that a world pushes to as `origin`, and a clone of somebody else's."""

    def __init__(self, world: World, name: str = "origin") -> None:
        self._world = world
        self.folder = world.folder / f"{name}.git"
        self._mate = world.folder / f"{name}-mate"
        world.git("clone", "-q", "--bare", str(world.root), str(self.folder), folder=world.folder)
        self.git("config", "user.name", "Hub")
        self.git("config", "user.email", "hub@example.org")
        world.git("remote", "add", name, str(self.folder))

    def on_a_forge(self, address: str = "https://hub.example.org/acme/shop.git", name: str = "origin") -> None:
        """Give the remote the address that it would have on a forge; git is led to the disk all the same."""
        self._world.git("config", f"url.{self.folder}.insteadOf", address)
        self._world.git("remote", "set-url", name, address)

    def git(self, *args: str) -> str:
        """Run git there."""
        return self._world.git(*args, folder=self.folder)

    def tip(self, branch: str = "main") -> str:
        """Return where a branch stands there."""
        return self.git("rev-parse", f"refs/heads/{branch}")

    def branches(self) -> dict[str, str]:
        """Return every branch there."""
        lines = self.git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/").splitlines()
        return dict(line.split(" ") for line in lines)

    def mate(self, files: Mapping[str, str], branch: str = "main", *, force: bool = False) -> str:
        """Let somebody else push a commit onto a branch; with `force`, in the place of its newest one."""
        git = self._world.git
        if not self._mate.exists():
            git("clone", "-q", str(self.folder), str(self._mate), folder=self._world.folder)
            git("config", "user.name", "Grace", folder=self._mate)
            git("config", "user.email", "grace@example.org", folder=self._mate)
        git("fetch", "-q", "origin", folder=self._mate)
        git("checkout", "-q", "-B", branch, f"origin/{branch}", folder=self._mate)
        if force:
            git("reset", "-q", "--hard", "HEAD~1", folder=self._mate)
        for name, text in files.items():
            (self._mate / name).write_text(text, encoding="utf-8")
        git("add", ".", folder=self._mate)
        git("commit", "-q", "--allow-empty", "-m", "a mate's", folder=self._mate)
        git("push", "-q", *["--force"] * force, "origin", branch, folder=self._mate)
        return git("rev-parse", "HEAD", folder=self._mate)

    def hook(self, name: str, text: str) -> None:
        """Let a hook of the server decide."""
        path = self.folder / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)


def accepted(folder: Path, files: Mapping[str, str] | None = None, **ship: object) -> tuple[World, Away]:
    """Make a world with a remote, and a run of one phase that is through."""
    world, away = lined_up(folder, files, **ship)
    ran = world.inside("run", world.spec())
    assert ran.code == 0, ran
    return world, away


def lined_up(folder: Path, files: Mapping[str, str] | None = None, **ship: object) -> tuple[World, Away]:
    """Make a world with a remote, and an agent that takes the one phase."""
    world = World(folder, {"README.md": "A calculator\n", "calc.py": BROKEN, ".gitignore": "*.log\n"})
    world.implementer({"calc.py": FIXED, **(files or {})})
    world.save(phases=["implement"], **({"ship": ship} if ship else {}))
    away = Away(world)
    if ship.get("method") == "pr":
        away.on_a_forge()
    return world, away

"""What holds in every fault: one clear message, no traceback, nothing of the person's changed, nothing lost."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.world import Ran, World


def refused(ran: Ran, code: int, *words: str) -> str:
    """Require one error in house style, with a hint, that says all of `words`; return its message."""
    sober(ran)
    assert ran.code == code, ran
    [message] = [line.removeprefix("error: ") for line in ran.err.splitlines() if line.startswith("error: ")]
    [hint] = [line.removeprefix("hint: ") for line in ran.err.splitlines() if line.startswith("hint: ")]
    assert hint.strip(), ran
    assert not message.endswith("."), ran
    assert message[0] == message[0].lower(), ran
    for word in words:
        assert word in ran.err, (word, ran)
    return message


def stopped(ran: Ran, code: int, *words: str) -> None:
    """Require a run that stands somewhere, says why, and says what to type next."""
    sober(ran)
    assert ran.code == code, ran
    assert "hint: " in ran.err, ran
    for word in words:
        assert word in ran.err, (word, ran)


def through(ran: Ran) -> None:
    """Require a run that was accepted, or a command that did what was asked."""
    sober(ran)
    assert ran.code == 0, ran


def sober(ran: Ran) -> None:
    """Require that no bug was reported and no traceback shown."""
    said = ran.out + ran.err
    assert "Traceback" not in said, ran
    assert "this is a bug" not in said, ran
    assert ran.code != 3, ran


@contextmanager
def untouched(world: World) -> Iterator[None]:
    """Require that the checkout, its index, branches, stash, settings and hooks are afterwards what they were."""
    before = _state(world)
    yield
    after = _state(world)
    assert after == before, sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _state(world: World) -> dict[str, object]:
    state: dict[str, object] = {name: stands(path) for name, path in _entries(world.root)}
    state["status"] = status(world)
    state["HEAD"] = (world.root / ".git" / "HEAD").read_bytes()
    state["config"] = (world.root / ".git" / "config").read_bytes()
    state["hooks"] = [stands(path) for _, path in _entries(world.root / ".git" / "hooks")]
    refs = world.refs()
    state["refs"] = {name: oid for name, oid in refs.items() if "/relay/" not in name}
    return state


def status(world: World) -> str:
    """Return the state of the checkout, without running any hook, filter or monitor: the world may be full of them."""
    off = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "filter.own.clean=", "filter.own.process=")
    flags = [word for setting in off for word in ("-c", setting)]
    return world.git("--no-optional-locks", *flags, "status", "--porcelain", "--untracked-files=all", "--ignored")


def stands(path: Path) -> object:
    """Return what stands at a path: bytes, the target of a link, or a mode."""
    if path.is_symlink():
        return path.readlink()
    return path.read_bytes() if path.is_file() else path.lstat().st_mode


def _entries(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(root):
        if ".git" in folders and Path(folder) == root:
            folders.remove(".git")
        for name in [*names, *folders]:
            path = Path(folder, name)
            yield str(path.relative_to(root)), path


def nothing_started(world: World) -> None:
    """Require that there is no run, no ref of one and no worktree of one."""
    assert not world.runs.exists() or not [path for path in world.runs.iterdir() if not path.name.startswith(".")]
    assert world.refs("refs/relay/") == {}
    assert worktrees() == []


def worktrees() -> list[Path]:
    """Return the legs' worktrees that are on disk."""
    return sorted(Path(os.environ["XDG_STATE_HOME"], "relay", "worktrees").glob("*/*/*"))


def kept(world: World, path: str) -> list[str]:
    """Return everything that a file was anywhere below refs/relay/, so that what an agent wrote can be found again."""

    def has(ref: str) -> bool:
        return path in world.git("ls-tree", "-r", "--name-only", "-z", ref).split("\0")

    return [world.show(ref, path) for ref in world.refs("refs/relay/") if has(ref)]

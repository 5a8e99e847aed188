"""What the reaper finds, made by the real program: legs cut by kill -9, worktrees that were kept, loops at work."""

import json
import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.loop import doomed
from tests.loop.faults import sober
from tests.world import FIXED, SAFETY, Ran, World

NOTHING = "nothing to reap"
SILENT = """
if os.environ["RELAY_LEG"] == "01-implement":
    write({files})
else:
    write({{"calc.py": {fixed!r}}})
    reply(status="done", summary="it adds")
"""
"""An implementer that first works and says nothing: its worktree is kept for a person to look at."""


def reap(world: World, *options: str) -> list[dict[str, Any]]:
    """Run the verb and return what it did and raised."""
    ran = world.relay("reap", "--json", *options)
    sober(ran)
    assert ran.code == 0, ran
    return ran.events


def again(world: World) -> None:
    """Require that a further pass says nothing new."""
    ran: Ran = world.relay("reap")
    assert (ran.code, ran.out) == (0, ""), ran
    assert NOTHING in ran.err, ran


def repaired(events: list[dict[str, Any]]) -> list[str]:
    return sorted(event["about"] for event in events if event["type"] == "repaired")


def alerts(events: list[dict[str, Any]]) -> list[str]:
    return sorted(event["about"] for event in events if event["type"] == "alert")


def command(events: list[dict[str, Any]], kind: str) -> str:
    """Return the command that settles the one alert of a kind."""
    [found] = [str(event["command"]) for event in events if event["type"] == "alert" and event["about"] == kind]
    return found


def standing(world: World) -> list[str]:
    """Return the kinds of the alerts that stand."""
    paths = (world.root / ".git" / "relay" / "alerts").glob("*.json")
    return sorted(json.loads(path.read_bytes())["kind"] for path in paths)


def killed(world: World, leg: str = "01-implement") -> set[int]:
    """Kill a run in the middle of a leg; return the numbers of the agent's processes, which live on."""
    doomed.doom(world, leg)
    running = world.start("run", world.spec())
    pids = doomed.await_doom(world, leg, running)
    running.kill()
    running.communicate()
    return pids


def with_a_worktree_kept(folder: Path, *, beside: str = "") -> tuple[World, Path]:
    """Make an accepted run whose first leg gave no reply, so that its worktree is still there."""
    world = World.simple(folder)
    world.commit({".gitignore": "*.log\n*.local\n"})
    files = {"calc.py": "half\n"} | ({beside: "mine\n"} if beside else {})
    world.python("implementer", SILENT.format(files=files, fixed=FIXED), phase="implement", vendor="north")
    assert world.relay("run", world.spec()).code == 0
    [place] = worktrees()
    return world, place


def own_temp(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the programs a folder for what is temporary that no other test's reaper looks at."""
    top = world.folder / "temp"
    top.mkdir()
    monkeypatch.setenv("TMPDIR", str(top))
    return top


def worktrees() -> list[Path]:
    """Return the worktrees of legs that are on disk."""
    found = Path(os.environ["XDG_STATE_HOME"], "relay", "worktrees").glob("*/*/*")
    return sorted(path for path in found if path.suffix != ".io")


def state(world: World) -> dict[str, object]:
    """Return everything that a dry run must leave as it is: the ledger, refs, git's entries and the worktrees."""
    found: dict[str, object] = {"refs": world.refs()}
    for top in (world.root / ".git", Path(os.environ["XDG_STATE_HOME"])):
        for path in sorted(top.rglob("*")):
            seen = path.lstat()
            found[str(path)] = (seen.st_mode, seen.st_ino, path.read_bytes() if path.is_file() else b"")
    return found


@contextmanager
def at_work(world: World, spec: Path) -> Iterator[Callable[[], None]]:
    """Keep a run in the middle of its first leg inside a `with` block; what it yields lets it go on to its end."""
    working, go = world.folder / "working", world.folder / "go"
    for path in (working, go):
        os.mkfifo(path)
    pipes = [os.open(path, os.O_RDWR) for path in (working, go)]  # so that nobody waits to open
    mend = FIXED.replace("\n", "\\n")
    text = f"echo > {working}\nread _ < {go}\nprintf '{mend}' > calc.py"
    world.shell("implementer", text, phase="implement", reply="exit")
    world.save()
    running = world.start("run", spec)

    def go_on() -> None:
        os.write(pipes[1], b"\n")
        out, err = running.communicate(timeout=SAFETY)
        assert running.returncode == 0, (out, err)

    try:
        assert select.select([pipes[0]], [], [], SAFETY)[0], "no agent began"
        yield go_on
    finally:
        for pipe in pipes:
            os.close(pipe)
        if running.returncode is None:
            running.terminate()
            running.communicate()

"""Agents that stop in the middle of a chosen leg, ignore every polite request to end, and note when they lived."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.world import BROKEN, FIXED, SAFETY, World

LEGS = ["01-implement", "02-review", "03-implement", "04-review", "05-acceptance"]
"""The legs of a run that nobody disturbs."""
REPLIES = [
    ("implement", None),
    ("review", "revise"),
    ("implement", None),
    ("review", "approve"),
    ("acceptance", "approve"),
]
"""The phases and verdicts of the legs that ended by a reply, in such a run."""
HALF = "def add(a, b):\n    return"

_DOOM = """\
import os, pathlib, signal, sys, time

_beside = pathlib.Path({beside!r})

def _log(event):
    with open(_beside / "lives", "a") as file:
        file.write(f"{{time.monotonic_ns()}} {{os.getpid()}} {{os.environ['RELAY_LEG']}} {{event}}\\n")

_log("began")
if os.environ["RELAY_LEG"] in (_beside / "doomed").read_text().split():
    if {stubborn!r}:
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
    pathlib.Path("calc.py").write_text({half!r})
    entry = pathlib.Path(pathlib.Path(".git").read_text().removeprefix("gitdir: ").strip())
    while (entry / "relay-beat").stat().st_mtime_ns <= pathlib.Path("calc.py").stat().st_ctime_ns:
        time.sleep(0.02)
    if os.fork() == 0:  # a grandchild of Relay that left its session
        os.setsid()
        _log("left the session")
    elif os.fork() == 0:  # and one that only ignores what it is asked
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        _log("will not hear")
    while True:
        _log("lives")
        time.sleep(0.02)
"""
_LINE = "# --- what it does otherwise\n"


BEAT = 'touch {0}; until test "$(git rev-parse --git-dir)/relay-beat" -nt {0}; do sleep 0.02; done'
"""What a shell runs to wait until Relay gave a further sign of life in its worktree; {0} is a file outside of it."""


class Life(NamedTuple):
    """One line that an agent wrote: when, who, in which leg, and what."""

    at: int
    pid: int
    leg: str
    event: str


def build(folder: Path) -> World:
    """Build the run whose implementer is wrong the first time; no leg is doomed yet."""
    world = World(folder, {"README.md": "A calculator\n", "calc.py": BROKEN})
    world.implementer({"calc.py": BROKEN.replace("a - b", "b - a")}, {"calc.py": FIXED})
    world.reviser("review", path="calc.py", quote="return b - a")
    world.approver("acceptance")
    world.save()
    return world


def doom(world: World, *legs: str, stubborn: bool = True) -> None:
    """Let the agents of these legs stop in the middle; called again it chooses other legs."""
    (world.folder / "doomed").write_text(" ".join(legs))
    text = _DOOM.format(beside=str(world.folder), half=HALF, stubborn=stubborn)
    for path in (world.folder / "agents").glob("*.py"):
        path.write_text(text + _LINE + path.read_text().rpartition(_LINE)[2])


def lives(world: World) -> list[Life]:
    """Return what the agents wrote down, in the order of time."""
    try:
        lines = (world.folder / "lives").read_text().splitlines()
    except FileNotFoundError:
        return []
    found = (line.split(" ", 3) for line in lines)
    return sorted(Life(int(at), int(pid), leg, event) for at, pid, leg, event in found)


def await_that(true: Callable[[], object], what: str) -> None:
    """Wait until something holds, and fail after the safety bound."""
    over = time.monotonic() + SAFETY
    while not true():
        assert time.monotonic() < over, what
        time.sleep(0.01)


def await_doom(world: World, leg: str, running: "subprocess.Popen[bytes]") -> set[int]:
    """Wait until the agent of a leg and both of its children live; return the numbers of the three."""

    def all_there() -> bool:
        assert running.poll() is None, running.communicate()
        return len({life.pid for life in lives(world) if life.leg == leg and life.event == "lives"}) == 3

    await_that(all_there, f"the agent of {leg} never came so far")
    return {life.pid for life in lives(world) if life.leg == leg}


def alive(pid: int) -> bool:
    """Tell whether a process exists and is not only waiting to be reaped."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    return False


def end(pids: set[int]) -> None:
    """End what a failed test would leave behind."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def replies(world: World) -> list[tuple[str, str | None]]:
    """Return the legs that ended by a reply."""
    return [(leg["phase"], leg["verdict"]) for leg in world.receipts() if leg["ended_by"] == "reply"]


def worktrees(world: World) -> list[str]:
    """Return what is registered or left on the disk as a worktree."""
    entries = [path.name for path in (world.root / ".git").glob("worktrees/*")]
    state = Path(os.environ["XDG_STATE_HOME"])
    return entries + [str(path) for path in (state / "relay" / "worktrees").glob("*/*/*")]


def carriers(*marks: str) -> list[int]:
    """Return the processes whose environment has one of these lines."""
    wanted = {mark.encode() for mark in marks}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted.intersection((folder / "environ").read_bytes().split(b"\0")):
                found.append(int(folder.name))
    return found

"""What stands ready at dusk: specs in the queue, the person's wish for notices, and what the night wrote down."""

import json
import os
import time
from pathlib import Path
from typing import Any

import tomli_w

from tests.loop.faults import through
from tests.world import SPEC, Ran, World

ONCE = "if test -e {seen}; then {then}; else echo $$ > {seen}.new; mv {seen}.new {seen}; sleep 300; fi"
"""What an agent does that is long the first time, and says when it works."""
MENDED = "sed -i 's/a - b/a + b/' calc.py"


def task(title: str, front: str = "") -> str:
    """Make a spec with that title; `front` is its front matter."""
    return (f"+++\n{front}\n+++\n" if front else "") + SPEC.replace("Make add add", title)


def short(world: World, agent: str = MENDED) -> World:
    """Line up one phase alone, a shell, so that a run takes little time; return the world."""
    world.agents, world.phases = {}, {}
    world.shell("worker", agent, phase="implement", reply="exit")
    world.save(phases=["implement"])
    return world


def slow(world: World, then: str = MENDED) -> Path:
    """Line up a worker that waits the first time; return the file that says so."""
    seen = world.folder / "seen"
    short(world, ONCE.format(seen=seen, then=then))
    return seen


def queued(world: World, *titles: str) -> None:
    """Queue a spec for each title, in this order."""
    for title in titles:
        name = title.lower().replace(" ", "-")
        through(world.inside("queue", "add", world.spec(task(title), f"{name}.md")))


def records(world: World) -> list[dict[str, Any]]:
    """Return the records of all nights, oldest first."""
    paths = (world.root / ".git" / "relay" / "nights").glob("[0-9]*.json")
    return sorted((json.loads(path.read_bytes()) for path in paths), key=lambda night: (night["started"], night["id"]))


def newest(world: World) -> dict[str, Any]:
    """Return the record of the newest night."""
    return records(world)[-1]


def items(world: World) -> list[tuple[str, str, str]]:
    """Return what the newest night did, with which spec, and how that stands."""
    return [(item["did"], Path(item["spec"]).stem, item["outcome"]) for item in newest(world)["items"]]


def runs(world: World) -> list[str]:
    """Return the names of the specs that have a run, one for each run."""
    return sorted(path.name.split("-", 2)[2] for path in world.runs.glob("[0-9]*")) if world.runs.exists() else []


def went(ran: Ran) -> Ran:
    """Require a night that ran, whatever its runs came to."""
    through(ran)
    return ran


class Bell:
    """The person's own config.toml, and the notices that rang."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "bell.txt"
        path = Path(os.environ["XDG_CONFIG_HOME"]) / "relay" / "config.toml"
        path.parent.mkdir(parents=True)
        command = f'{{ echo "== $RELAY_EVENT"; cat; }} >> {self._log}'
        path.write_text(tomli_w.dumps({"notify": {"command": command}}), encoding="utf-8")

    @property
    def text(self) -> str:
        """Everything that was said."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    @property
    def events(self) -> list[str]:
        """The events, in their order."""
        return [line[3:] for line in self.text.splitlines() if line.startswith("== ")]


def clocked(seconds: float) -> str:
    """Return the time so many seconds from now as `date` would, in seconds since 1970."""
    return str(int(time.time() + seconds))

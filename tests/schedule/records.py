"""What the ledger of a small repository says about its nights."""

import json
import os
from pathlib import Path
from typing import Any

from relay.schedule.job import Job
from tests.world import World


def nights(world: World) -> list[dict[str, Any]]:
    """Return the records of nights, oldest first."""
    folder = world.root / ".git" / "relay" / "nights"
    return [json.loads(path.read_bytes()) for path in sorted(folder.glob("[0-9]*.json"))]


def schedule(world: World) -> dict[str, Any]:
    """Return what the ledger remembers of an installed schedule."""
    found: dict[str, Any] = json.loads((world.root / ".git" / "relay" / "schedule.json").read_bytes())
    return found


def job(folder: Path, *command: str, **more: Any) -> Job:  # noqa: ANN401 - fields of a job
    """Make a job of a command; its files lie in `folder`."""
    fields: dict[str, Any] = {
        "name": "relay-nightly-project-1a2b3c4d",
        "key": "1a2b3c4d",
        "project": "project",
        "folder": str(folder),
        "bare": False,
        "command": command,
        "env": {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"},
        "env_file": str(folder / "env"),
        "log": str(folder / "log" / "night.log"),
        "at": "17 4 * * *",
        "zone": None,
        "missed": "once",
        "hours": 12.0,
    }
    return Job(**fields | more)

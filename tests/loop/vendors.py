"""Relays of the vendors' own programs, against the service of the tests: who takes which leg, and what happens."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.backends import programs
from tests.service import Hits, Script, Service, do, nonce
from tests.world import World

WRONG: Final = "def add(a, b):\n    return a * b\n"
PROBE: Final = "python3 -B -c 'import calc; assert calc.add(2, 3) == 5'"
FINDING: Final = {
    "severity": "major",
    "title": "it multiplies",
    "path": "calc.py",
    "line": 2,
    "quote": "return a * b",
    "why": "2 and 3 are 5",
    "repro": {"files": {}, "command": PROBE, "expect_exit": 1, "expect_output": "AssertionError"},
}
KEYS: Final = {name: f"sk-test-{secrets.token_hex(16)}" for name in ("KEY_OF_CLAUDE", "KEY_OF_CODEX")}
"""Keys by the variables that they stand in."""
MODELS: Final = {"claude": "claude-sonnet-4-5", "codex": "gpt-5.5"}
PHASES: Final = ["implement", "review", "implement", "review", "acceptance"]
"""The phases of the legs of a relay in which the first work is wrong."""


def have(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Put programs on PATH and keys into the environment; the test is skipped aloud where one cannot be had."""
    folders = dict.fromkeys(str(programs.folder(name)) for name in names)
    patch.setenv("PATH", ":".join([*folders, "/usr/local/bin:/usr/bin:/bin"]))
    patch.setenv("NO_PROXY", "127.0.0.1,localhost")
    for name, key in KEYS.items():
        patch.setenv(name, key)


def line_up(world: World, service: Service, worker: str, judge: str, **tables: object) -> None:
    """Let one program implement and accept, each time in a fresh session, and the other one review."""
    lines: Mapping[str, dict[str, Any]] = {
        "claude": {"backend": "claude-code", "base_url": service.url, "key": "KEY_OF_CLAUDE"},
        "codex": {"backend": "codex", "base_url": f"{service.url}/v1", "key": "KEY_OF_CODEX"},
    }
    world.agents = {name: {**line, "model": MODELS[name]} for name, line in lines.items()}
    world.phases = {"implement": {"agent": worker}, "review": {"agent": judge}, "acceptance": {"agent": worker}}
    world.save(**tables)


def script() -> Script:
    """Return the steps: wrong at first, found out by a command that fails, mended, found good, accepted."""
    approve = do.reply({"verdict": "approve", "nonce": nonce})
    return {
        "phase `acceptance`": [do.run("cat calc.py"), approve],
        "phase `review`": Hits(
            [do.run(PROBE), do.reply({"verdict": "revise", "nonce": nonce, "findings": [FINDING]}), approve]
        ),
        "it multiplies": [
            do.read("calc.py"),
            do.edit("calc.py", "    return a * b\n", "    return a + b\n"),
            do.run(PROBE),
            do.reply({"status": "done", "summary": "it adds"}),
        ],
        "phase `implement`": [
            do.read("calc.py"),
            do.edit("calc.py", "    return a - b\n", "    return a * b\n"),
            do.reply({"status": "done", "summary": "it multiplies now"}),
        ],
    }

"""What a repository's nights need, put together from the shell in which a schedule is installed."""

import os
import re
import sys
from pathlib import Path
from typing import Final

import relay
from relay.errors import RelayError
from relay.host import files
from relay.record.config import Config
from relay.record.ledger import Ledger
from relay.schedule import job as jobs
from relay.schedule.job import Job, Missed

HOURS: Final = 12.0
"""Hours after which a scheduler that can do so ends a night, by SIGTERM: only one that hangs; the purse ends others."""

SCRIPTS: Final = frozenset({"relay", "phased-relay"})
CARRIED: Final = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")
"""Folders that lead Relay, and the agents to their logins: where a shell names one, the night must have the same."""

PROGRAMS: Final = {"claude-code": "@anthropic-ai/claude-code", "codex": "@openai/codex"}
"""What a fresh machine must install for a backend, from npm."""


def plan(ledger: Ledger, settings: Config, *, at: str, zone: str | None, missed: Missed) -> Job:
    """Put together what this repository's nights need, from this shell; `at` is a cron line in numbers."""
    repo = ledger.repo
    folder = repo.main_top or repo.top or repo.common
    project = re.sub(r"[^A-Za-z0-9.-]+", "-", folder.name)[:32].strip("-.") or "repo"
    key = jobs.key(repo.common)
    name = f"relay-nightly-{project}-{key}"
    base, more = _relay()
    job = Job(
        name=name,
        key=key,
        project=project,
        folder=str(folder),
        bare=(repo.main_top or repo.top) is None,
        command=(*base, "-C", str(folder), "nightly", "--scheduled"),
        env={**_env(), **more},
        env_file=str(files.config_home() / "relay" / "env"),
        log=str(files.state_home() / "relay" / f"{name}.log"),
        at=at,
        zone=zone,
        missed=missed,
        hours=max(HOURS, (settings.nightly.hours or 0) + 1),
        packages=tuple(sorted({PROGRAMS[a.backend] for a in settings.agents.values() if a.backend in PROGRAMS})),
    )
    for text in (job.folder, *job.command, job.env_file, job.log):
        if re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", text):
            shown = ascii(text)[1:-1]
            raise RelayError(f"no scheduler can name the path `{shown}`", hint="move it to one of plain letters")
    return job


def _relay() -> tuple[tuple[str, ...], dict[str, str]]:
    """Return how this Relay is called from anywhere, and what its Python must be told.

    The script by which it was called, since that stays where it is when Relay is brought up to date; else Python, with
    `-P`, so that no file in the folder where it starts takes the place of a module.
    """
    called = Path(sys.argv[0]).absolute()
    if called.name in SCRIPTS and called.is_file() and os.access(called, os.X_OK):
        return (str(called),), {}
    home = Path(relay.__file__).absolute().parents[1]
    installed = home.name in {"site-packages", "dist-packages"}
    return (sys.executable, "-P", "-m", "relay"), {} if installed else {"PYTHONPATH": str(home)}


def _env() -> dict[str, str]:
    """Return the environment of a night: this shell's PATH and folders, a language, and nothing that asks questions."""
    said = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    carried = {name: os.environ.get(name, "") for name in CARRIED}
    return {
        "PATH": frozen(os.environ.get("PATH", os.defpath)),
        "LANG": said if re.fullmatch(r"[\w.@-]+\.utf-?8", said, re.IGNORECASE | re.ASCII) else "C.UTF-8",
        "GIT_TERMINAL_PROMPT": "0",
        **{name: value for name, value in carried.items() if value.startswith("/") and _sayable(value)},
    }


def frozen(path: str) -> str:
    """Return the absolute entries of a PATH, each once: `.` would be another folder at night, or an agent's."""
    entries = [entry for entry in path.split(os.pathsep) if entry.startswith("/") and _sayable(entry)]
    return os.pathsep.join(dict.fromkeys(entries)) or os.defpath.strip(os.pathsep)


def _sayable(text: str) -> bool:
    return not re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", text)

"""A night's environment, tried by day: the doctor itself, called as the schedule will call Relay (pitfalls row 9).

Nothing of this shell goes along, there is no terminal, and the folder is the person's home. A program that is missing
there, or whose interpreter is, would end with 127 at night: that is "not installed", not an agent that failed.
"""

import os
import pwd
import re
import shlex
import shutil
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from relay.errors import Exit, RelayError
from relay.host import files, proc
from relay.schedule import script
from relay.schedule.job import Job
from relay.terms import Agent, Limits

Found = tuple[str, str, str]
"""Level, text and hint of a look, as the doctor prints it."""

AGAIN: Final = "put it on PATH, then freeze that anew: relay schedule install"
SHOWN: Final = 5
"""How many lines are named; the rest are counted."""
PROGRAMS: Final = {"claude-code": "claude", "codex": "codex"}
"""Backend to the program that it drives; a command names its own."""


def environment(job: Job, method: str = "") -> tuple[dict[str, str], list[int]]:
    """Return all that a night has: what a scheduler sets, what was frozen, and the person's file of variables.

    And the numbers of the lines in that file that are not read there.
    """
    user = pwd.getpwuid(os.getuid())
    env = {
        "HOME": os.environ.get("HOME", "") or user.pw_dir,
        "LOGNAME": user.pw_name,
        "USER": user.pw_name,
        "SHELL": "/bin/sh",
        **job.env,
    }
    try:
        text = files.read(Path(job.env_file).resolve()).decode("utf-8", "replace")
    except (OSError, RelayError):
        text = ""
    own, unread = script.variables(text, marked=method != "systemd")
    return {**env, **own}, unread


def run(job: Job, agents: Iterable[Agent], used: Container[str], method: str = "") -> Iterator[Found]:
    """Yield what the doctor finds there, and first which agents' programs are not; `used` are those a phase names."""
    env, unread = environment(job, method)
    yield "ok", f"PATH at night: {env['PATH']}", ""
    if (path := Path(job.env_file)).exists() and path.stat().st_mode & 0o077:
        yield "warn", f"others can read `{path}`, and keys may stand in it", f"chmod 600 {shlex.quote(str(path))}"
    if unread:
        many = "s" * (len(unread) != 1)
        numbers = ", ".join(map(str, unread[:SHOWN])) + f" and {len(unread) - SHOWN} more" * (len(unread) > SHOWN)
        hint = "write NAME=value, without `export`, and save it without a byte-order mark"
        yield "warn", f"line{many} {numbers} of `{path}`: not NAME=value, so not read at night", hint
    lacking = {agent.name: problem for agent in agents if (problem := _lacks(agent, env["PATH"]))}
    for name, problem in lacking.items():
        yield "FAIL" if name in used else "warn", f"agent {name}: not installed at night: {problem}", AGAIN
    # The command line as it is installed, with another verb in the place of the night's.
    words = [*job.command[: job.command.index("nightly", -2)], "doctor", "--json"]
    home = env["HOME"] if Path(env["HOME"]).is_dir() else os.sep
    ended = proc.run(words, cwd=home, env=env, limits=Limits(seconds=300))
    events = [event for line in ended.text.splitlines() if (event := _event(line)) is not None]
    if not events:
        yield "FAIL", _silent(words, ended), "relay schedule install, from a shell where it works"
    for event in events:
        text = str(event.get("text", ""))
        if not any(text.startswith((f"agent {name}:", f"agent {name},")) for name in lacking):
            yield str(event.get("level", "FAIL")), text, str(event.get("hint", ""))


def _event(line: str) -> dict[str, Any] | None:
    """Read one line of the doctor's, None for anything else that was said."""
    try:
        event = msgspec.json.decode(line)
    except msgspec.MsgspecError:
        return None
    return event if isinstance(event, dict) and event.get("type") == "check" else None


def _silent(words: list[str], ended: proc.Ended) -> str:
    """Say why the doctor did not say anything."""
    said = (ended.text.strip().splitlines() or [f"exit {ended.code}"])[-1][:300]
    if ended.code in {126, 127}:
        return f"relay is not installed at night: `{words[0]}` cannot be started: {said}"
    return f"relay does not run at night: {said}"


def _lacks(agent: Agent, path: str) -> str:
    """Say what of an agent's program is not there on a PATH: itself, or the interpreter that its first line names."""
    name = agent.command[0] if agent.backend == "command" and agent.command else PROGRAMS.get(agent.backend, "")
    if not name:
        return ""
    found = shutil.which(name, path=path)
    if found is None:
        here = shutil.which(name)
        return f"`{name}` is not on its PATH" + (f"; here it is `{here}`" if here else "")
    interpreter = _interpreter(Path(found))
    if interpreter and shutil.which(interpreter, path=path) is None:
        return f"`{found}` needs `{interpreter}`, which is not on its PATH"
    return ""


def _interpreter(program: Path) -> str:
    """Return the interpreter that a program's first line names, through `env` where it does so; `""` for none."""
    try:
        with program.open("rb") as stream:
            first = stream.readline(512).decode("utf-8", "replace")
    except OSError:
        return ""
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and not re.match(r"\w+=", word)]
    return words[0] if words else ""


def refuse_elsewhere(method: str) -> None:
    """Refuse to rehearse what runs on a machine that is not this one."""
    if method == "actions":
        hint = "start it there: gh workflow run relay-nightly"
        raise RelayError("a night of GitHub Actions cannot be tried from here", hint=hint, exit_code=Exit.USAGE)

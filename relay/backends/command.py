"""Any program takes the leg: the prompt on stdin, the leg's folder as its folder, the reply in a file or an exit code.

The program is found on PATH or by its absolute path, never below the leg's folder: what is reviewed cannot steer
its judge. No shell is involved.
"""

import hashlib
import os
import shlex
import shutil
import signal
from pathlib import Path
from typing import Final, Literal

import msgspec

from relay.backends.base import Lane, Needs
from relay.errors import Exit, RelayError
from relay.host import files, proc
from relay.host.jail import cell as cells
from relay.terms import MECHANICAL, Agent, Ask, ClaimedFinding, JudgeReply, Repro, Taken, Usage, WorkReply

by_hand = False
LIMIT: Final = 4 << 20
"""The largest reply that is read, in bytes."""
NOT_INSTALLED: Final = frozenset({126, 127})
"""How a shell, `env` and `proc.run` say that a program cannot be run, or is not there (pitfalls row 9)."""
WHY: Final = 4000
"""How many characters of a judge's last output stand in its finding, in whole lines."""


def preflight(agent: Agent, where: Path) -> str:
    """Return the first 12 digits of the program's sha256; no such program: a `RelayError` with exit 4."""
    del where
    return _version(_program(agent, proc.clean_env().get("PATH", "")))


def needs(ask: Ask) -> Needs:
    """Return what the agent's command line names by absolute path, and the folder where its reply goes."""
    command = ask.agent.command
    found = [shutil.which(command[0]) or ""] if command else []
    named = (Path(word) for word in (*found, *command[1:]) if word.startswith("/"))
    return Needs(readable=tuple(path for path in named if path.exists()), writable=(Path(ask.reply_path).parent,))


def take(ask: Ask, lane: Lane) -> Taken:
    """Run the program to its end and read its reply."""
    try:
        program = _program(ask.agent, proc.clean_env(ask.env).get("PATH", ""))
    except RelayError as error:
        return _unable(ask, f"agent not installed: {error.message}")
    if not Path(ask.folder).is_dir():
        return _unable(ask, f"there is no folder `{ask.folder}` to work in")
    version = _version(program)
    ended = cells.run(
        lane.cell,
        [program, *ask.agent.command[1:]],
        folder=Path(ask.folder),
        env=ask.env,
        stdin=ask.prompt.encode(errors="replace"),
        limits=ask.limits,
        sink=lane.sink,
        spawned=lane.spawned,
    )
    taken = msgspec.structs.replace(_taken(ask, ended), version=version, model=ask.agent.model)
    if ask.agent.vendor == MECHANICAL:
        return taken
    # Somebody's model is behind it: what it used and cost, nobody here knows.
    return msgspec.structs.replace(taken, usage=Usage(complete=False), cost_microusd=None)


def _taken(ask: Ask, ended: proc.Ended) -> Taken:
    """Say how the leg ended, from how the program ended."""
    if ended.ended != "exit":
        return _cut(ask, ended.ended)
    if ended.code == 0:
        return _read(ask) if ask.agent.reply == "json" else _content(ask)
    return _failed(ask, ended)


def _cut(ask: Ask, ended_by: Literal["timeout", "idle", "output", "memory", "disk"]) -> Taken:
    """Name the limit that ended the program."""
    why = {
        "timeout": f"did not end within {ask.limits.seconds:g} s",
        "idle": f"wrote nothing for {ask.limits.idle or 0:g} s",
        "output": f"wrote more than {ask.limits.output or 0} bytes",
        "memory": "used more memory than it may",
        "disk": "filled the disk",
    }
    return Taken(ended_by=ended_by, problem=f"`{_name(ask.agent)}` {why[ended_by]}")


def _failed(ask: Ask, ended: proc.Ended) -> Taken:
    """Tell a program that is not there from one that failed, and from a judge whose exit code says no."""
    name = _name(ask.agent)
    if ended.code in NOT_INSTALLED:
        return _unable(ask, f"agent not installed: `{name}` exited {ended.code}")
    killed = _signal(ended.code)
    if ask.kind == "judge" and ask.agent.reply == "exit" and not killed:
        return _finding(ask, ended)
    how = f"ended by {killed}" if killed else f"exited {ended.code}"
    return Taken(ended_by="crash" if ask.kind == "work" else "no-reply", problem=f"`{name}` {how}")


def _read(ask: Ask) -> Taken:
    """Read the reply file of a program that ended well."""
    name = _name(ask.agent)
    try:
        return Taken(ended_by="reply", reply=files.handed(Path(ask.reply_path), LIMIT))
    except FileNotFoundError:
        return Taken(ended_by="no-reply", problem=f"`{name}` exited 0 and wrote no reply to `RELAY_REPLY`")
    except RelayError as error:
        return Taken(ended_by="no-reply", problem=f"the reply of `{name}` was not read: {error.message}")
    except OSError as error:
        return Taken(ended_by="no-reply", problem=f"the reply of `{name}` was not read: {error.strerror}")


def _content(ask: Ask) -> Taken:
    """Make the reply of a program whose exit code is its reply, and is 0; it has looked at no criterion."""
    summary = f"`{shlex.join(ask.agent.command)}` exited 0"
    if ask.kind == "work":
        return _reply(WorkReply(status="done", summary=summary))
    return _reply(JudgeReply(verdict="approve", nonce=ask.nonce, summary=summary))


def _finding(ask: Ask, ended: proc.Ended) -> Taken:
    """Make the reply of a judge whose exit code is its reply: one finding, for Relay to confirm by running it again."""
    command = shlex.join(ask.agent.command)
    title = f"`{command}` exited {ended.code}"
    finding = ClaimedFinding(
        severity="blocker",
        title=title,
        path=".",
        line=1,
        quote="",
        why=_end(ended.text.strip()),
        repro=Repro(command=command, expect_exit=ended.code),
    )
    return _reply(JudgeReply(verdict="revise", nonce=ask.nonce, summary=title, findings=(finding,)))


def _end(text: str) -> str:
    """Return the last lines of an output; a line that is cut says something else than it did."""
    return text if len(text) <= WHY else text[-WHY:].partition("\n")[2] or text[-WHY:]


def _reply(reply: WorkReply | JudgeReply) -> Taken:
    return Taken(ended_by="reply", reply=msgspec.json.encode(reply))


def _unable(ask: Ask, problem: str) -> Taken:
    """Say that the program cannot run: a matter of set-up; a judge that did not judge is inconclusive, no finding."""
    return Taken(ended_by="setup" if ask.kind == "work" else "no-reply", problem=problem)


def _program(agent: Agent, path: str) -> str:
    """Return the absolute path of the agent's program, links kept: a program may look at the name it was called by."""
    name = _name(agent)
    hint = f"install it, or change `command` of `[agents.{agent.name}]` in relay.toml"
    if not name:
        raise RelayError(f"agent `{agent.name}` has no command", hint=hint, exit_code=Exit.HUMAN)
    if "/" in name and not Path(name).is_absolute():
        problem = f"the program `{name}` of agent `{agent.name}` is a relative path: it would be the reviewed code's"
        raise RelayError(problem, hint="give a name on PATH or an absolute path", exit_code=Exit.HUMAN)
    # A relative entry of PATH means the current folder: Relay's here, the leg's once the program runs there.
    absolute = os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    found = shutil.which(name, path=absolute)
    if found is None:
        where = "" if "/" in name else " on PATH"
        problem = f"the program `{name}` of agent `{agent.name}` is not there, or not executable{where}"
        raise RelayError(problem, hint=hint, exit_code=Exit.HUMAN)
    return found


def _version(program: str) -> str:
    """Return the first 12 digits of the program's sha256; a program may be executable and yet not readable."""
    try:
        with Path(program).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:12]
    except OSError:
        return "unreadable"


def _signal(code: int) -> str:
    """Return the name of the signal behind an exit code, `""` if there is none; a shell says 128+n for its child."""
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}" if code < 0 else ""


def _name(agent: Agent) -> str:
    return agent.command[0] if agent.command else ""

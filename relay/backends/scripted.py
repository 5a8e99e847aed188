"""A script takes the leg: real edits and real commands from a TOML file, the same every time, with no model.

For demonstrations, tests and rehearsals. The n-th `[[PHASE]]` table is for the n-th turn of that phase, the last one
repeats. A turn does, in this order: `write`, `edit`, `delete`, `run`, `sleep`; then it ends with `reply`, or as
`ended_by` says::

    [[implement]]
    write = {"src/new.py" = "..."}                              # path = text
    edit = [{path = "src/old.py", old = "x < 1", new = "x < 2"}]
    delete = ["src/gone.py"]
    run = ["python3 -m unittest -q"]                            # a failing command ends the leg as a crash
    sleep = 0.5
    reply = {status = "done", summary = "..."}                  # for a judge, `nonce` is filled in

    [[implement]]
    ended_by = "quota"
    until = "2026-11-29T06:00:00Z"

A turn with neither `reply` nor `ended_by` ends without a reply. Paths stay inside the leg's folder.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from relay.backends.base import Lane, Needs, Sink
from relay.errors import Exit, RelayError
from relay.host import clock, files, proc
from relay.host.jail import cell as cells
from relay.terms import Agent, Ask, EndedBy, Limits, Struct, Taken

by_hand = False
REPLIES: Final = frozenset({"reply", "handover"})
"""The endings that carry a reply."""


class Edit(Struct, frozen=True, kw_only=True):
    """One replacement: `old` stands in the file exactly once, or `new` stands there already."""

    path: str
    old: Annotated[str, msgspec.Meta(min_length=1)]
    new: str


class Turn(Struct, frozen=True, kw_only=True):
    """What the agent does in one turn; `reply` as a string goes out as it is, to rehearse replies off the schema."""

    write: dict[str, str] = msgspec.field(default_factory=dict)
    edit: tuple[Edit, ...] = ()
    delete: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    sleep: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    reply: dict[str, Any] | str | None = None
    ended_by: EndedBy | None = None
    until: str | None = None
    problem: str | None = None


def preflight(agent: Agent, where: Path) -> str:
    """Return the first 12 digits of the script's sha256; a missing or wrong script is a `RelayError` with exit 4."""
    del where
    return _read(agent)[1]


def needs(ask: Ask) -> Needs:
    """Return nothing: Relay itself reads the script."""
    del ask
    return Needs()


def take(ask: Ask, lane: Lane) -> Taken:
    """Do what the script says for this turn."""
    try:
        script, version = _read(ask.agent)
    except RelayError as error:
        return Taken(ended_by="setup", problem=error.message)
    turns = script.get(ask.phase)
    if not turns:
        problem = f"the script `{ask.agent.script}` has no `[[{ask.phase}]]`"
        return Taken(ended_by="setup", problem=problem, version=version)
    turn = turns[min(ask.turn, len(turns)) - 1]
    taken = _play(turn, ask, lane) or _end(turn, ask)
    return msgspec.structs.replace(taken, version=version, model=ask.agent.model)


def _play(turn: Turn, ask: Ask, lane: Lane) -> Taken | None:
    """Do what a turn does; return how the leg ended if something would not go as written."""
    deadline = clock.monotonic() + ask.limits.seconds
    folder = Path(ask.folder)
    try:
        for done in _change(turn, folder):
            _tell(lane.sink, done)
    except RelayError as error:
        return Taken(ended_by="crash", problem=error.message)
    except (OSError, ValueError) as error:
        return Taken(ended_by="crash", problem=f"the script could not go on: {error}")
    for command in turn.run:
        if not folder.is_dir():
            return Taken(ended_by="crash", problem=f"there is no folder `{folder}` to run `{command}` in")
        _tell(lane.sink, f"$ {command}")
        ended = _run(command, ask, deadline, lane)
        if ended.ended != "exit":
            return Taken(ended_by=ended.ended, problem=f"`{command}` ended by {ended.ended}")
        if ended.code != 0:
            return Taken(ended_by="crash", problem=f"`{command}` exited {ended.code}")
    return _sleep(turn.sleep, deadline, lane.sink)


def _change(turn: Turn, folder: Path) -> Iterator[str]:
    """Write, edit and delete files; say what was done, a line each."""
    for name, text in turn.write.items():
        path = _inside(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        yield f"wrote `{name}` ({len(text.encode())} bytes)"
    for edit in turn.edit:
        yield _edit(edit, _inside(folder, edit.path))
    for name in turn.delete:
        path = _inside(folder, name)
        if path.is_dir():
            files.remove_tree(path)
        else:
            path.unlink(missing_ok=True)
        yield f"deleted `{name}`"


def _edit(edit: Edit, path: Path) -> str:
    """Replace one place; a turn that was cut short and is played again finds some of its edits done."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise RelayError(f"there is no `{edit.path}` to edit") from None
    times, applied = text.count(edit.old), text.count(edit.new)
    # `new` may hold `old`, where something is added to it: what stands inside a `new` is not to be replaced again.
    if applied and times == applied * edit.new.count(edit.old):
        return f"`{edit.path}` is edited already"
    if times != 1:
        raise RelayError(f"the text to replace stands {times} times in `{edit.path}`, not once: `{edit.old}`")
    path.write_bytes(text.replace(edit.old, edit.new).encode())
    return f"edited `{edit.path}`"


def _run(command: str, ask: Ask, deadline: float, lane: Lane) -> proc.Ended:
    """Run one shell command in the leg's folder, within what is left of the leg's time."""
    left = max(deadline - clock.monotonic(), 0.0)
    limits: Limits = msgspec.structs.replace(ask.limits, seconds=left)
    return cells.run(
        lane.cell,
        command,
        folder=Path(ask.folder),
        env=ask.env,
        limits=limits,
        sink=lane.sink,
        spawned=lane.spawned,
    )


def _sleep(seconds: float, deadline: float, sink: Sink) -> Taken | None:
    """Wait, within what is left of the leg's time; a signal that ends Relay ends the wait."""
    if not seconds:
        return None
    _tell(sink, f"sleeping {seconds:g} s")
    left = max(deadline - clock.monotonic(), 0.0)
    time.sleep(min(seconds, left))
    if seconds <= left:
        return None
    return Taken(ended_by="timeout", problem=f"the script would sleep {seconds:g} s, past the end of the leg's time")


def _end(turn: Turn, ask: Ask) -> Taken:
    """End a turn that went as written."""
    ended_by = turn.ended_by or ("no-reply" if turn.reply is None else "reply")
    reply = _reply(turn.reply, ask) if ended_by in REPLIES and turn.reply is not None else None
    problem = turn.problem or (None if reply else f"the script ends this turn by {ended_by}")
    return Taken(ended_by=ended_by, reply=reply, problem=problem, until=turn.until)


def _reply(reply: dict[str, Any] | str, ask: Ask) -> bytes:
    """Return a reply's bytes with the nonce of the leg in them."""
    if isinstance(reply, str):
        return reply.replace("{nonce}", ask.nonce).encode()
    if ask.kind == "judge":
        reply = {"nonce": ask.nonce, **reply}
    return msgspec.json.encode(_filled(reply, ask.nonce))


def _filled(value: object, nonce: str) -> object:
    """Return a value with `{nonce}` replaced in every string of it."""
    if isinstance(value, str):
        return value.replace("{nonce}", nonce)
    if isinstance(value, dict):
        return {key: _filled(item, nonce) for key, item in value.items()}
    return [_filled(item, nonce) for item in value] if isinstance(value, list) else value


def _inside(folder: Path, name: str) -> Path:
    """Return the path of `name` below the folder; one that leads out of it, by `..` or by a link, is refused."""
    path = folder / name
    root = folder.resolve()
    if path.is_symlink() or path.resolve() == root or not path.resolve().is_relative_to(root):
        raise RelayError(f"the path `{name}` leads out of the leg's folder")
    return path


def _read(agent: Agent) -> tuple[dict[str, list[Turn]], str]:
    """Return the agent's script and its version; a relative path counts from the folder that Relay runs in."""
    hint = f"look at `script` of `[agents.{agent.name}]` in relay.toml"
    if not agent.script:
        raise RelayError(f"agent `{agent.name}` has no script", hint=hint, exit_code=Exit.HUMAN)
    try:
        data = files.read(Path(agent.script).absolute())
        script = msgspec.toml.decode(data, type=dict[str, list[Turn]])
    except FileNotFoundError:
        raise RelayError(f"there is no script `{agent.script}`", hint=hint, exit_code=Exit.HUMAN) from None
    except (OSError, ValueError) as error:  # of TOML, UTF-8 and msgspec: each is a ValueError
        raise RelayError(f"the script `{agent.script}` is wrong: {error}", hint=hint, exit_code=Exit.HUMAN) from None
    return script, files.sha256(data)[:12]


def _tell(sink: Sink, line: str) -> None:
    sink(f"{line}\n".encode(errors="replace"))

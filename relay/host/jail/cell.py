"""A cell: where the commands of one leg run, with what they see and reach. Without one they run in the open."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from relay.host import proc
from relay.host.jail import network
from relay.host.jail.mounts import Mounts
from relay.host.jail.run import Network, jailed
from relay.host.jail.rungs import Rung
from relay.terms import Limits, Process, Struct


class Cell(Struct, frozen=True, kw_only=True):
    """A rung that holds, what is shown in it, and what of the network: nothing, named hosts, or all of it.

    `loopback` names services of this machine that are there inside, as `127.0.0.1:5432`.
    """

    rung: Rung
    mounts: Mounts
    network: Literal["off", "allow", "host"] = "off"
    allow: tuple[str, ...] = ()
    loopback: tuple[str, ...] = ()


def run(
    cell: Cell | None,
    command: Sequence[str] | str,
    *,
    folder: Path,
    env: Mapping[str, str],
    limits: Limits,
    stdin: bytes = b"",
    sink: Callable[[bytes], None] | None = None,
    spawned: Callable[[Process], None] | None = None,
) -> proc.Ended:
    """Run a command in its cell, or in the open in `folder` where there is none.

    In a cell it gets `env` and an allow-list of what the person has set; in the open, all of that but what leads
    elsewhere. What a door refused is told to the sink, so that it stands in the transcript.
    """
    if cell is None:
        return proc.run(
            command,
            cwd=str(folder),
            env=proc.clean_env(env),
            stdin=stdin,
            limits=limits,
            sink=sink,
            spawned=spawned,
        )
    with (
        tempfile.TemporaryDirectory(prefix="relay-door-") as place,
        network.door(cell.network, cell.allow, cell.loopback, Path(place).resolve()) as door,
    ):
        ended = jailed(
            cell.rung,
            command,
            cell.mounts,
            env=env,
            network=Network.HOST if cell.network == "host" else door,
            limits=limits,
            stdin=stdin,
            sink=sink,
            spawned=spawned,
        )
        if sink is not None:
            for refusal in door.refused:
                sink(f"relay: the network is closed: {refusal}\n".encode(errors="replace"))
    return ended

"""A cell: where the commands of one leg run, with what they see and reach. Without one they run in the open."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from relay.host import proc, scratch
from relay.host.jail import network
from relay.host.jail.limits import USUAL, Bounds, Watch
from relay.host.jail.mounts import Mounts
from relay.host.jail.run import Network, environment, jailed
from relay.host.jail.rungs import Rung
from relay.terms import Limits, Process, Struct

_OPEN: Final = re.compile(
    r"USER|LOGNAME|SHELL|XDG_\w+"  # who it is, and where configuration and caches are
    r"|\w+_(?:HOME|ROOT|DIR)|GOPATH|NIX_PATH|LOCALE_ARCHIVE"  # where tools are that PATH does not find alone
    r"|CC|CXX|(?:C|CXX|CPP|LD)FLAGS|PKG_CONFIG_PATH|LIBRARY_PATH|CPATH"
    r"|\w+_CA_BUNDLE|\w+_CA_CERTS|\w+_CERT_FILE"
    r"|(?i:(?:https?|all|no)_proxy)"
)
"""What a command in the open gets besides what one in a jail does: it may live in the person's home."""


class Cell(Struct, frozen=True, kw_only=True):
    """A rung that holds, what is shown in it, and what of the network: nothing, named hosts, or all of it.

    `loopback` names services of this machine that are there inside, as `127.0.0.1:5432`. `nests` lets a program build
    a jail of its own inside. `env` is what every command gets that is not given another value.
    """

    rung: Rung
    mounts: Mounts
    env: dict[str, str] = {}
    network: Literal["off", "allow", "host"] = "off"
    allow: tuple[str, ...] = ()
    loopback: tuple[str, ...] = ()
    nests: bool = False


def run(  # noqa: PLR0913  what `proc.run` takes, and where
    cell: Cell | None,
    command: Sequence[str] | str,
    *,
    folder: Path,
    env: Mapping[str, str],
    limits: Limits,
    stdin: bytes = b"",
    sink: Callable[[bytes], None] | None = None,
    spawned: Callable[[Process], None] | None = None,
    bounds: Bounds = USUAL,
) -> proc.Ended:
    """Run a command in its cell, or in the open in `folder` where there is none.

    It gets `env` and an allow-list of what the person has set, which is longer in the open. Memory, processes and new
    disk are bounded in both. What a door refused is told to the sink, so that it stands in the transcript.
    """
    if cell is None:
        return proc.run(
            command,
            cwd=str(folder),
            env=surroundings(env),
            stdin=stdin,
            limits=limits,
            sink=sink,
            spawned=spawned,
            guard=proc.Guard(Watch(bounds, folder).look),
        )
    with (
        scratch.folder("door") as place,
        network.door(cell.network, cell.allow, cell.loopback, place) as door,
    ):
        ended = jailed(
            cell.rung,
            command,
            cell.mounts,
            env={**cell.env, **env},
            network=Network.HOST if cell.network == "host" else door,
            nests=cell.nests,
            limits=limits,
            bounds=bounds,
            stdin=stdin,
            sink=sink,
            spawned=spawned,
        )
        if sink is not None:
            for refusal in door.refused:
                sink(f"relay: the network is closed: {refusal}\n".encode(errors="replace"))
    return ended


def surroundings(named: Mapping[str, str]) -> dict[str, str]:
    """Return all that a command in the open gets: what one in a jail does, the real home, and where tools are.

    No variable goes along that is not known to be harmless, so no key either; a proxy only where no password stands in
    its address. What leads git, Python or node elsewhere is left out as `proc.clean_env` does.
    """
    passed = {
        name: value
        for name, value in proc.clean_env().items()
        if _OPEN.fullmatch(name) and not (name.lower().endswith("_proxy") and "@" in value)
    }
    home = Path(os.path.expanduser("~"))  # which never fails, though HOME may be unset
    return environment({**passed, **named}, home)

"""What every backend keeps: three functions and one flag. The rest of Relay knows no backend by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from relay.host.jail.cell import Cell
from relay.terms import Agent, Ask, Process, Struct, Taken, Told

Sink = Callable[[bytes], None]
"""Takes what an agent's programs write while they write it; the bytes become lines of the leg's transcript."""

Spawned = Callable[[Process], None]
"""Is told of an agent's process as soon as there is one, so that a later Relay can find and end it."""


class Needs(Struct, frozen=True, kw_only=True):
    """What an agent's program must have in its jail besides its worktree; all paths exist and are absolute.

    `hosts` are services it talks to whatever the network of its commands is, as `api.vendor.example` or
    `127.0.0.1:8080`. `nests` says that it builds a jail of its own for its commands. Nothing at all is needed by a
    backend that runs in Relay's own process and puts only its commands into the jail.
    """

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()
    nests: bool = False


@dataclass(frozen=True)
class Lane:
    """What a leg runs in, from beginning to end: whom to tell, and the cell that holds its commands, if any does.

    `unfit` says what is wrong with a reply, and nothing where it fits, so that an agent can be asked for a better one.
    """

    sink: Sink
    told: Callable[[Told], None]
    spawned: Spawned
    unfit: Callable[[bytes], str]
    cell: Cell | None = None


class Backend(Protocol):
    """The code that drives one sort of agent."""

    @property
    def by_hand(self) -> bool:
        """Tell whether a person takes the leg: the leg is then offered first, and taken when the reply is there."""

    def preflight(self, agent: Agent, where: Path) -> str:
        """Return the version of what would run in `where`, or raise a `RelayError` that says what is missing."""

    def needs(self, ask: Ask) -> Needs:
        """Return what the agent's own program must see and reach; its folders are made here where they are missing."""

    def take(self, ask: Ask, lane: Lane) -> Taken:
        """Take one leg to its end, with all that runs in its cell where there is one.

        Whatever an agent does becomes a `Taken`; only `Interrupted` passes through, once the agent has ended.
        """

"""What every backend keeps: two functions and one flag. The rest of Relay knows no backend by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from relay.host.jail.cell import Cell
from relay.terms import Agent, Ask, Process, Taken

Sink = Callable[[bytes], None]
"""Takes what an agent writes while it writes it; the bytes become the leg's transcript."""

Spawned = Callable[[Process], None]
"""Is told of an agent's process as soon as there is one, so that a later Relay can find and end it."""


class Backend(Protocol):
    """The code that drives one sort of agent."""

    @property
    def by_hand(self) -> bool:
        """Tell whether a person takes the leg: the leg is then offered first, and taken when the reply is there."""

    def preflight(self, agent: Agent, where: Path) -> str:
        """Return the version of what would run in `where`, or raise a `RelayError` that says what is missing."""

    def take(self, ask: Ask, sink: Sink, spawned: Spawned, cell: Cell | None = None) -> Taken:
        """Take one leg to its end, with all that runs in its cell where there is one.

        Whatever an agent does becomes a `Taken`; only `Interrupted` passes through, once the agent has ended.
        """

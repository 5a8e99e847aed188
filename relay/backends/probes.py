"""Which backends can be asked for a sign of life, by one tiny real call, and know of a key."""

from typing import Final, Protocol, cast

from relay import backends
from relay.terms import Agent

PROBED: Final = frozenset({"anthropic", "claude-code", "codex", "openai"})
"""Backends whose module has all that `Probed` says; of the others nothing can be asked without a leg."""


class Probed(Protocol):
    """What such a module has besides what every backend has."""

    def probe(self, agent: Agent) -> str:
        """Make one tiny real call and say what came back, in a line.

        `RelayError` with exit 4 where set-up is missing, with 5 where the service fails or refuses.
        """

    def key(self, agent: Agent) -> str:
        """Say in which variable the key is, or that it is not set, or that none is needed; never its value."""


def of(backend: str) -> Probed | None:
    """Return the module of a backend that can be asked, None for any other."""
    return cast("Probed", backends.named(backend)) if backend in PROBED else None

"""What a leg may use, and what it has used: turns, tokens, money, time. Whatever ends a leg is raised as `Over`."""

from collections.abc import Callable
from typing import Final

import msgspec

from relay.backends.talk import Turn
from relay.host import clock
from relay.terms import MECHANICAL, Agent, EndedBy, Limits, Usage

TURNS: Final = 250
"""Turns of a leg where nobody said how many."""

Price = Callable[[Turn], int | None]
"""What a turn costs, in millionths of a dollar; None where nobody knows."""


def unseen(agent: Agent) -> bool:
    """Tell whether nobody sees what an agent spends, so that no bound on money holds it: a command with a vendor."""
    return agent.backend == "command" and agent.vendor != MECHANICAL


class Over(Exception):  # noqa: N818 - the end of a leg is no error
    """A leg is over, wherever that was found."""

    def __init__(
        self, ended_by: EndedBy, problem: str | None = None, *, reply: bytes | None = None, until: str | None = None
    ) -> None:
        super().__init__(problem)
        self.ended_by, self.problem, self.reply, self.until = ended_by, problem, reply, until


class Purse:
    """Counts what a leg uses and says when a bound is reached; a bound on money needs a price that is known."""

    def __init__(self, limits: Limits, price: Price, *, priced: bool = True) -> None:
        self.limits = limits
        self.usage = Usage()
        self.cost: int | None = 0 if priced else None
        self._price = price
        self.deadline = clock.monotonic() + limits.seconds
        self._edited = False
        self._read: set[str] = set()

    def left(self) -> float:
        """Return the seconds that are left; none left ends the leg."""
        left = self.deadline - clock.monotonic()
        if left <= 0:
            raise Over("timeout", f"did not end within {self.limits.seconds:g} s")
        return left

    def check(self) -> None:
        """End the leg where no further turn may begin."""
        self.left()
        turns = TURNS if self.limits.turns is None else self.limits.turns
        if self.usage.turns >= turns:
            raise Over("budget", f"all {turns} turns of this leg are used")
        tokens = self.usage.input + self.usage.output
        if self.limits.tokens is not None and tokens >= self.limits.tokens:
            raise Over("budget", f"{tokens} tokens are used, and this leg may use {self.limits.tokens}")
        if self.limits.microusd is None:
            return
        if self.cost is None:
            problem = "the price of this model is not known, so the bound on money cannot be kept"
            raise Over("budget", f"{problem}: write its `price` into relay.toml, or take `usd` out")
        if self.cost >= self.limits.microusd:
            spent, cap = (amount / 1_000_000 for amount in (self.cost, self.limits.microusd))
            raise Over("budget", f"${spent:.4f} are spent, and this leg may spend ${cap:.4f}")

    def add(self, turn: Turn) -> None:
        """Count a turn."""
        price, used, one = self._price(turn), self.usage, turn.usage
        self.cost = None if price is None or self.cost is None else self.cost + price
        self.usage = msgspec.structs.replace(
            used,
            input=used.input + one.input,
            cached=used.cached + one.cached,
            output=used.output + one.output,
            reasoning=used.reasoning + one.reasoning,
            turns=used.turns + 1,
            turns_before_first_edit=used.turns_before_first_edit + (not self._edited),
            complete=used.complete and one.complete,
        )

    def missed(self) -> None:
        """Note that an answer broke off: what it cost, the service did not say."""
        self.usage = msgspec.structs.replace(self.usage, complete=False)

    def edited(self) -> None:
        """Note that a file was changed; the turn that does it is not one before the first edit."""
        if not self._edited:
            self._edited = True
            before = self.usage.turns_before_first_edit - 1
            self.usage = msgspec.structs.replace(self.usage, turns_before_first_edit=before)

    def read(self, path: str) -> None:
        """Note that a file was read."""
        if path in self._read:
            self.usage = msgspec.structs.replace(self.usage, repeated_reads=self.usage.repeated_reads + 1)
        self._read.add(path)

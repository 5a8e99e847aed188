"""A lane for a backend that is tried on its own: what it tells is kept, and nothing holds it."""

from collections.abc import Callable

from relay.backends.base import Lane
from relay.host.jail.cell import Cell
from relay.record import reply
from relay.terms import Ask, Process, Told


def lane(
    ask: Ask | None = None,
    *,
    sink: Callable[[bytes], None] = lambda _: None,
    told: Callable[[Told], None] = lambda _: None,
    spawned: Callable[[Process], None] = lambda _: None,
    cell: Cell | None = None,
) -> Lane:
    """Return a lane; with an ask, replies are looked at as a leg of that kind does."""

    def unfit(raw: bytes) -> str:
        return reply.decode(raw, ask.kind, ask.nonce)[1] if ask else ""

    return Lane(sink=sink, told=told, spawned=spawned, unfit=unfit, cell=cell)

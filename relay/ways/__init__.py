"""The ways out: how an accepted commit leaves, one file a method. Each looks at the world before it changes it."""

from relay.host.repository import Repository
from relay.record import strict
from relay.terms import Ship
from relay.terms.words import Method
from relay.ways import deploy, merge, pr, push, remote
from relay.ways.base import MovedError, Out, Parcel, RefusedError, UnknownError, Way, Words

__all__ = ["MovedError", "Out", "Parcel", "RefusedError", "UnknownError", "Way", "Words", "check", "of"]

WAYS: dict[Method, Way] = {
    "merge": merge,
    "fast-forward": merge,
    "merge-commit": merge,
    "push": push,
    "pr": pr,
    "command": deploy,
}


def of(ship: Ship) -> Way:
    """Return the way that a method names."""
    return WAYS[ship.method]


def check(repo: Repository, ship: Ship) -> None:
    """Refuse, before anything is spent on a run, what could never go out from here: a `RelayError`."""
    strict.amount("[ship]", "ship.minutes", ship.minutes)
    strict.variables("[ship]", "ship.env", ship.env)
    for name, command in (("command", ship.command), *(("verify", one) for one in ship.verify)):
        if command is not None and (not command.strip() or "\0" in command):
            raise strict.refusal("[ship]", f"`ship.{name}` has an empty command")
    if ship.publish == "push":
        remote.address(repo, ship.remote)
    of(ship).check(repo, ship)

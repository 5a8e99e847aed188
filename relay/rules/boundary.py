"""What a leg may have changed: two fingerprints compared, and each difference judged a breach or drift."""

from collections.abc import Mapping
from typing import Final

from relay.terms import Boundary, Struct

OWN: Final = ("tree/",)
"""Names that concern the leg's own worktree: its HEAD and its tree."""

JAILED: Final = frozenset({"bwrap", "seatbelt"})
"""Rungs under which nothing outside the worktree was in the agent's reach."""


class Crossed(Struct, frozen=True, kw_only=True):
    """The differences, sorted: what the agent could reach and changed, and what somebody else did meanwhile."""

    breaches: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()


def compare(before: Mapping[str, str], after: Mapping[str, str], *, boundary: Boundary, jail: str) -> Crossed:
    """Compare fingerprints taken before and after a leg.

    A name that begins with `tree/` is the leg's own tree or HEAD: free to an implementer, a breach by a judge.
    Everything else is a breach where no jail held, and drift where one did.
    """
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    breaches, drift = [], []
    for name in changed:
        if name.startswith(OWN):
            if boundary == "verify-only":
                breaches.append(_said(name, before, after))
        elif jail in JAILED:
            drift.append(_said(name, before, after))
        else:
            breaches.append(_said(name, before, after))
    return Crossed(breaches=tuple(breaches), drift=tuple(drift))


def _said(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Name the change the way a person would."""
    if name not in before:
        return f"{name} appeared"
    return f"{name} is gone" if name not in after else f"{name} changed"

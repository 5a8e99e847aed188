"""What a leg may have changed: two fingerprints compared, and each difference judged a breach or drift."""

from collections.abc import Mapping
from typing import Final

from relay.terms import Boundary, Struct

OWN: Final = "tree"
"""What concerns the leg's own files and HEAD: free to an implementer, closed to whoever only verifies."""

ADMIN: Final = "worktree"
"""The leg's own entry in the repository and its `.git`: within reach of every agent, and nobody's to change."""

JAILED: Final = frozenset({"bwrap", "seatbelt", "hand"})
"""Rungs under which nothing outside the worktree was in the agent's reach; by `hand`, it is the person's own."""


TRACKED: Final = ("1 ", "u ")
"""How the value of a file in a checkout begins that git tracks: as in `git status --porcelain=v2`."""


class Crossed(Struct, frozen=True, kw_only=True):
    """The differences, sorted: what the agent could reach and changed, and what somebody else did meanwhile."""

    breaches: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()


def compare(before: Mapping[str, str], after: Mapping[str, str], *, boundary: Boundary, jail: str) -> Crossed:
    """Compare fingerprints taken before and after a leg; names are those of `host/tripwire/fingerprint.py`.

    Where no jail held, everything was in reach, so every difference is a breach. Where one did, only what lies in
    the leg's own worktree was, and the rest is drift.
    """
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    breaches: list[str] = []
    drift: list[str] = []
    for name in changed:
        place = name.partition("/")[0]
        if place == OWN and boundary == "implement":
            continue
        reached = place in {OWN, ADMIN} or jail not in JAILED
        (breaches if reached else drift).append(_said(name, before, after))
    return Crossed(breaches=tuple(breaches), drift=tuple(drift))


def _said(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Name the change the way a person would. A file that git tracks was there, too, while it had nothing to tell."""
    there = name in before.keys() & after.keys() or before.get(name, after.get(name, "")).startswith(TRACKED)
    return f"{name} {'changed' if there else 'appeared' if name in after else 'is gone'}"

"""The picture of many runs: a column for each, its minutes stacked by phase, and its money below."""

from collections.abc import Sequence
from typing import Final

from relay.report import figures, timeline
from relay.report.account import Account
from relay.terms import Struct

MOST: Final = 40
"""Runs in the picture, the newest ones."""

TALL: Final = 96
"""Pixels of the highest column."""

DEEP: Final = 40
"""Pixels of the dearest run's money."""


class Part(Struct, frozen=True, kw_only=True):
    """One piece of a column, from the bottom up."""

    colour: int
    judge: bool
    y: float
    height: float


class Column(Struct, frozen=True, kw_only=True):
    """One run: where it stands in hundredths of the width, its pieces, and how far its money reaches down."""

    x: float
    width: float
    parts: tuple[Part, ...]
    money: float
    said: str


class Columns(Struct, frozen=True, kw_only=True):
    """The picture: what the highest column and the deepest one come to, and the phases that are in it."""

    columns: tuple[Column, ...]
    phases: tuple[tuple[str, int, bool], ...]
    time: str
    money: str
    left: int = 0


def draw(accounts: Sequence[Account]) -> Columns | None:
    """Lay out the newest runs that have legs; None where fewer than two have."""
    drawn = [one for one in accounts if one.glance is not None and one.spent.legs]
    if len(drawn) < 2:  # noqa: PLR2004 - one column compares with nothing
        return None
    left, drawn = len(drawn[:-MOST]), drawn[-MOST:]
    longest = max(one.spent.seconds for one in drawn) or 1.0
    dearest = max(one.spent.microusd for one in drawn)
    step = 100 / max(len(drawn), 8)
    phases: dict[str, tuple[str, int, bool]] = {}
    columns = []
    for at, one in enumerate(drawn):
        parts = _parts(one, longest, phases)
        columns.append(
            Column(
                x=round(at * step, 3),
                width=round(step * 0.72, 3),
                parts=tuple(parts),
                money=round(DEEP * one.spent.microusd / dearest, 1) if dearest else 0.0,
                said=f"{one.run}: {one.told}, {one.spent.time}, {one.spent.money}",
            )
        )
    return Columns(
        columns=tuple(columns),
        phases=tuple(phases.values()),
        time=figures.span(longest),
        money=f"${dearest / 1_000_000:.2f}" if dearest else "",
        left=left,
    )


def _parts(one: Account, longest: float, phases: dict[str, tuple[str, int, bool]]) -> list[Part]:
    """Stack a run's phases in the order of its plan; note in `phases` which were seen."""
    parts: list[Part] = []
    y = 0.0
    for phase in one.glance.plan.phases if one.glance is not None else ():
        chain = one.glance.chain if one.glance is not None else ()
        seconds = sum(sealed.seconds for sealed in chain if sealed.phase == phase.name and sealed.kind != "act")
        if seconds:
            colour, judge = timeline.colour(phase.name), phase.kind == "judge"
            phases.setdefault(phase.name, (phase.name, colour, judge))
            height = TALL * seconds / longest
            parts.append(Part(colour=colour, judge=judge, y=round(y, 2), height=round(height, 2)))
            y += height
    return parts

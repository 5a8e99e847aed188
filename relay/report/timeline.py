"""The picture of a run's legs: time from left to right, a lane for each phase, bars as high as their money.

Here is the geometry alone; the page draws it. What lies across is in hundredths of the picture's width, so that it is
as wide as the page and its letters keep their size; what lies upward is in pixels.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from relay import telling
from relay.report import figures
from relay.report import run as runs
from relay.terms import Plan, Receipt, Struct

LANE: Final = 46
"""Pixels of a lane: a line of letters, and the highest bar."""

LOW: Final = 6
HIGH: Final = 24
"""Pixels of a bar that cost nothing, and of the dearest one."""

TOP: Final = 14
"""Pixels above the lanes, for the words of a gap."""

THIN: Final = 0.012
"""The share of the picture that the shortest leg gets, so that it is seen."""

GAP: Final = 0.08
"""The share of all legs' time above which a pause between two of them is drawn shorter, and named."""

LETTER: Final = 6.2
"""Pixels that a letter of a label takes, at most."""

NARROW: Final = 240
WIDE: Final = 600
"""Pixels of the picture on a telephone, and on paper or a screen: what a label must fit into."""

END: Final = 200.0
"""Where the space of the last label in a lane ends: behind the picture, which it may not leave anyway."""

ACTS: Final = "acts"
PLACES: Final = {"implement": 0, "review": 1, "acceptance": 2, "plan": 3, "plan-review": 4}
"""Which colour a phase has, the same in every picture; phases that people write share the others."""
COLOURS: Final = 7


class Label(Struct, frozen=True, kw_only=True):
    """A word above a bar: it begins at `x`, or ends there where it would run out of the picture."""

    text: str
    x: float
    ends: bool


class Bar(Struct, frozen=True, kw_only=True):
    """A leg, or an act, which has no width; it stands on `foot`. `long` and `short` are its labels where they fit."""

    leg: str
    colour: int
    judge: bool
    void: bool
    act: bool
    x: float
    width: float
    foot: float
    height: float
    said: str
    words: tuple[str, str]
    long: Label | None = None
    short: Label | None = None


class Link(Struct, frozen=True, kw_only=True):
    """A line from the end of one leg to the beginning of the next."""

    x1: float
    y1: float
    x2: float
    y2: float


class Gap(Struct, frozen=True, kw_only=True):
    """A pause that is drawn shorter than it was."""

    x: float
    width: float
    said: str


class Lane(Struct, frozen=True, kw_only=True):
    """One row: a phase, or all acts; `y` is where its bars stand."""

    name: str
    y: float


class Timeline(Struct, frozen=True, kw_only=True):
    """The whole picture; `said` tells it in words to whoever cannot see it."""

    height: float
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    links: tuple[Link, ...]
    gaps: tuple[Gap, ...]
    begin: str
    end: str
    said: str


class _Placed(Struct, frozen=True, kw_only=True):
    """A receipt with its place in time, in seconds of the picture."""

    sealed: Receipt
    at: float
    length: float
    pause: float
    shown: float


def colour(phase: str) -> int:
    """Return the number of a phase's colour."""
    own = len(PLACES)
    return PLACES.get(phase, own + sum(map(ord, phase)) % (COLOURS - own))


def draw(plan: Plan, chain: Sequence[Receipt]) -> Timeline | None:
    """Lay out the legs of a run; None where it has none yet."""
    legs = [sealed for sealed in chain if sealed.kind != "act"]
    if not legs:
        return None
    placed, total = _placed(chain, sum(sealed.seconds for sealed in legs))
    used = {sealed.phase for sealed in legs}
    names = [phase.name for phase in plan.phases if phase.name in used]
    names += [ACTS] * any(sealed.kind == "act" for sealed in chain)
    lanes = tuple(Lane(name=name, y=TOP + LANE * (at + 1.0) - 4) for at, name in enumerate(names))
    feet = {lane.name: lane.y for lane in lanes}
    dearest = max((sealed.cost_microusd or 0 for sealed in legs), default=0)
    bars = [_bar(one, total, feet, dearest) for one in placed]
    return Timeline(
        height=TOP + LANE * len(lanes) + 20,
        lanes=lanes,
        bars=tuple(_labelled(bars)),
        links=tuple(_links(bars)),
        gaps=tuple(
            Gap(
                x=_share(one.at - one.shown, total),
                width=_share(one.shown, total),
                said=figures.span(_short(one.pause)),
            )
            for one in placed
            if one.shown < one.pause
        ),
        begin=figures.hour(chain[0].started),
        end=figures.hour(chain[-1].ended),
        said="; ".join(bar.said for bar in bars),
    )


def _short(pause: float) -> float:
    """Round a pause to whole minutes, for its strip is narrow."""
    return pause if pause < figures.MINUTE else figures.MINUTE * round(pause / figures.MINUTE)


def _share(seconds: float, total: float) -> float:
    return round(100 * seconds / total, 3)


def _placed(chain: Sequence[Receipt], took: float) -> tuple[list[_Placed], float]:
    """Put receipts one after the other: a long pause is drawn short, a short leg is drawn wide enough to be seen.

    Stamps are whole seconds and a clock may jump, so the length of a leg is what was measured, and no two overlap.
    """
    took = took or 1.0
    least, most = took * THIN, took * GAP
    found: list[_Placed] = []
    at, before = 0.0, None
    for sealed in chain:
        begun, ended = figures.moment(sealed.started), figures.moment(sealed.ended)
        pause = max(0.0, (begun - before).total_seconds()) if begun and before else 0.0
        shown = min(pause, most)
        length = max(sealed.seconds, least)
        at += shown
        found.append(_Placed(sealed=sealed, at=at, length=length, pause=pause, shown=shown))
        at += length
        before = ended or before
    return found, at


def _bar(one: _Placed, total: float, feet: dict[str, float], dearest: int) -> Bar:
    """Make the bar of a leg, or the dot of an act."""
    sealed = one.sealed
    act = sealed.kind == "act"
    cost = sealed.cost_microusd or 0
    height = LOW + (HIGH - LOW) * cost / dearest if dearest and not act else LOW
    figure = "" if act else f", {figures.span(sealed.seconds)}, {runs.dollars(sealed.cost_microusd)}"
    return Bar(
        leg=sealed.leg,
        colour=0 if act else colour(sealed.phase or ""),
        judge=sealed.kind == "judge",
        void=not act and sealed.ended_by not in {"reply", "handover"},
        act=act,
        x=_share(one.at, total),
        width=_share(one.length, total),
        foot=feet[ACTS if act else sealed.phase or ""],
        height=round(height, 1),
        said=f"{sealed.leg}: {telling.result_of(sealed)}{figure}",
        words=(_label(sealed), sealed.leg.partition("-")[0]),
    )


def _label(sealed: Receipt) -> str:
    """Write what stands above a bar where there is room: number, money, time; of an act, what it was."""
    number = sealed.leg.partition("-")[0]
    if sealed.kind == "act":
        return f"{number} {sealed.act}"
    money = runs.dollars(sealed.cost_microusd) if sealed.cost_microusd else ""
    return " ".join(filter(None, [number, money, figures.span(sealed.seconds)]))


def _labelled(bars: Sequence[Bar]) -> list[Bar]:
    """Give each bar the label that there is room for: in the picture, and beside the labels and bars of its lane.

    On a wide picture the number alone is tried where the whole label has no room.
    """
    lanes: dict[float, list[Bar]] = {}
    for bar in bars:
        lanes.setdefault(bar.foot, []).append(bar)
    labels: dict[str, tuple[Label | None, Label | None]] = {}
    for lane in lanes.values():
        free = dict.fromkeys((WIDE, NARROW), 0.0)
        for before, bar, after in zip([None, *lane], lane, [*lane[1:], None], strict=False):
            space = (
                before.x + before.width if before and not bar.act else 0.0,
                after.x if after and not bar.act else END,
            )
            long, short = bar.words
            wide = _label_at(bar, long, WIDE, space, free) or _label_at(bar, short, WIDE, space, free)
            labels[bar.leg] = wide, _label_at(bar, short, NARROW, space, free)
    return [msgspec.structs.replace(bar, long=labels[bar.leg][0], short=labels[bar.leg][1]) for bar in bars]


def _label_at(bar: Bar, text: str, width: int, space: tuple[float, float], free: dict[int, float]) -> Label | None:
    """Place a label in a picture of so many pixels, between its neighbours; `free` says from where its lane is free."""
    begin, length = bar.x * width / 100, len(text) * LETTER
    ends = begin + length > width
    begin = width - length if ends else begin
    least, most = max(free[width], space[0] * width / 100), space[1] * width / 100
    if begin < least or begin + length + LETTER > most:
        return None
    free[width] = begin + length + LETTER
    return Label(text=text, x=100.0 if ends else bar.x, ends=ends)


def _links(bars: Sequence[Bar]) -> list[Link]:
    """Pass the baton: from the end of each bar along its lane, then up or down to where the next one begins."""
    found = []
    for one, after in pairwise(bars):
        foot, end, goal = one.foot, one.x + one.width, after.foot
        if after.x > end:
            found.append(Link(x1=end, y1=foot, x2=after.x, y2=foot))
        if goal != foot:
            found.append(Link(x1=after.x, y1=foot, x2=after.x, y2=goal))
    return found

"""The picture of a run's legs: what is where, and that no label runs into another."""

from itertools import pairwise

from relay.report import timeline
from relay.report.timeline import LETTER, NARROW, WIDE, Bar
from tests import receipts

RELAY = receipts.relay()


def drawn(*events: receipts.Event) -> timeline.Timeline:
    """Draw what happened."""
    found = timeline.draw(RELAY, receipts.told(*events, plan=RELAY))
    assert found is not None
    return found


def leg(event: receipts.Event, seconds: float, microusd: int | None = 0) -> receipts.Event:
    """Say how long a leg took and what it cost."""
    return event | {"seconds": seconds, "cost_microusd": microusd}


def rounds(number: int) -> list[receipts.Event]:
    """Let a judge send the work back so many times, each time with another finding, and then approve."""
    told = []
    for at in range(number):
        told += [leg(receipts.work(), 300, 400_000), leg(receipts.judge("revise", blocking=[f"F{at}"]), 40, 90_000)]
    return [*told, leg(receipts.work(), 200, 100_000), leg(receipts.judge("approve"), 3)]


def test_a_run_without_a_leg_has_no_picture() -> None:
    assert timeline.draw(RELAY, ()) is None
    assert timeline.draw(RELAY, receipts.told(receipts.act("stop"), plan=RELAY)) is None


def test_legs_follow_one_another_inside_the_picture_and_each_is_seen() -> None:
    bars = drawn(*rounds(2), receipts.act("approve")).bars
    assert [bar.leg for bar in bars][:3] == ["01-implement", "02-review", "03-implement"]
    assert all(one.x + one.width <= after.x + 0.01 for one, after in pairwise(bars))
    assert bars[0].x == 0
    assert bars[-1].x + bars[-1].width <= 100.01
    assert min(bar.width for bar in bars) > 0.5


def test_the_longer_leg_is_wider_the_dearer_is_taller_and_one_of_unknown_cost_says_so() -> None:
    slow = leg(receipts.work(), 900, 100_000)
    first, second, third = drawn(slow, leg(receipts.judge("revise"), 90, 800_000), leg(receipts.work(), 5, None)).bars
    assert first.width > 5 * second.width > 5 * third.width
    assert second.height > first.height > third.height
    assert first.long is not None
    assert first.long.text == "01 $0.10 15 min"
    assert "cost unknown" in third.said


def test_phases_have_lanes_of_their_own_judges_are_hatched_and_what_came_to_nothing_is_hollow() -> None:
    found = drawn(leg(receipts.work("crash"), 9), leg(receipts.work(), 60), leg(receipts.judge("approve"), 30))
    assert [lane.name for lane in found.lanes] == ["implement", "review"]
    assert [(bar.judge, bar.void) for bar in found.bars] == [(False, True), (False, False), (True, False)]
    assert found.bars[0].foot == found.bars[1].foot != found.bars[2].foot
    assert found.bars[1].colour != found.bars[2].colour
    assert found.said.startswith("01-implement: crash")


def test_a_long_pause_is_drawn_short_and_named() -> None:
    late = leg(receipts.judge("approve"), 60) | {"started": "2026-11-29T09:00:00Z", "ended": "2026-11-29T09:01:00Z"}
    found = drawn(leg(receipts.work(), 600), late)
    [gap] = found.gaps
    assert gap.said == "6 h 58 min"
    assert gap.width < 10
    assert drawn(leg(receipts.work(), 600), leg(receipts.judge("approve"), 60)).gaps == ()


def test_a_clock_that_went_backward_moves_no_leg_before_another() -> None:
    early = leg(receipts.judge("approve"), 60) | {"started": "2026-11-28T09:00:00Z", "ended": "not a time"}
    first, second = drawn(leg(receipts.work(), 600), early).bars
    assert first.x + first.width <= second.x + 0.01


def test_labels_neither_touch_one_another_nor_leave_the_picture() -> None:
    for count in (1, 3, 9, 30):
        bars = drawn(*rounds(count)).bars
        for width, kind in ((WIDE, "long"), (NARROW, "short")):
            for foot in {bar.foot for bar in bars}:
                spans = [_span(bar, kind, width) for bar in bars if bar.foot == foot and getattr(bar, kind)]
                assert spans or count == 30, "some label fits where there is room"
                assert all(begin >= 0 and end <= width + 0.1 for begin, end in spans)
                assert all(one[1] < after[0] for one, after in pairwise(spans))


def test_no_label_lies_above_a_bar_that_is_not_its_own() -> None:
    for count in (1, 3, 9, 30, 60):
        bars = drawn(*rounds(count), receipts.act("approve")).bars
        for width, kind in ((WIDE, "long"), (NARROW, "short")):
            for bar in bars:
                if getattr(bar, kind) and not bar.act:
                    begin, end = _span(bar, kind, width)
                    others = [(one.x, one.x + one.width) for one in bars if one.foot == bar.foot and one is not bar]
                    assert all(end <= x * width / 100 or begin >= to * width / 100 for x, to in others), bar.leg


def test_a_bar_has_its_number_where_the_whole_label_has_no_room() -> None:
    bars = drawn(*rounds(9)).bars
    texts = [bar.long.text for bar in bars if bar.long is not None]
    assert "01" in texts
    assert len(texts) >= 9


def _span(bar: Bar, kind: str, width: int) -> tuple[float, float]:
    label = getattr(bar, kind)
    length, at = len(label.text) * LETTER, label.x * width / 100
    return (at - length, at) if label.ends else (at, at + length)


def test_a_phase_has_the_same_colour_in_every_picture() -> None:
    names = ["implement", "review", "acceptance", "plan", "plan-review"]
    assert len({timeline.colour(name) for name in names}) == len(names)
    assert timeline.colour("security") == timeline.colour("security") < timeline.COLOURS

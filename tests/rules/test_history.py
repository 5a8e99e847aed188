"""What a list of receipts says: heads, bases, turns, rows, money. What the plan makes of it is tested beside it."""

import pytest

from relay.rules import history
from relay.terms import Act, Receipt
from tests.receipts import (
    BASE,
    Event,
    act,
    judge,
    judge_ended,
    relay,
    told,
    work,
)

PLAN = relay()


def words(*events: Event) -> list[str]:
    """Return what is left standing, as the names of legs and acts."""
    return [receipt.leg for receipt in history.standing(told(*events))]


def test_a_go_takes_back_the_stop_before_it_and_itself() -> None:
    assert words(work(), act("stop"), act("go"), judge("approve")) == ["01-implement", "04-review"]


def test_what_was_extended_while_stopped_stays() -> None:
    assert words(act("stop"), act("extend", usd="1"), act("go")) == ["02-extend"]


def test_a_go_without_a_stop_stays_and_so_does_a_stop_without_a_go() -> None:
    assert words(work("timeout"), act("go")) == ["01-implement", "02-go"]
    assert words(work(), act("stop"), act("reject", back_to="implement"), act("go")) == [
        "01-implement",
        "02-stop",
        "03-reject",
        "04-go",
    ]


def test_each_go_takes_back_one_stop() -> None:
    assert words(act("stop"), act("stop"), act("go")) == ["01-stop"]
    assert words(act("stop"), act("go"), act("go")) == ["03-go"]
    assert words(act("stop"), act("stop"), act("go"), act("go")) == []


def test_the_head_is_the_newest_work_that_is_not_void_or_what_a_rebase_made() -> None:
    assert history.head(PLAN, ()) == BASE
    assert history.head(PLAN, told(work("breach"))) == BASE
    assert history.head(PLAN, told(work(), judge("revise"), work("crash"), work("breach"))) == f"{3:040x}"
    assert history.head(PLAN, told(work(), act("approve"), act("rebase", onto="x"))) == f"{3:040x}"


def test_only_a_rebase_changes_the_base() -> None:
    assert history.base(PLAN, told(work(), judge("approve"), act("approve"))) == BASE
    assert history.base(PLAN, told(work(), act("rebase", onto="x"), work())) == "f" * 40


def test_the_newest_leg_is_found_behind_acts_whatever_became_of_it() -> None:
    found = history.last_leg(told(work(), judge_ended("breach"), act("answer"), act("stop")))
    assert found is not None
    assert found.leg == "02-review"
    assert history.last_leg(told(act("stop"))) is None


def test_a_turn_counts_legs_that_ended_by_a_reply_only() -> None:
    receipts = told(work("crash"), work(), judge("revise"), work("handover"), work("no-reply"), work("breach"), work())
    assert (history.turn(receipts, "implement"), history.turn(receipts, "review")) == (3, 2)
    assert history.turn((), "implement") == 1


@pytest.mark.parametrize("renewing", ["answer", "extend", "reject", "rebase", "go"])
def test_what_a_person_does_or_a_new_base_renews_the_counters(renewing: Act) -> None:
    before, after = work(changed=False), work("crash")
    receipts = told(before, act(renewing, back_to="implement", onto="x"), after)
    assert [leg.leg for leg in history.legs_since_renewal(receipts, "implement")] == ["03-implement"]


@pytest.mark.parametrize("quiet", ["offer", "stop", "approve", "ship"])
def test_other_acts_renew_nothing(quiet: Act) -> None:
    receipts = told(work("crash"), act(quiet, phase="implement", outcome="failed"), work("crash"))
    assert [leg.leg for leg in history.legs_since_renewal(receipts, "implement")] == ["01-implement", "03-implement"]


def test_counters_belong_to_a_phase_and_a_round() -> None:
    receipts = told(work(), judge_ended("crash"), judge("revise"), work("crash"), work(), judge_ended("crash"))
    assert [leg.leg for leg in history.legs_since_renewal(receipts, "implement")] == ["04-implement", "05-implement"]
    assert [leg.leg for leg in history.legs_since_renewal(receipts, "review")] == ["06-review"]


def test_a_row_of_cut_legs_is_broken_by_anything_else() -> None:
    assert history.in_a_row(told(work("crash"), work("interrupted")), history.CUT) == 2
    assert history.in_a_row(told(work("crash"), act("answer"), work("crash")), history.CUT) == 1
    assert history.in_a_row(told(work("crash"), work()), history.CUT) == 0
    assert history.in_a_row((), history.CUT) == 0


@pytest.mark.parametrize(
    ("events", "moved"),
    [
        ([work()], True),
        ([work(changed=False)], False),
        ([work(), judge("revise"), work(changed=False)], False),
        ([work("interrupted"), work(changed=False)], True),
        ([work("no-reply"), work(changed=False)], True),
        ([work("handover"), work("crash", changed=False), work(changed=False)], True),
        ([work("timeout"), act("go"), work(changed=False)], True),
        ([work("crash"), act("stop"), act("go"), work(changed=False)], True),
        ([work("crash"), act("offer", phase="implement"), work(changed=False)], True),
        ([work(), work(changed=False)], False),
        ([work("breach"), act("go"), work(changed=False)], False),
        ([work("crash"), work("breach"), act("go"), work(changed=False)], True),
        ([work("crash"), act("reject", back_to="implement"), work(changed=False)], False),
        ([work("crash"), act("rebase", onto="x", conflict="a"), work(changed=False)], False),
    ],
)
def test_progress_is_measured_from_the_first_leg_that_led_here(events: list[Event], moved: bool) -> None:  # noqa: FBT001
    assert history.progressed(told(*events)) is moved


def test_work_that_was_taken_back_is_no_progress() -> None:
    back = {**work(), "moves": False, "tree": "tree of the base"}
    assert not history.progressed(told(work("interrupted"), back))


def test_revisions_are_counted_since_the_task_itself_changed() -> None:
    receipts = told(work(), judge("revise"), work(), judge("revise", asks=True), judge("approve"), judge("revise"))
    assert [leg.leg for leg in history.revisions(receipts, "review")] == ["02-review", "06-review"]
    rejected = told(act("reject", back_to="implement"), work(), judge("revise"), before=receipts)
    assert [leg.leg for leg in history.revisions(rejected, "review")] == ["09-review"]
    assert history.revisions(receipts, "acceptance") == []


def test_rounds_are_granted_by_an_answer_to_a_revision_and_by_what_extend_says() -> None:
    assert history.granted(told(work(), judge("revise"), act("answer")), "review") == 1
    assert history.granted(told(work(), judge("revise"), act("extend", rounds="3")), "review") == 3
    assert history.granted(told(work(), judge("revise"), act("extend", usd="3")), "review") == 0
    assert history.granted(told(work(), judge("revise", asks=True), act("answer")), "review") == 0
    assert history.granted(told(work(), judge("revise"), act("answer")), "acceptance") == 0
    assert history.granted(told(work(status="blocked"), act("answer")), "review") == 0
    lost = told(work(), judge("revise"), act("answer"), act("reject", back_to="implement"))
    assert history.granted(lost, "review") == 0


def test_a_finding_is_stuck_only_if_it_blocked_in_the_last_three_verdicts() -> None:
    def stuck(*blocking: list[str]) -> tuple[str, ...]:
        events = [event for ids in blocking for event in (work(), judge("revise", blocking=ids))]
        return history.stalemate(told(*events), "review")

    assert stuck(["F1"], ["F1"]) == ()
    assert stuck(["F1", "F2"], ["F2", "F1"], ["F1", "F3"]) == ("F1",)
    assert stuck(["F1"], ["F2"], ["F1"]) == ()
    assert stuck(["F1"], ["F1"], ["F1"], ["F2"]) == ()


def test_all_legs_are_paid_for_void_ones_too_and_what_people_added_is_summed() -> None:
    receipts = told(
        work("breach", cost_microusd=5, seconds=60.0),
        act("extend", usd="1.5"),
        judge("revise", cost_microusd=7, seconds=30.0),
        act("extend", usd="2", minutes="10"),
    )
    assert history.spent(receipts) == {"usd": 0.000012, "minutes": 1.5, "tokens": 0, "turns": 0}
    assert (history.extended(receipts, "usd"), history.extended(receipts, "minutes")) == (3.5, 10)


def test_the_offer_that_waits_is_the_newest_act_that_says_something() -> None:
    offered = told(work(), act("offer", phase="review"))
    assert history.offer(offered) is offered[-1]
    assert history.offer(told(act("extend", usd="1"), act("stop"), act("go"), before=offered)) is offered[-1]
    assert history.offer(told(act("reject", back_to="implement"), before=offered)) is None
    assert history.offer(told(act("stop"), before=offered)) is None
    assert history.offer(()) is None


def _trees(*trees: str) -> tuple[Receipt, ...]:
    """Make receipts of work and of a `revise` on each of these trees, one after the other."""
    events = [event for tree in trees for event in (work(tree=tree), judge("revise", blocking=["F1"], tree=tree))]
    return told(*events)


@pytest.mark.parametrize(
    ("trees", "leg"),
    [
        (("a", "b", "a"), "02-review"),
        (("c", "a", "b", "b", "a"), "04-review"),
        (("a", "b", "c"), ""),
        (("a", "a"), ""),
        (("a", "b", "b"), ""),
        (("a",), ""),
    ],
)
def test_a_tree_has_returned_where_it_was_sent_back_before_with_another_in_between(
    trees: tuple[str, ...], leg: str
) -> None:
    assert history.returned(_trees(*trees), "review") == leg


def test_a_tree_that_was_sent_back_before_a_person_looked_has_not_returned() -> None:
    looked = told(
        *(work(tree="a"), judge("revise", tree="a"), work(tree="b"), judge("revise", tree="b")),
        *(act("answer"), work(tree="a"), judge("revise", tree="a")),
    )
    assert history.returned(looked, "review") == ""

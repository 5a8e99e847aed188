"""What comes next after a leg: the table of DESIGN 4b, row by row, each a sentence (acts: test_plan_acts.py)."""

import pytest

from relay.errors import Exit
from relay.rules import plan as rules
from relay.terms import EndedBy, Plan
from tests.receipts import (
    BASE,
    FAILURES,
    IMPLEMENT,
    PLAN,
    PLAN_REVIEW,
    REVIEW,
    Event,
    check,
    criterion,
    judge,
    judge_ended,
    next_after,
    phase,
    relay,
    told,
    work,
)

IDLE = work(changed=False)
RED = work(checks=(check(1, base_exit=0),))


def ordered(*events: Event, plan: Plan | None = None) -> tuple[str, int]:
    """Return the phase and the round of the leg that is ordered; it must be one."""
    step = next_after(*events, plan=plan)
    assert isinstance(step, rules.Go), step
    return step.phase, step.round


def asked(*events: Event, plan: Plan | None = None) -> str:
    """Return the reason why a person is needed; one must be."""
    step = next_after(*events, plan=plan)
    assert isinstance(step, rules.Human), step
    assert step.leg
    assert step.text
    return step.reason


def test_a_run_begins_with_its_first_phase_on_its_base() -> None:
    step = next_after()
    assert step == rules.Go(
        phase="implement", round=1, turn=1, start=BASE, base=BASE, reads=(), because="the run begins"
    )


# --- work -------------------------------------------------------------------------------------------------------------


def test_work_that_changed_the_tree_goes_to_the_next_phase() -> None:
    assert ordered(work()) == ("review", 1)


def test_work_that_changed_nothing_goes_on_where_every_criterion_holds() -> None:
    assert ordered(work(changed=False, criteria=(criterion(met=True),))) == ("review", 1)
    assert ordered(work(changed=False, criteria=(criterion(met=True), criterion(met=False)))) == ("implement", 1)


def test_work_that_changed_nothing_runs_again_twice_at_most_then_a_person_is_asked() -> None:
    assert ordered(IDLE) == ("implement", 1)
    assert ordered(IDLE, IDLE) == ("implement", 1)
    assert asked(IDLE, IDLE, IDLE) == "no-change"


def test_a_check_newly_red_sends_work_back_twice_at_most_then_a_person_is_asked() -> None:
    assert ordered(RED) == ("implement", 1)
    assert ordered(RED, RED) == ("implement", 1)
    assert asked(RED, RED, RED) == "check-red"


def test_a_newly_red_check_weighs_more_than_criteria_that_hold() -> None:
    assert ordered(work(checks=(check(1, base_exit=0),), criteria=(criterion(met=True),))) == ("implement", 1)


def test_a_check_that_was_red_at_the_base_does_not_send_work_back() -> None:
    assert ordered(work(checks=(check(1, base_exit=1), check(0)))) == ("review", 1)


def test_what_contradicts_done_is_counted_together_whatever_it_is() -> None:
    assert ordered(IDLE, RED) == ("implement", 1)
    assert asked(IDLE, work("no-reply"), RED) == "check-red"


def test_work_without_a_reply_that_fits_runs_again_twice_at_most() -> None:
    silent = work("no-reply")
    assert ordered(silent, silent) == ("implement", 1)
    assert asked(silent, silent, silent) == "no-reply"


def test_work_that_a_leg_with_a_torn_reply_had_done_counts_for_the_leg_that_says_so() -> None:
    assert ordered(work("no-reply"), IDLE) == ("review", 1)


def test_trusted_work_goes_on_whatever_the_checks_say() -> None:
    trusting = relay(phase("implement", "work", done="trust"), REVIEW)
    assert ordered(IDLE, plan=trusting) == ("review", 1)
    assert ordered(RED, plan=trusting) == ("review", 1)
    assert ordered(work("no-reply"), plan=trusting) == ("implement", 1)


def test_a_plan_phase_has_to_make_a_document_not_a_change() -> None:
    planned = relay(PLAN, PLAN_REVIEW, IMPLEMENT, REVIEW)
    silent, written = work(name="plan", changed=False), work(name="plan", changed=False, document=True)
    assert ordered(silent, plan=planned) == ("plan", 1)
    assert asked(silent, silent, silent, plan=planned) == "no-change"
    assert ordered(written, plan=planned) == ("plan-review", 1)


def test_blocked_work_asks_a_person() -> None:
    assert asked(work(status="blocked")) == "question"
    assert asked(work(status="blocked", changed=False)) == "question"


def test_a_handover_runs_the_phase_again_from_its_commit_up_to_max_legs() -> None:
    short = relay(phase("implement", "work", max_legs=2), REVIEW)
    step = next_after(work("handover"), plan=short)
    assert isinstance(step, rules.Go)
    assert (step.phase, step.start, step.reads) == ("implement", f"{1:040x}", ("01-implement",))
    assert asked(work("handover"), work("handover"), plan=short) == "max-legs"


def test_what_a_handed_over_or_cut_short_leg_did_counts_for_the_leg_that_ends_it() -> None:
    assert ordered(work("handover"), IDLE) == ("review", 1)
    assert ordered(work("interrupted"), work("crash", changed=False), IDLE) == ("review", 1)
    assert ordered(work("crash", changed=False), IDLE) == ("implement", 1)
    assert ordered(work(), judge("revise"), IDLE) == ("implement", 2)


# --- any leg ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ended_by", ["interrupted", "crash"])
def test_a_leg_cut_short_runs_again_from_what_it_left_and_three_in_a_row_ask_a_person(ended_by: EndedBy) -> None:
    cut = work(ended_by)
    step = next_after(cut, cut)
    assert isinstance(step, rules.Go)
    assert (step.phase, step.start, step.reads) == ("implement", f"{2:040x}", ("02-implement",))
    assert asked(cut, cut, cut) == ended_by
    assert ordered(work(), judge_ended(ended_by)) == ("review", 1)
    assert asked(work(), *[judge_ended(ended_by)] * 3) == ended_by


def test_legs_cut_short_are_counted_in_a_row_only() -> None:
    assert ordered(work("crash"), work("interrupted"), IDLE, work("crash"), work("crash")) == ("implement", 1)
    assert asked(work("interrupted"), work("interrupted"), work("crash")) == "crash"


def test_used_up_quota_waits_until_the_reset_then_runs_the_same_phase() -> None:
    step = next_after(work("quota", until="2026-11-29T06:00:00Z"))
    assert isinstance(step, rules.Wait)
    assert (step.until, step.go.phase, step.go.start) == ("2026-11-29T06:00:00Z", "implement", f"{1:040x}")


@pytest.mark.parametrize(
    ("until", "waits_for"),
    [
        ("2026-11-29T07:00:00+01:00", "2026-11-29T06:00:00Z"),
        (None, "2026-11-29T02:16:30Z"),
        ("tomorrow", "2026-11-29T02:16:30Z"),
        ("2026-11-29T06:00:00", "2026-11-29T02:16:30Z"),
        ("2026-11-28T06:00:00Z", "2026-11-29T02:02:30Z"),
        ("9999-12-31T23:59:59-12:00", "2026-11-29T02:16:30Z"),
    ],
)
def test_a_reset_that_is_unknown_or_over_is_waited_for_all_the_same(until: str | None, waits_for: str) -> None:
    step = next_after(work("quota", until=until))
    assert isinstance(step, rules.Wait)
    assert step.until == waits_for


@pytest.mark.parametrize("ended_by", FAILURES)
def test_a_failure_of_agent_or_service_asks_a_person_with_the_reason(ended_by: EndedBy) -> None:
    assert asked(work(ended_by)) == ended_by
    assert asked(work(), judge_ended(ended_by)) == ended_by


def test_the_exit_code_tells_a_question_from_an_agent_from_a_breach() -> None:
    assert rules.EXIT["question"] == rules.EXIT["cap"] == rules.EXIT["setup"] == rules.EXIT["budget"] == Exit.HUMAN
    assert rules.EXIT["overload"] == rules.EXIT["crash"] == rules.EXIT["timeout"] == rules.EXIT["auth"] == Exit.AGENT
    assert rules.EXIT["breach"] == Exit.BREACH


def test_what_failed_or_was_breached_is_said_in_the_words_of_the_receipt() -> None:
    failed = next_after(work("setup", problem="`npm ci` exited 1"))
    breached = next_after(work("breach", breaches=("refs/heads/main changed", "config changed")))
    assert isinstance(failed, rules.Human)
    assert isinstance(breached, rules.Human)
    assert failed.text == "`npm ci` exited 1"
    assert breached.text == "refs/heads/main changed; config changed"


def test_a_question_of_any_leg_is_a_persons_to_answer_whatever_else_it_says() -> None:
    assert asked(work(asks=True)) == "question"
    assert asked(work(), judge("approve", asks=True)) == "question"
    assert asked(work(), judge("revise", asks=True)) == "question"
    assert asked(work(), judge("blocked")) == "question"


# --- judges -----------------------------------------------------------------------------------------------------------


def test_an_approval_goes_to_the_next_phase_and_the_last_one_accepts() -> None:
    assert ordered(work(), judge("approve")) == ("acceptance", 1)
    assert next_after(work(), judge("approve"), judge("approve", "acceptance")) == rules.Accepted(leg="03-acceptance")


def test_a_relay_of_work_alone_is_accepted_when_the_work_is_done() -> None:
    assert next_after(work(), plan=relay(IMPLEMENT)) == rules.Accepted(leg="01-implement")


def test_a_revision_goes_back_to_work_in_the_next_round_and_through_every_phase_between_again() -> None:
    story = [work(), judge("revise", blocking=["F1"])]
    assert ordered(*story) == ("implement", 2)
    story += [work(), judge("approve"), judge("revise", "acceptance", blocking=["F2"])]
    assert ordered(*story) == ("implement", 3)
    assert ordered(*story, work()) == ("review", 3)
    assert ordered(*story, work(), judge("approve")) == ("acceptance", 3)


def test_a_judge_sends_back_where_its_phase_says_or_to_the_nearest_work_before_it() -> None:
    planned = relay(PLAN, IMPLEMENT, phase("review", "judge", "implement"), phase("last", "judge", back_to="plan"))
    done = [work(name="plan", document=True), work()]
    assert ordered(*done, judge("revise"), plan=planned) == ("implement", 2)
    assert ordered(*done, judge("approve"), judge("revise", "last"), plan=planned) == ("plan", 2)


def test_the_last_round_ends_at_a_person() -> None:
    rounds = [event for number in range(3) for event in (work(), judge("revise", blocking=[f"F{number}"]))]
    assert ordered(*rounds[:4]) == ("implement", 3)
    assert asked(*rounds) == "cap"


def test_a_finding_that_survives_two_repairs_is_a_stalemate() -> None:
    patient = relay(IMPLEMENT, phase("review", "judge", "implement", back_to="implement", rounds=9))
    stuck = [work(), judge("revise", blocking=["F1", "F2"]), work(), judge("revise", blocking=["F2"])]
    assert ordered(*stuck, plan=patient) == ("implement", 3)
    assert asked(*stuck, work(), judge("revise", blocking=["F2", "F3"]), plan=patient) == "stalemate"
    assert ordered(*stuck, work(), judge("revise", blocking=["F3"]), plan=patient) == ("implement", 4)


def test_an_inconclusive_judge_runs_once_more_then_a_person_is_asked() -> None:
    assert ordered(work(), judge("inconclusive")) == ("review", 1)
    assert ordered(work(), judge_ended("no-reply")) == ("review", 1)
    assert asked(work(), judge("inconclusive"), judge_ended("no-reply")) == "inconclusive"
    assert ordered(work(), judge("inconclusive"), judge("approve")) == ("acceptance", 1)


def test_a_judge_that_was_cut_short_or_had_no_quota_has_not_used_up_its_second_look() -> None:
    cut = [judge_ended("crash"), judge_ended("quota")]
    assert ordered(work(), *cut, judge("inconclusive")) == ("review", 1)
    assert asked(work(), *cut, judge("inconclusive"), *cut, judge("inconclusive")) == "inconclusive"


def test_each_round_has_its_own_counters() -> None:
    story = [IDLE, IDLE, work(), judge("inconclusive"), judge("revise")]
    assert ordered(*story, IDLE, IDLE) == ("implement", 2)
    assert ordered(*story, work(), judge("inconclusive")) == ("review", 2)


# --- what is ordered --------------------------------------------------------------------------------------------------


def test_a_leg_starts_from_the_newest_work_that_is_not_void() -> None:
    step = rules.next_leg(relay(), told(work(), judge("revise"), work("crash"), work("breach"), work("interrupted")))
    assert isinstance(step, rules.Go)
    assert (step.start, step.turn) == (f"{5:040x}", 2)


def test_work_reads_what_led_to_it_and_a_judge_only_what_its_phase_says() -> None:
    sent_back, reviewing = next_after(work(), judge("revise")), next_after(work(), judge("revise"), work())
    assert isinstance(sent_back, rules.Go)
    assert isinstance(reviewing, rules.Go)
    assert sent_back.reads == ("02-review",)
    assert reviewing.reads == ("03-implement",)


def test_a_phase_that_must_be_read_and_never_ran_is_named_so_that_the_gate_refuses() -> None:
    step = rules.go(relay(), (), "review", 1, "")
    assert step.reads == ("?-implement",)

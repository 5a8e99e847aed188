"""What comes next after an act: of a person, or of Relay towards the outside. The lower half of DESIGN 4b."""

import pytest

from relay.rules import plan as rules
from relay.terms import Budget, EndedBy, Plan, Usage
from tests.receipts import (
    FAILURES,
    IMPLEMENT,
    PLAN,
    PLAN_REVIEW,
    REVIEW,
    Event,
    act,
    judge,
    judge_ended,
    next_after,
    phase,
    relay,
    told,
    work,
)

IDLE = work(changed=False)
ACCEPTED = (work(), judge("approve"), judge("approve", "acceptance"))
CAPPED = tuple(event for number in range(3) for event in (work(), judge("revise", blocking=[f"F{number}"])))


def ordered(*events: Event, plan: Plan | None = None) -> tuple[str, int]:
    """Return the phase and the round of the leg that is ordered; it must be one."""
    step = next_after(*events, plan=plan)
    assert isinstance(step, rules.Go), step
    return step.phase, step.round


def asked(*events: Event, plan: Plan | None = None) -> str:
    """Return the reason why a person is needed; one must be."""
    step = next_after(*events, plan=plan)
    assert isinstance(step, rules.Human), step
    return step.reason


# --- answer -----------------------------------------------------------------------------------------------------------


def test_an_answer_runs_the_phase_again_that_asked() -> None:
    assert ordered(work(status="blocked"), act("answer")) == ("implement", 1)
    assert ordered(work(), judge("blocked"), act("answer")) == ("review", 1)
    assert ordered(work(), judge("approve", asks=True), act("answer")) == ("review", 1)


def test_a_judge_that_asks_and_wants_a_revision_is_answered_and_judges_again() -> None:
    asking = [work(), judge("revise", asks=True), act("answer")]
    assert ordered(*asking) == ("review", 1)
    assert ordered(*asking, judge("revise")) == ("implement", 2)
    assert asked(*asking, judge("revise"), *CAPPED[2:]) == "cap"


def test_an_answer_at_the_cap_grants_one_round_and_no_more() -> None:
    assert ordered(*CAPPED, act("answer")) == ("implement", 4)
    assert asked(*CAPPED, act("answer"), work(), judge("revise", blocking=["F9"])) == "cap"


def test_an_answer_to_a_stalemate_gives_the_finding_two_more_repairs() -> None:
    patient = relay(IMPLEMENT, phase("review", "judge", "implement", back_to="implement", rounds=9))
    again = (work(), judge("revise", blocking=["F1"]))
    assert asked(*again * 3, plan=patient) == "stalemate"
    assert ordered(*again * 3, act("answer"), *again * 2, plan=patient) == ("implement", 6)
    assert asked(*again * 3, act("answer"), *again * 3, plan=patient) == "stalemate"


def test_an_answer_renews_what_was_counted() -> None:
    assert ordered(IDLE, IDLE, IDLE, act("answer"), IDLE) == ("implement", 1)
    assert ordered(*[work("crash")] * 3, act("answer"), work("crash")) == ("implement", 1)
    assert ordered(work(), *[judge("inconclusive")] * 2, act("answer"), judge("inconclusive")) == ("review", 1)


# --- reject and rebase ------------------------------------------------------------------------------------------------


def test_a_rejection_goes_back_to_work_with_fresh_rounds() -> None:
    assert ordered(*ACCEPTED, act("reject", back_to="implement")) == ("implement", 2)
    assert ordered(*CAPPED, act("reject", back_to="implement"), *CAPPED[:4]) == ("implement", 6)


def test_a_rejection_that_closes_ends_the_run() -> None:
    assert next_after(*ACCEPTED, act("reject", close="yes")) == rules.End(outcome="not-accepted")


@pytest.mark.parametrize(
    ("plan", "target"),
    [(relay(), "implement"), (relay(IMPLEMENT), "implement"), (relay(PLAN, PLAN_REVIEW, IMPLEMENT), "implement")],
)
def test_a_rejection_finds_work_to_go_back_to_in_every_relay(plan: Plan, target: str) -> None:
    assert rules.back_to(plan, plan.phases[-1]) == target


def test_a_moved_base_goes_to_the_first_judge_after_the_work_on_the_new_base() -> None:
    step = next_after(*ACCEPTED, act("approve"), act("rebase", onto="f" * 40))
    assert isinstance(step, rules.Go)
    assert (step.phase, step.round, step.base, step.start) == ("review", 2, "f" * 40, f"{5:040x}")


def test_a_moved_base_that_conflicts_goes_to_the_work_phase() -> None:
    assert ordered(*ACCEPTED, act("approve"), act("rebase", onto="f" * 40, conflict="a.py")) == ("implement", 2)


def test_a_moved_base_is_worked_on_again_where_no_judge_could_look_at_it() -> None:
    step = next_after(work(), act("approve"), act("rebase", onto="f" * 40), plan=relay(IMPLEMENT))
    assert isinstance(step, rules.Go)
    assert (step.phase, step.round, step.base) == ("implement", 2, "f" * 40)


# --- approve and ship -------------------------------------------------------------------------------------------------


def test_an_approval_ships() -> None:
    assert next_after(*ACCEPTED, act("approve")) == rules.ShipIt(approval="04-approve")


@pytest.mark.parametrize("outcome", ["shipped", "proposed"])
def test_a_shipment_that_went_out_ends_the_run(outcome: str) -> None:
    step = next_after(*ACCEPTED, act("approve"), act("ship", outcome=outcome))
    assert isinstance(step, rules.End)
    assert step.outcome == outcome


@pytest.mark.parametrize("outcome", ["failed", "unconfirmed"])
def test_a_shipment_that_failed_wants_a_person_and_go_tries_it_again(outcome: str) -> None:
    failed = [*ACCEPTED, act("approve"), act("ship", outcome=outcome, why="the hook said no")]
    step = next_after(*failed)
    assert step == rules.Human(reason="ship", leg="05-ship", text="the hook said no")
    assert next_after(*failed, act("go")) == rules.ShipIt(approval="04-approve")
    assert next_after(*failed, act("approve")) == rules.ShipIt(approval="06-approve")


def test_a_shipment_that_was_cut_short_before_it_went_out_is_sent_again_and_not_for_ever() -> None:
    cut = [*ACCEPTED, act("approve"), act("ship", outcome="interrupted", why="it was cut short")]
    assert next_after(*cut) == rules.ShipIt(approval="04-approve")
    cut += [act("ship", outcome="interrupted", why="it was cut short")] * 2
    assert next_after(*cut) == rules.Human(reason="ship", leg="07-ship", text="it was cut short")
    assert next_after(*cut, act("approve")) == rules.ShipIt(approval="08-approve")


# --- stop and go ------------------------------------------------------------------------------------------------------


def test_a_stopped_run_goes_on_where_it_was_once_somebody_says_go() -> None:
    assert next_after(work(), act("stop")) == rules.End(outcome="stopped")
    assert ordered(work(), act("stop"), act("go")) == ("review", 1)
    assert next_after(*ACCEPTED, act("stop"), act("go")) == rules.Accepted(leg="03-acceptance")


def test_stopping_and_going_on_renews_no_counter() -> None:
    paused = [act("stop"), act("go")]
    assert asked(IDLE, *paused, IDLE, *paused, IDLE) == "no-change"
    assert asked(work("crash"), *paused, work("crash"), *paused, work("crash"), *paused) == "crash"


def test_a_stopped_run_that_is_given_more_goes_on_with_more() -> None:
    assert next_after(work(), act("stop"), act("extend", minutes="5")) == rules.End(outcome="stopped")
    assert ordered(work(), act("stop"), act("extend", minutes="5"), act("go")) == ("review", 1)
    assert ordered(*CAPPED, act("stop"), act("extend", rounds="1"), act("go")) == ("implement", 4)


@pytest.mark.parametrize("ended_by", ["crash", *FAILURES])
def test_go_after_a_failure_runs_the_same_phase_with_fresh_counters(ended_by: EndedBy) -> None:
    often = 3 if ended_by == "crash" else 1
    assert ordered(*[work(ended_by)] * often, act("go")) == ("implement", 1)
    assert ordered(work(), *[judge_ended(ended_by)] * often, act("go")) == ("review", 1)
    assert ordered(work(), *[judge_ended(ended_by)] * often, act("go"), judge_ended("crash")) == ("review", 1)


def test_go_after_a_breach_starts_afresh_from_where_the_void_leg_started() -> None:
    step = next_after(work(), judge("revise"), work("breach"), act("go"))
    assert isinstance(step, rules.Go)
    assert (step.phase, step.start, step.reads) == ("implement", f"{1:040x}", ("02-review",))


def test_go_answers_no_question_and_grants_no_round() -> None:
    assert asked(work(status="blocked"), act("go")) == "question"
    assert asked(*CAPPED, act("go")) == "cap"
    assert asked(*(work(), judge("revise", blocking=["F1"])) * 3, act("go")) == "stalemate"


def test_go_after_an_answer_or_an_approval_changes_nothing() -> None:
    assert ordered(*CAPPED, act("answer"), act("go")) == ("implement", 4)
    assert next_after(*ACCEPTED, act("approve"), act("go")) == rules.ShipIt(approval="04-approve")


# --- offer ------------------------------------------------------------------------------------------------------------


def test_an_offered_leg_waits_for_a_person_and_is_then_taken_in_its_round() -> None:
    story = [work(), judge("revise"), act("offer", phase="implement", reply="/somewhere")]
    assert asked(*story) == "offer"
    taken = rules.taken(relay(), told(*story))
    assert (taken.phase, taken.round, taken.offer, taken.reads) == ("implement", 2, "03-offer", ("02-review",))


def test_an_offer_outlasts_what_is_granted_or_paused_meanwhile() -> None:
    offered = [work(), act("offer", phase="review", reply="/somewhere")]
    for meanwhile in ([act("extend", minutes="5")], [act("stop"), act("go")], [act("extend", usd="1"), act("go")]):
        assert asked(*offered, *meanwhile) == "offer"
        assert rules.taken(relay(), told(*offered, *meanwhile)).offer == "02-offer"


def test_nothing_is_taken_where_nothing_is_offered() -> None:
    with pytest.raises(LookupError):
        rules.taken(relay(), told(work()))


# --- extend and the budget --------------------------------------------------------------------------------------------

DEAR = relay(budget=Budget(usd=4, minutes=60, reserve=0.25))


def test_more_rounds_lift_a_cap_by_as_many() -> None:
    more = [*CAPPED, act("extend", rounds="2")]
    assert ordered(*more) == ("implement", 4)
    assert ordered(*more, work(), judge("revise", blocking=["F8"])) == ("implement", 5)
    assert asked(*more, *CAPPED[:2], work(), judge("revise", blocking=["F9"])) == "cap"
    assert asked(*CAPPED, act("extend", minutes="30")) == "cap"


def test_work_leaves_the_reserve_to_the_judges() -> None:
    spent = work(cost_microusd=3_000_000)
    assert ordered(spent, plan=DEAR) == ("review", 1)
    assert asked(spent, judge("revise"), plan=DEAR) == "budget"
    left = [rules.remaining(DEAR, told(spent), phase) for phase in ("review", "implement")]
    assert [(one["usd"], one["minutes"], one["tokens"]) for one in left] == [(1.0, 60.0, None), (0.0, 45.0, None)]


def test_a_used_up_budget_wants_a_person_who_raises_it_and_go_alone_does_not() -> None:
    spent = [work(seconds=3600.0)]
    assert asked(*spent, plan=DEAR) == "budget"
    assert asked(*spent, act("go"), plan=DEAR) == "budget"
    assert ordered(*spent, act("extend", minutes="1"), plan=DEAR) == ("review", 1)


@pytest.mark.parametrize(("name", "cap"), [("tokens", 1000), ("turns", 8)])
def test_tokens_and_turns_of_all_legs_count_together(name: str, cap: int) -> None:
    bounded = relay(budget=Budget(**{name: cap}, reserve=0.25))
    used = Usage(input=700, output=50, turns=6)
    assert asked(work(usage=used), judge("revise"), plan=bounded) == "budget"
    assert ordered(work(usage=used), plan=bounded) == ("review", 1)
    assert ordered(work(usage=used), judge("revise"), act("extend", **{name: "100"}), plan=bounded) == ("implement", 2)


def test_a_used_up_budget_is_not_waited_for() -> None:
    assert asked(work("quota", until="2026-11-29T06:00:00Z", cost_microusd=5_000_000), plan=DEAR) == "budget"


def test_an_accepted_run_needs_no_budget_to_be_shipped() -> None:
    spent = [work(seconds=9000.0), judge("approve"), judge("approve", "acceptance")]
    assert next_after(*spent, plan=DEAR) == rules.Accepted(leg="03-acceptance")


# --- who goes on ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("story", "receiver"),
    [
        ([work()], "review"),
        ([work("quota")], "implement"),
        ([work("timeout")], "implement"),
        ([work(), judge("revise")], "implement"),
        ([*CAPPED], "implement"),
        ([work(), judge("revise", asks=True)], "review"),
        ([work(), judge_ended("breach")], "review"),
        ([work(seconds=9000.0)], "review"),
        ([*ACCEPTED], None),
    ],
)
def test_the_receiver_is_the_phase_that_goes_on_once_nothing_stands_in_the_way(
    story: list[Event], receiver: str | None
) -> None:
    assert rules.receiver(DEAR, told(*story, plan=DEAR)) == receiver


def test_how_a_run_stands_is_one_word_and_says_unchecked_where_nothing_could_check_it() -> None:
    plan = relay(IMPLEMENT, REVIEW)
    stands = [rules.outcome(next_after(*story, plan=plan)) for story in ([], [work("quota")], [IDLE] * 3)]
    assert stands == ["open", "waiting", "needs-human"]
    accepted = next_after(work(), judge("approve"), plan=plan)
    assert rules.standing(plan, accepted) == "accepted"
    assert rules.standing(relay(unchecked=True), accepted) == "accepted (unchecked)"
    assert rules.standing(relay(unchecked=True), next_after()) == "open"


def test_a_base_that_keeps_moving_under_a_run_that_approves_itself_asks_a_person() -> None:
    itself = act("approve") | {"by": "relay, as ship.approval says"}
    cycle = (itself, act("rebase"), judge("approve"), judge("approve", "acceptance"))
    assert ordered(*ACCEPTED, *cycle * 2, itself, act("rebase"))[0] == "review"
    story = (*ACCEPTED, *cycle * 3, itself, act("rebase"))
    assert asked(*story) == "base"
    assert ordered(*story, act("go"))[0] == "review"

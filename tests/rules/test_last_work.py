"""A relay that ends with work: no judge follows, so the commands of the criteria decide whether it is done."""

from relay.rules import plan as rules
from relay.rules.plan import Accepted, Go, Human
from tests.receipts import IMPLEMENT, REVIEW, criterion, judge, next_after, phase, relay, work

ALONE = relay(IMPLEMENT)
HALF = work(criteria=(criterion(met=True), criterion(met=False)))
WHOLE = work(criteria=(criterion(met=True),))


def test_work_at_the_end_runs_again_twice_at_most_until_every_criterion_with_a_command_holds() -> None:
    assert next_after(WHOLE, plan=ALONE) == Accepted(leg="01-implement")
    again = next_after(HALF, HALF, plan=ALONE)
    assert isinstance(again, Go)
    assert (again.phase, again.because) == ("implement", "not met, and no judge follows: c1")
    stuck = next_after(HALF, HALF, HALF, plan=ALONE)
    assert isinstance(stuck, Human)
    assert (stuck.reason, stuck.leg) == ("check-red", "03-implement")
    assert stuck.reason in rules.EXIT
    assert next_after(HALF, HALF, WHOLE, plan=ALONE) == Accepted(leg="03-implement")


def test_work_before_a_judge_goes_on_with_criteria_open_and_trusted_work_at_the_end_is_trusted() -> None:
    before = next_after(HALF, plan=relay(IMPLEMENT, REVIEW))
    assert isinstance(before, Go)
    assert before.phase == "review"
    trusting = relay(phase("implement", "work", done="trust"))
    assert next_after(work(), plan=trusting) == Accepted(leg="01-implement")


def test_work_after_the_last_judge_is_held_against_the_criteria_too() -> None:
    polished = relay(IMPLEMENT, REVIEW, phase("polish", "work"))
    step = next_after(work(), judge("approve"), work(name="polish", criteria=(criterion(met=False),)), plan=polished)
    assert isinstance(step, Go)
    assert step.phase == "polish"

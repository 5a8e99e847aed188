"""No agent, however bad, keeps a run going by itself: each loop has its cap, and the cap is the table's."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest

from relay.rules import plan as rules
from relay.terms import Budget, Plan, Receipt
from tests.receipts import (
    ACCEPTANCE,
    IMPLEMENT,
    REVIEW,
    Event,
    check,
    judge,
    judge_ended,
    phase,
    relay,
    told,
    work,
)

PATIENT = 500
"""Legs after which a run counts as endless; no bound below comes near it."""

IDLE = work(changed=False)
RED = work(checks=(check(1, base_exit=0),))
NEW_FINDINGS = tuple(judge("revise", blocking=[f"F{number}"]) for number in range(20))

Agents = Mapping[str, Iterable[Event]]
"""For each phase, how its legs end: one after the other, and from the beginning again."""


def played(agents: Agents, plan: Plan | None = None) -> tuple[tuple[Receipt, ...], rules.Next]:
    """Drive a run as the runner does, as long as the rules say go; what comes next is returned with the receipts."""
    plan = plan or relay()
    turns: dict[str, Iterator[Event]] = {name: itertools.cycle(events) for name, events in agents.items()}
    return _driven(plan, lambda order: {**next(turns[order.phase]), "phase": order.phase})


def _driven(plan: Plan, leg: Callable[[rules.Go], Event]) -> tuple[tuple[Receipt, ...], rules.Next]:
    receipts: tuple[Receipt, ...] = ()
    while isinstance(step := rules.next_leg(plan, receipts), rules.Go) and len(receipts) < PATIENT:
        receipts = told(leg(step), plan=plan, before=receipts)
    return receipts, step


GOOD: Agents = {"implement": [work()], "review": [judge("approve")], "acceptance": [judge("approve")]}


@pytest.mark.parametrize(
    ("bad", "legs", "reason"),
    [
        ({"implement": [work("crash")]}, 3, "crash"),
        ({"implement": [IDLE]}, 3, "no-change"),
        ({"implement": [RED]}, 3, "check-red"),
        ({"implement": [work("no-reply", changed=False)]}, 3, "no-reply"),
        ({"implement": [work("handover")]}, 4, "max-legs"),
        ({"implement": [work("breach")]}, 1, "breach"),
        ({"implement": [work(status="blocked")]}, 1, "question"),
        ({"implement": [work("crash"), work("interrupted"), RED]}, 9, "check-red"),
        ({"implement": [work("crash"), work("crash"), work("handover")]}, 12, "max-legs"),
        ({"implement": [IDLE, work("handover", changed=False)]}, 4, "max-legs"),
        ({"implement": [RED, RED, work()], "review": [*NEW_FINDINGS]}, 12, "cap"),
        ({"review": [judge_ended("crash")]}, 4, "crash"),
        ({"review": [judge("inconclusive")]}, 3, "inconclusive"),
        ({"review": [judge_ended("no-reply")]}, 3, "inconclusive"),
        ({"review": [judge_ended("handover")]}, 3, "inconclusive"),
        ({"review": [judge_ended("crash"), judge_ended("crash"), judge("inconclusive")]}, 7, "inconclusive"),
        ({"review": [*NEW_FINDINGS]}, 6, "cap"),
        ({"review": [judge("revise", blocking=["F1"])]}, 6, "stalemate"),
        ({"review": [judge("inconclusive"), *NEW_FINDINGS[:1]]}, 9, "stalemate"),
        ({"acceptance": [judge("revise")]}, 6, "cap"),
        ({"acceptance": [judge("inconclusive")]}, 4, "inconclusive"),
        ({"review": [judge("revise"), judge("approve")], "acceptance": [judge("revise")]}, 10, "cap"),
    ],
)
def test_a_bad_agent_is_stopped_after_as_many_legs_as_the_table_says(bad: Agents, legs: int, reason: str) -> None:
    receipts, step = played({**GOOD, **bad})
    assert isinstance(step, rules.Human)
    assert (step.reason, len(receipts)) == (reason, legs)


def test_good_agents_are_through_in_three_legs() -> None:
    receipts, step = played(GOOD)
    assert (len(receipts), type(step)) == (3, rules.Accepted)


def test_an_agent_without_quota_waits_after_each_leg_and_never_runs_by_itself() -> None:
    for until in (None, "2026-11-29T00:00:00Z", "never"):
        receipts: tuple[Receipt, ...] = ()
        for _ in range(20):
            receipts = told(work("quota", until=until), before=receipts)
            step = rules.next_leg(relay(), receipts)
            assert isinstance(step, rules.Wait)
            assert step.until > receipts[-1].ended


def test_waiting_for_quota_forgives_nothing() -> None:
    waiting = work("quota", changed=False)
    receipts = told(IDLE, waiting, IDLE, waiting, IDLE)
    step = rules.next_leg(relay(), receipts)
    assert isinstance(step, rules.Human)
    assert step.reason == "no-change"


def test_the_caps_are_those_of_the_phase() -> None:
    generous = relay(
        phase("implement", "work", max_legs=9), phase("review", "judge", "implement", back_to="implement", rounds=5)
    )
    receipts, _ = played({**GOOD, "implement": [work("handover")]}, generous)
    assert len(receipts) == 9
    receipts, _ = played({**GOOD, "review": NEW_FINDINGS}, generous)
    assert len(receipts) == 10


def test_the_budget_ends_what_no_other_cap_has_ended() -> None:
    dear = relay(budget=Budget(usd=4, reserve=0.25))
    receipts, step = played({**GOOD, "implement": [work("handover", cost_microusd=2_000_000)]}, dear)
    assert isinstance(step, rules.Human)
    assert (step.reason, len(receipts)) == ("budget", 2)


BAD_WORK = [IDLE, RED, work(), *[work(end) for end in ("crash", "interrupted", "handover", "no-reply")]]
BAD_JUDGE = [
    judge("approve"),
    judge("inconclusive"),
    *NEW_FINDINGS[:3],
    *[judge_ended(end) for end in ("crash", "interrupted", "handover", "no-reply")],
]


@pytest.mark.parametrize("seed", range(20))
def test_agents_that_fail_in_every_way_by_chance_are_stopped_too(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a seed, so that a failure can be repeated
    counted = max(IMPLEMENT.max_legs, rules.RETRIES + 1) + rules.RETRIES
    rounds = REVIEW.rounds + ACCEPTANCE.rounds
    bound = rounds * rules.CUT_LIMIT * (counted + 2 + 2)
    assert bound < PATIENT
    for _ in range(20):
        receipts, step = _driven(
            relay(),
            lambda order: {
                **chance.choice(BAD_WORK if order.phase == "implement" else BAD_JUDGE),
                "phase": order.phase,
            },
        )
        assert len(receipts) <= bound
        assert isinstance(step, rules.Human | rules.Accepted)

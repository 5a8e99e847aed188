"""The note: front matter that parses, sections in order, a budget that holds, and nothing an agent could plant."""

import datetime as dt
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from relay.host import clock
from relay.record import note, note_lint
from relay.terms import (
    Change,
    Claim,
    ClaimedFinding,
    Criterion,
    Dispute,
    Finding,
    JudgeReply,
    Must,
    Plan,
    Reason,
    Reply,
    Repro,
    WorkReply,
)
from tests.receipts import Event, check, criterion, judge, relay, told, work

PLAN = relay(
    criteria=(Criterion(id="c1", text="the sum is right", check="grep -q + calc.py"),),
    must=(Must(must="keep the API", authority="Ada", fallback="ask her"),),
    recovery=("pytest -q --co",),
)
DONE = WorkReply(
    status="done",
    summary="added the sum",
    decisions=(Reason(what="used +", why="the spec says so"),),
    dropped=(Reason(what="a lookup table", why="too slow"),),
    claims=(Claim(criterion="c1", how="grep calc.py"),),
    risks=("overflow",),
    todo=("document it",),
    disputes=(Dispute(finding="F1", why="on purpose"),),
)
REVISE = JudgeReply(
    verdict="revise",
    nonce="n",
    summary="not yet",
    findings=(
        ClaimedFinding(severity="nit", title="a name", path="a.py", line=3, quote="x = 1", why="short"),
        ClaimedFinding(
            severity="major",
            title="wrong sign",
            path="a.py",
            line=1,
            quote="a - b",
            why="it subtracts",
            repro=Repro(command="pytest -q"),
        ),
    ),
)
FOUND = (
    Finding(id="F2", severity="nit", path="a.py", line=3, evidence="located", since=1, blocks=False),
    Finding(id="F1", severity="major", path="a.py", line=1, evidence="confirmed", since=1, blocks=True),
)
WORKED = work(
    changed=True,
    base="b" * 40,
    checks=(check(0), check(1, base_exit=1), check(2, base_exit=0)),
    criteria=(criterion(met=False),),
)


@pytest.fixture(autouse=True)
def _morning() -> Iterator[None]:
    """Fix the clock at the morning after every leg."""
    with clock.fix(dt.datetime(2026, 11, 29, 6, tzinfo=dt.UTC)):
        yield


def rendered(*events: Event, said: Reply | None = None, plan: Plan = PLAN, **more: Any) -> str:  # noqa: ANN401
    """Render the note of the last of these events."""
    return note.render(plan, told(*events, plan=plan), said, **more)


def section(text: str, name: str) -> list[str]:
    """Return the lines of a section that say something."""
    body = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    return [line for line in body.splitlines() if line]


# --- front matter -----------------------------------------------------------------------------------------------------


def test_the_front_matter_is_toml_and_says_when_by_whom_and_about_what() -> None:
    text = rendered(WORKED, said=DONE)
    head = text.removeprefix("+++\n").partition("\n+++\n")[0]
    assert tomllib.loads(head) == {
        "schema": 1,
        "run": PLAN.run,
        "leg": "01-implement",
        "from": "implement (someone)",
        "to": "implement",
        "boundary": "implement",
        "written_at": dt.datetime(2026, 11, 29, 2, 1, 30, tzinfo=dt.UTC),
        "about": f"the change on refs/relay/{PLAN.run}/01-implement",
        "code_version": "<pending: git rev-parse HEAD>",
        "spec_sha256": PLAN.spec_sha256,
        "round": 1,
        "ended_by": "reply",
    }


@pytest.mark.parametrize(
    ("events", "to", "boundary"),
    [
        ([work()], "review", "verify-only"),
        ([work("quota")], "implement", "implement"),
        ([work("timeout")], "a person, then implement", "implement"),
        ([work(), judge("revise")], "implement", "implement"),
        ([work(), judge("blocked")], "a person, then review", "verify-only"),
        ([work(), judge("approve"), judge("approve", "acceptance")], "a person", "verify-only"),
    ],
)
def test_a_note_is_for_whoever_goes_on_and_says_what_that_one_may_do(
    events: Sequence[Event], to: str, boundary: str
) -> None:
    text = rendered(*events)
    fields = note_lint.front(text)
    assert (fields["to"], fields["boundary"]) == (to, boundary)
    assert section(text, "Boundary") == [note.MAY[boundary]]


# --- sections ---------------------------------------------------------------------------------------------------------


def test_the_sections_stand_in_order_and_an_empty_one_says_so() -> None:
    text = rendered(work("crash"), plan=relay())
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(note.SECTIONS)
    for name in ("Decisions", "Must", "Risks", "To do"):
        assert section(text, name) == ["nothing"]


def test_facts_and_claims_are_told_apart() -> None:
    text = rendered({**WORKED, "changed": (Change(path="calc.py", added=3, removed=1),)}, said=DONE)
    completed = section(text, "Completed")[1:]
    assert completed == [
        "- changed: `calc.py` +3 -1",
        "- check: `pytest` exited 0",
        "- check: `pytest` exited 1 (red at the base too)",
        "- check: `pytest` exited 2 (newly red)",
        "- criterion c1: not met, by relay",
        "- claim: added the sum",
        "- claim: c1; to check: grep calc.py",
    ]
    assert section(text, "Decisions") == [
        "- used +: the spec says so",
        "- dropped: a lookup table: too slow",
    ]
    assert section(text, "Risks") == ["- overflow"]
    assert section(text, "To do") == [
        "- criterion c1 is not met: the sum is right",
        "- document it",
        "- disputed F1: on purpose",
    ]


def test_a_leg_that_was_cut_short_leaves_facts_alone() -> None:
    text = rendered(work("interrupted", problem="the runner ended before the leg did"))
    completed = section(text, "Completed")
    assert "- this leg ended by `interrupted`; nothing in it is verified" in completed
    assert "- the runner ended before the leg did" in completed
    assert not any(line.startswith("- claim") for line in completed)


def test_findings_that_block_come_first_with_their_evidence() -> None:
    text = rendered(work(), judge("revise") | {"findings": FOUND}, said=REVISE)
    assert section(text, "To do") == [
        "- F1 (major, confirmed, blocks) `a.py:1` wrong sign: it subtracts",
        "  quote: `a - b`",
        "  repro: `pytest -q`",
        "- F2 (nit, located, advice) `a.py:3` a name: short",
        "  quote: `x = 1`",
    ]
    assert "- verdict: revise (claimed: revise)" in section(text, "Completed")


def test_recovery_steps_are_the_fixed_ones_and_those_of_the_plan() -> None:
    steps = section(rendered(work()), "Recovery steps")
    assert steps[1:3] == ["- `git rev-parse HEAD`", "- `git status --short`"]
    assert steps[-1] == "- `pytest -q --co`"


def test_musts_are_copied_unchanged_and_those_of_people_come_after() -> None:
    for events in ([work()], [work(), judge("revise")], [work(), judge("revise"), work("crash")]):
        text = rendered(*events, musts=("use the new parser", "x" * 3000))
        assert section(text, "Must") == [
            "- keep the API (authority: Ada; fallback: ask her)",
            "- use the new parser",
            "- " + "x" * 3000,
        ]


def test_claims_are_withheld_and_nothing_else_is() -> None:
    whole, without = rendered(WORKED, said=DONE), rendered(WORKED, said=DONE, withhold=("claims",))
    gone = [line for line in whole.splitlines() if line not in without.splitlines()]
    assert gone == ["- claim: added the sum", "- claim: c1; to check: grep calc.py"]

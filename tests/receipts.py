"""Builders of plans and receipts: a test says how legs and acts ended, and everything else follows."""

from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec

from relay.rules import plan as rules
from relay.terms import (
    Act,
    Agent,
    Boundary,
    Check,
    CriterionResult,
    EndedBy,
    Finding,
    Kind,
    Phase,
    Plan,
    Process,
    Receipt,
    Start,
    Verdict,
)

Event = dict[str, Any]
"""What a test says about one receipt: fields of it, and `moves` where the leg changed the tree."""

BASE: Final = "ba5e" * 10
BASE_TREE: Final = "tree of the base"
ENDINGS: Final[tuple[EndedBy, ...]] = get_args(EndedBy)
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
ACTS: Final[tuple[Act, ...]] = get_args(Act)

FAILURES: Final[tuple[EndedBy, ...]] = (
    *("overload", "auth", "setup", "budget", "stuck", "refusal"),
    *("timeout", "idle", "memory", "output", "disk", "breach"),
)
"""The endings that the table gives to a person at once."""

_AGENT: Final = Agent(name="someone", backend="command", vendor="north")


def phase(name: str, kind: Kind, *reads: str, **changes: Any) -> Phase:  # noqa: ANN401 - any field
    """Make a phase; a worker may implement unless `boundary` says otherwise."""
    boundary: Boundary = "implement" if kind == "work" else "verify-only"
    fields = {"boundary": boundary, "reads": ("spec", *reads)} | changes
    return Phase(name=name, kind=kind, agent=_AGENT.name, prompt=f"{name}.md", **fields)


IMPLEMENT: Final = phase("implement", "work", "plan?", max_legs=4)
REVIEW: Final = phase("review", "judge", "implement", back_to="implement", rounds=3)
ACCEPTANCE: Final = phase("acceptance", "judge", "implement", back_to="implement", rounds=2)
PLAN: Final = phase("plan", "work", boundary="verify-only", max_legs=2)
PLAN_REVIEW: Final = phase("plan-review", "judge", "plan", back_to="plan", rounds=2)


def relay(*phases: Phase, **changes: Any) -> Plan:  # noqa: ANN401 - any field
    """Make a frozen plan: of the three default phases, unless others are named."""
    plan = Plan(
        schema=1,
        run="261129-0230-fix-login",
        title="Fix login",
        created="2026-11-29T02:30:00Z",
        base_ref="refs/heads/main",
        base=BASE,
        relay_version="0",
        spec_sha256="5bec" * 16,
        files={},
        phases=phases or (IMPLEMENT, REVIEW, ACCEPTANCE),
        agents=(_AGENT,),
    )
    return msgspec.structs.replace(plan, **changes)


# --- what can happen --------------------------------------------------------------------------------------------------


def work(ended_by: EndedBy = "reply", name: str = "implement", *, changed: bool = True, **fields: Any) -> Event:  # noqa: ANN401
    """Describe a work leg: done with a changed tree, unless something else is said."""
    done = {"status": "done"} if ended_by == "reply" else {}
    return {"kind": "work", "phase": name, "ended_by": ended_by, "agent": _AGENT.name, "moves": changed} | done | fields


def judge(verdict: Verdict, name: str = "review", *, blocking: Sequence[str] = (), **fields: Any) -> Event:  # noqa: ANN401
    """Describe a judge's leg that replied, with the ids of the findings that block."""
    findings = tuple(
        Finding(id=one, severity="major", path="a.py", line=1, evidence="located", since=1, blocks=True)
        for one in blocking
    )
    told = {"kind": "judge", "phase": name, "ended_by": "reply", "verdict": verdict, "claimed_verdict": verdict}
    return told | {"findings": findings} | fields


def judge_ended(ended_by: EndedBy, name: str = "review", **fields: Any) -> Event:  # noqa: ANN401
    """Describe a judge's leg that gave no reply that counts."""
    return {"kind": "judge", "phase": name, "ended_by": ended_by, "verdict": "inconclusive"} | fields


def act(name: Act, **effect: str) -> Event:
    """Describe an act."""
    return {"kind": "act", "act": name, "effect": effect or None}


def check(exit_code: int, base_exit: int | None = None) -> Check:
    """Make a check that Relay ran."""
    return Check(by="checks.test", command="pytest", exit=exit_code, seconds=1.0, output_sha256="", base_exit=base_exit)


def criterion(*, met: bool) -> CriterionResult:
    """Make a criterion that a command decided."""
    return CriterionResult(id="c1", met=met, by="relay", command="true", exit=0 if met else 1)


# --- receipts ---------------------------------------------------------------------------------------------------------


def told(*events: Event, plan: Plan | None = None, before: tuple[Receipt, ...] = ()) -> tuple[Receipt, ...]:
    """Make the receipts of what happened, one after the other, in the rounds that the rules order."""
    plan = plan or relay()
    for event in events:
        before = (*before, _receipt(plan, before, event))
    return before


def start(plan: Plan, leg: str) -> Start:
    """Make the intent of a leg."""
    return Start(
        schema=1,
        run=plan.run,
        leg=leg,
        kind="work",
        start=plan.base,
        base=plan.base,
        common_dir="/project/.git",
        nonce="9bc1",
        started="2026-11-29T02:30:00Z",
        relay=Process(pid=1, started=1, boot="b"),
    )


def next_after(*events: Event, plan: Plan | None = None) -> rules.Next:
    """Ask the rules what comes next."""
    plan = plan or relay()
    return rules.next_leg(plan, told(*events, plan=plan))


def _receipt(plan: Plan, before: tuple[Receipt, ...], event: Event) -> Receipt:
    number = len(before) + 1
    fields: dict[str, Any] = dict(event)
    head, tree = _stands(before)
    if fields.pop("moves", False):
        fields["head"], fields["tree"] = f"{number:040x}", f"tree {number}"
    elif event.get("act") == "rebase":
        fields["head"], fields["base"], fields["tree"] = f"{number:040x}", "f" * 40, f"tree {number}"
    fixed: dict[str, Any] = {
        "schema": 1,
        "run": plan.run,
        "leg": f"{number:02d}-{event.get('phase') or event['act']}",
        "prev": "",
        "relay_version": "0",
        "started": f"2026-11-29T{2 + number // 60:02d}:{number % 60:02d}:00Z",
        "ended": f"2026-11-29T{2 + number // 60:02d}:{number % 60:02d}:30Z",
        "round": _round(plan, before, event),
        "start": head,
        "start_tree": tree,
        "base": BASE,
        "head": head,
        "tree": tree,
    }
    return Receipt(**fixed | fields)


def _stands(before: tuple[Receipt, ...]) -> tuple[str, str]:
    """Return commit and tree that a leg starts from."""
    for receipt in reversed(before):
        if receipt.act == "rebase" or (receipt.kind == "work" and receipt.ended_by != "breach"):
            return receipt.head, receipt.tree
    return BASE, BASE_TREE


def _round(plan: Plan, before: tuple[Receipt, ...], event: Event) -> int:
    """Return the round of a leg, or of the offer of one, as it was ordered; other acts stand in the round before."""
    if not before:
        return 1
    if event["kind"] == "act" and event["act"] != "offer":
        return before[-1].round
    step = rules.next_leg(plan, before)
    order = step.go if isinstance(step, rules.Wait) else step
    return order.round if isinstance(order, rules.Go) else before[-1].round

"""What Relay finds out by itself about the result of a leg: before its judge is asked, and after its agent replied."""

from collections.abc import Sequence

import msgspec

from relay import confine, swap, weigh
from relay.host.jail import Access
from relay.proof import claims
from relay.proof.trees import Trees
from relay.record import briefing
from relay.terms import Check, CriterionResult, JudgeReply, Phase, Plan, Receipt, WorkReply
from relay.underway import Leg


def judges_criteria(plan: Plan, phase: Phase) -> bool:
    """Tell whether a phase judges the spec's criteria: the last one does, if it is a judge."""
    return phase.kind == "judge" and plan.phases[-1] == phase


def worked(leg: Leg, receipt: Receipt, answer: WorkReply) -> tuple[Receipt, dict[str, bytes]]:
    """Check a worker's claim `done` by running the commands of plan and spec where the work stands."""
    receipt = msgspec.structs.replace(
        receipt,
        status=answer.status,
        asks=bool(answer.question),
        document=bool(answer.document and answer.document.strip()),
    )
    if answer.status != "done" or leg.phase.done == "trust":
        return receipt, {}
    logs = ["\n".join(f"{item.path}: {item.why}" for item in receipt.refused).encode()] if receipt.refused else []
    repo = leg.ledger.repo
    seen = [weigh.strayed(leg.plan, repo, receipt), weigh.unresolved(repo, leg.chain, receipt)]
    with Trees(leg.ledger, leg.plan, receipt.leg, receipt.head, receipt.base) as trees:
        places = claims.placed(trees, answer.existing)
        seen.append(claims.invented(answer.existing, places))
    found = [*receipt.checks, *(look[0] for look in seen if look)]
    logs += [look[1].encode() for look in seen if look]
    seconds, at = leg.phase.minutes * 60, confine.place(leg.ledger, leg.plan, leg.held)
    for name, command in leg.plan.checks.items():
        check, output = weigh.run(leg.plan, at, command, by=f"checks.{name}", seconds=seconds)
        found.append(check)
        logs.append(output.encode())
    known = weigh.against_base(
        leg.ledger, leg.plan, leg.chain, found, leg=receipt.leg, base=receipt.base, seconds=seconds
    )
    criteria, observed = weigh.criteria(leg.plan, at, seconds)
    named = [one.id for sealed in leg.chain for one in sealed.findings]
    return msgspec.structs.replace(
        receipt,
        checks=known,
        criteria=criteria,
        score=weigh.score(criteria),
        existing=places,
        disputed=claims.disputes(leg.plan, at, answer, named),
    ), _logs(logs, observed)


def _logs(checked: Sequence[bytes], observed: Sequence[briefing.Observed]) -> dict[str, bytes]:
    """Name the files that keep what commands said: checks by their place in the receipt, criteria by their id."""
    found = {f"check-{number}.log": log for number, log in enumerate(checked, 1)}
    names = {item.by: item.by if item.by.startswith("tests.") else f"criterion-{item.by}" for item in observed}
    return found | {f"{names[item.by]}.log": item.output.encode() for item in observed}


def before(leg: Leg) -> Leg:
    """Run every criterion and check in a clean checkout of the exact commit, before the last judge is asked.

    Each command sees the commit and nothing that another one wrote: in a jail its writes vanish, in the open each has a
    checkout of its own. Then the tests are swapped between it and the base.
    """
    ledger, plan, start, seconds = leg.ledger, leg.plan, leg.start, leg.phase.minutes * 60
    criteria: tuple[CriterionResult, ...] = ()
    checked: tuple[Check, ...] = ()
    observed: tuple[briefing.Observed, ...] = ()
    more: tuple[briefing.Observed, ...] = ()
    for part in [plan] if confine.rung(plan)[0].holds else _one_by_one(plan):
        with weigh.checkout(ledger, plan, start.leg, start.start, "check", Access.SCRATCH) as at:
            (met, seen), (ran, said) = weigh.criteria(part, at, seconds), weigh.checks_in(part, at, seconds)
        criteria, observed, checked, more = (*criteria, *met), (*observed, *seen), (*checked, *ran), (*more, *said)
    tests = swap.look(ledger, plan, start.leg, base=start.base, head=start.start, seconds=seconds, ran=checked)
    if tests is not None:
        checked, more = (*checked, *tests.checks), (*more, *tests.observed)
    return msgspec.structs.replace(leg, criteria=criteria, checked=checked, observed=(*observed, *more), tests=tests)


def _one_by_one(plan: Plan) -> list[Plan]:
    """Return the plan once for each of its commands: none of them finds what another one left, or changed."""
    nothing = msgspec.structs.replace(plan, criteria=(), checks={})
    parts = [msgspec.structs.replace(nothing, criteria=(one,)) for one in plan.criteria]
    return parts + [msgspec.structs.replace(nothing, checks={name: command}) for name, command in plan.checks.items()]


def judged(leg: Leg, receipt: Receipt, answer: JudgeReply) -> tuple[Receipt, dict[str, bytes]]:
    """Look at a judge's evidence and derive the verdict."""
    found = weigh.weigh(leg.ledger, leg.plan, leg.chain, leg.start, leg.go, answer, leg.criteria, leg.checked)
    counted = {check.by for check in leg.checked}
    return msgspec.structs.replace(
        receipt,
        checks=found.checks,
        criteria=found.criteria,
        score=weigh.score(found.criteria),
        claimed_verdict=answer.verdict,
        verdict=found.verdict,
        findings=found.findings,
        settled=found.settled,
        existing=found.existing,
        tests=leg.tests.facts if leg.tests else None,
        asks=bool(answer.question),
        problem=leg.redactor.text(found.problem) if found.problem else None,
    ), _logs(
        [item.output.encode() for item in leg.observed if item.by in counted],
        [item for item in leg.observed if item.by not in counted],
    )

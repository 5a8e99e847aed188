"""What claims are worth: Relay runs the commands, looks at the evidence, and compares with the base."""

import fnmatch
import re
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

import msgspec

from relay import clean
from relay.confine import Place
from relay.host import clock, git, redact
from relay.host.repository import Repository
from relay.proof import claims, evidence
from relay.proof.trees import Trees
from relay.record import briefing, known
from relay.record.ledger import Ledger
from relay.rules import findings as rules
from relay.rules.plan import Go
from relay.terms import (
    Check,
    CriterionResult,
    Finding,
    JudgeReply,
    Placed,
    Plan,
    Receipt,
    Settled,
    Start,
    Struct,
    Verdict,
)

MARKER = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)
"""How a side of a conflict begins or ends in a file that git merged."""

SOME = 5
"""How many files are named that a spec does not let a run touch; the log of the check has them all."""

SetupError = clean.SetupError
checkout = clean.checkout
run = clean.run


class Weighed(Struct, frozen=True, kw_only=True):
    """What a judge's reply came to; `problem` says what of it could not be looked at, or was not accepted, and why."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    settled: tuple[Settled, ...]
    existing: tuple[Placed, ...]
    criteria: tuple[CriterionResult, ...]
    checks: tuple[Check, ...]
    problem: str


def criteria(
    plan: Plan, at: Place, seconds: float
) -> tuple[tuple[CriterionResult, ...], tuple[briefing.Observed, ...]]:
    """Run the command of every criterion that has one; the others are left to a judge, and are unmet until then."""
    results, observed = [], []
    for criterion in plan.criteria:
        if criterion.check is None:
            results.append(CriterionResult(id=criterion.id, met=False, by="nobody"))
            continue
        check, output = run(plan, at, criterion.check, by=criterion.id, seconds=seconds)
        results.append(
            CriterionResult(
                id=criterion.id,
                met=check.exit == 0,
                by="relay",
                command=criterion.check,
                exit=check.exit,
                output_sha256=check.output_sha256,
            )
        )
        observed.append(_observed(check, output))
    return tuple(results), tuple(observed)


def checks_in(plan: Plan, at: Place, seconds: float) -> tuple[tuple[Check, ...], tuple[briefing.Observed, ...]]:
    """Run the checks of relay.toml in a folder."""
    found, observed = [], []
    for name, command in plan.checks.items():
        check, output = run(plan, at, command, by=f"checks.{name}", seconds=seconds)
        found.append(check)
        observed.append(_observed(check, output))
    return tuple(found), tuple(observed)


def _observed(check: Check, output: str) -> briefing.Observed:
    """Keep the end of a command's output for the receiver, without the secrets in it."""
    shown = redact.own().text(output)[-4000:]
    return briefing.Observed(command=check.command, output=shown, at=clock.stamp(), by=check.by, exit=check.exit)


def score(results: Sequence[CriterionResult]) -> str | None:
    """Write how many criteria hold, as `7/9`: almost done and not begun are different."""
    return f"{sum(result.met for result in results)}/{len(results)}" if results else None


def strayed(plan: Plan, repo: Repository, receipt: Receipt) -> tuple[Check, str] | None:
    """Return a red check where the work changed files that the spec does not let it touch."""
    if not plan.may_touch:
        return None
    outside = [
        change.path
        for change in git.numstat(repo, receipt.base, receipt.head)
        if not any(fnmatch.fnmatch(change.path, pattern) for pattern in plan.may_touch)
    ]
    if not outside:
        return None
    output = (
        "the spec lets this run touch only: " + ", ".join(plan.may_touch) + "\nchanged besides:\n" + "\n".join(outside)
    )
    named = ", ".join(outside[:SOME]) + f" and {len(outside) - SOME} more" * (len(outside) > SOME)
    return claims.red(f"only files that the spec names, and not {named}", output)


def unresolved(repo: Repository, chain: Sequence[Receipt], receipt: Receipt) -> tuple[Check, str] | None:
    """Return a red check where a conflict, with which a moved base sent the work back, still has its markers."""
    rebase = next((sealed for sealed in reversed(chain) if sealed.act == "rebase"), None)
    paths = (rebase.effect or {}).get("conflict", "").splitlines() if rebase is not None else []
    left = [path for path in paths if MARKER.search(git.blob(repo, receipt.head, path) or b"")]
    if not left:
        return None
    return claims.red("no conflict marker is left", "conflict markers of git stand in:\n" + "\n".join(left))


def against_base(
    ledger: Ledger, plan: Plan, chain: Sequence[Receipt], found: Sequence[Check], *, leg: str, base: str, seconds: float
) -> tuple[Check, ...]:
    """Find out, for each red check, whether it was red at the base too; what the run already knows is not run again.

    Where the base cannot be set up, that stays unknown, and unknown excuses nothing.
    """
    known = {
        check.command: check.base_exit
        for sealed in chain
        if sealed.base == base
        for check in sealed.checks
        if check.base_exit is not None
    }
    red = [check for check in found if check.exit != 0 and check.by.startswith("checks.")]
    unknown = list({check.command: check for check in red if check.command not in known}.values())
    with (
        suppress(SetupError),
        checkout(ledger, plan, leg, base, "base", base=base) if unknown else nullcontext(Place(folder=Path())) as at,
    ):
        for check in unknown:
            known[check.command] = run(plan, at, check.command, by=check.by, seconds=seconds)[0].exit
    return tuple(
        msgspec.structs.replace(check, base_exit=known.get(check.command)) if check in red else check for check in found
    )


def weigh(
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    start: Start,
    go: Go,
    reply: JudgeReply,
    results: Sequence[CriterionResult],
    checked: Sequence[Check],
) -> Weighed:
    """Check a judge's evidence at the commit it judged, and derive the verdict."""
    phase, repo = plan.phase(go.phase), ledger.repo
    own = plan.agent(phase.agent).reply == "exit"
    before = known.find(ledger, chain, phase.name)
    last = plan.phases[-1] == phase
    with Trees(ledger, plan, start.leg, start.start, start.base) as trees:
        named = evidence.named(trees, reply.findings)
        again = evidence.again(trees, before, own=own)
        seen = evidence.look(trees, named, own=own, known=before)
        found = rules.judge(
            named,
            seen,
            known=before,
            round_=go.round,
            evidence=phase.evidence,
            delta=_since(repo, chain, start, phase.name, newest=True),
            mended=_since(repo, chain, start, phase.name, newest=False),
            again=again,
        )
        kept, settled = evidence.settle(trees, before, found, again)
        existing = claims.placed(trees, reply.existing)
        judged = [claims.criterion(trees, result, reply) for result in results] if last else []
    checks_now = against_base(ledger, plan, chain, checked, leg=start.leg, base=start.base, seconds=phase.minutes * 60)
    criteria_now = tuple(result for result, _ in judged)
    verdict = rules.verdict(
        reply,
        (*found, *kept),
        criteria_now,
        red=any(check.newly_red for check in checks_now),
        last=last,
        rests=all(place.line is not None for place in existing),
    )
    return Weighed(
        verdict=verdict,
        findings=(*found, *kept),
        settled=settled,
        existing=existing,
        criteria=criteria_now,
        checks=checks_now,
        problem="; ".join([*(why for _, why in judged if why), *evidence.reasons((*found, *kept), seen, again)]),
    )


def _since(
    repo: Repository, chain: Sequence[Receipt], start: Start, phase: str, *, newest: bool
) -> dict[str, tuple[tuple[int, int], ...]] | None:
    """Return the lines changed since this judge gave its newest verdict, or its first; None where it never did."""
    before = [sealed for sealed in chain if sealed.phase == phase and sealed.verdict in {"approve", "revise"}]
    return git.changed_lines(repo, before[-1 if newest else 0].start, start.start) if before else None

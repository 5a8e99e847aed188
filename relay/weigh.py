"""What claims are worth: Relay runs the commands, looks at the places, and compares with the base."""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import msgspec

from relay import confine
from relay.confine import Place
from relay.errors import Exit, RelayError
from relay.host import checks, clock, files, git, jail, provision, redact, worktree
from relay.host.repository import Repository
from relay.record import briefing
from relay.record.ledger import Ledger
from relay.rules import findings as rules
from relay.rules.plan import Go
from relay.terms import (
    Check,
    ClaimedCriterion,
    ClaimedFinding,
    CriterionResult,
    Finding,
    JudgeReply,
    Plan,
    Proof,
    Receipt,
    Start,
    Struct,
    Verdict,
)

MARKER = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)
"""How a side of a conflict begins or ends in a file that git merged."""

REPRO_SECONDS = 300
"""How long a finding's repro may take; one that needs longer shows nothing."""


class SetupError(RelayError):
    """A clean checkout could not be set up: no fault of an agent, and nothing was judged in it."""


class Weighed(Struct, frozen=True, kw_only=True):
    """What a judge's reply came to."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    criteria: tuple[CriterionResult, ...]
    checks: tuple[Check, ...]


@contextmanager
def checkout(ledger: Ledger, plan: Plan, leg: str, commit: str, name: str) -> Iterator[Place]:
    """Give a clean checkout of an exact commit, set up like every worktree, and remove it afterwards."""
    path = ledger.worktree(plan.run, f"{leg}.{name}")
    worktree.clear(ledger.repo, path)
    lease = worktree.lease(ledger.repo, path, commit, f"relay run={plan.run} leg={leg} for={name}")
    log = ledger.leg(plan.run, leg) / f"setup-{name}.log"
    log.parent.mkdir(0o700, exist_ok=True)  # a shipment has no folder yet while its tree is looked at
    try:
        problem = worktree.prepare(
            ledger.repo,
            lease,
            plan.worktree,
            log,
            lambda: confine.cell(ledger, plan, lease, jail.Access.WRITE, setup=True),
        )
        if problem:
            raise SetupError(f"set-up failed in a clean checkout: {problem}", exit_code=Exit.HUMAN)
        yield confine.place(ledger, plan, lease)
    finally:
        worktree.release(ledger.repo, lease)


def run(plan: Plan, at: Place, command: str, *, by: str, seconds: float) -> tuple[Check, str]:
    """Run a command in a worktree as `checks.run` does, with the variables that `[worktree] env` names."""
    env = provision.named(plan.worktree)
    return checks.run(command, at.folder, by=by, env=env, seconds=seconds, cell=at.cell)


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
    return _red("only files that the spec names", output)


def unresolved(repo: Repository, chain: Sequence[Receipt], receipt: Receipt) -> tuple[Check, str] | None:
    """Return a red check where a conflict, with which a moved base sent the work back, still has its markers."""
    rebase = next((sealed for sealed in reversed(chain) if sealed.act == "rebase"), None)
    paths = (rebase.effect or {}).get("conflict", "").splitlines() if rebase is not None else []
    left = [path for path in paths if MARKER.search(git.blob(repo, receipt.head, path) or b"")]
    return _red("no conflict marker is left", "conflict markers of git stand in:\n" + "\n".join(left)) if left else None


def _red(what: str, output: str) -> tuple[Check, str]:
    """Make the check of something that Relay looked at by itself, and what it saw."""
    return Check(by="relay", command=what, exit=1, seconds=0.0, output_sha256=files.sha256(output.encode())), output


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
    unknown = [check for check in red if check.command not in known]
    with (
        suppress(SetupError),
        checkout(ledger, plan, leg, base, "base") if unknown else nullcontext(Place(folder=Path())) as at,
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
    phase = plan.phase(go.phase)
    known = briefing.known_findings(ledger, chain, phase.name)
    proofs = [_proof(ledger, plan, start, claim, index) for index, claim in enumerate(reply.findings)]
    found = rules.judge(
        reply.findings,
        proofs,
        known=known,
        round_=go.round,
        evidence=phase.evidence,
        delta=_delta(ledger.repo, chain, start, phase.name),
    )
    last = plan.phases[-1] == phase
    criteria_now = tuple(_claimed(ledger, plan, start, result, reply) for result in results) if last else ()
    checks_now = against_base(ledger, plan, chain, checked, leg=start.leg, base=start.base, seconds=phase.minutes * 60)
    verdict = rules.verdict(reply, found, criteria_now, red=any(check.newly_red for check in checks_now), last=last)
    return Weighed(verdict=verdict, findings=found, criteria=criteria_now, checks=checks_now)


def _delta(
    repo: Repository, chain: Sequence[Receipt], start: Start, phase: str
) -> dict[str, tuple[tuple[int, int], ...]] | None:
    """Return the lines changed since this judge last gave a verdict, or None where it never did."""
    before = next(
        (sealed for sealed in reversed(chain) if sealed.phase == phase and sealed.verdict in {"approve", "revise"}),
        None,
    )
    return git.changed_lines(repo, before.start, start.start) if before is not None else None


def _proof(ledger: Ledger, plan: Plan, start: Start, claim: ClaimedFinding, index: int) -> Proof:
    """Look at one finding's evidence: its repro if it has one, else the place it names."""
    data = git.blob(ledger.repo, start.start, claim.path)
    text = data.decode("utf-8", "replace") if data is not None else None
    located = rules.located(claim, text)
    if claim.repro is None:
        return "located" if located else "unfounded"
    whole = claim.path == "." and not claim.quote  # the finding is about the tree as it is
    return "confirmed" if (located or whole) and _reproduces(ledger, plan, start, claim, index) else "unfounded"


def _reproduces(ledger: Ledger, plan: Plan, start: Start, claim: ClaimedFinding, index: int) -> bool:
    """Run a repro, with the files it brings, in a clean checkout of the commit that was judged."""
    repro = claim.repro
    if repro is None:
        return False
    with checkout(ledger, plan, start.leg, start.start, f"repro-{index + 1}") as at:
        folder = at.folder
        if not _brought(folder.resolve(), repro.files):
            return False
        check, output = run(plan, at, repro.command, by="repro", seconds=REPRO_SECONDS)
    return check.ended == "exit" and rules.reproduced(claim, check.exit, output)


def _brought(folder: Path, brought: Mapping[str, str]) -> bool:
    """Write the files that a repro brings, all inside the checkout; what cannot be written shows nothing."""
    try:
        for name, text in brought.items():
            target = folder / name
            inside = target.parent.resolve().is_relative_to(folder) and ".git" not in Path(name).parts
            if not inside or target.is_symlink():
                return False
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except (OSError, ValueError):
        return False
    return True


def _claimed(ledger: Ledger, plan: Plan, start: Start, result: CriterionResult, reply: JudgeReply) -> CriterionResult:
    """Settle a criterion that no command of the spec decides: the judge's answer, if its evidence holds.

    A criterion that the judge passed over, or called met without evidence that stands, stays judged by nobody.
    """
    if result.by == "relay":
        return result
    claim = next((item for item in reply.criteria if item.id == result.id), None)
    if claim is None or (claim.met and not claim.command and not _stands(ledger, start, claim)):
        return result
    if not claim.met:
        return msgspec.structs.replace(result, by="judge", met=False)
    if claim.command:
        with checkout(ledger, plan, start.leg, start.start, "claim") as at:
            check, _ = run(plan, at, claim.command, by=result.id, seconds=REPRO_SECONDS)
        return msgspec.structs.replace(
            result,
            by="judge",
            met=check.exit == 0,
            command=redact.own().text(claim.command),
            exit=check.exit,
            output_sha256=check.output_sha256,
        )
    return msgspec.structs.replace(result, by="judge", met=True)


def _stands(ledger: Ledger, start: Start, claim: ClaimedCriterion) -> bool:
    """Tell whether the place that a judge quotes for a criterion is there."""
    data = git.blob(ledger.repo, start.start, claim.path) if claim.path else None
    quote = rules.folded(claim.quote or "")
    return data is not None and bool(quote) and quote in rules.folded(data.decode("utf-8", "replace"))

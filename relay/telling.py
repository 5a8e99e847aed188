"""How a run is told while it goes: a line when a leg starts, a line when it is sealed; events for `--json`."""

from typing import Final

from relay.host import term
from relay.live import Live
from relay.rules import plan as rules
from relay.rules import steering
from relay.terms import Plan, Receipt

GOOD: Final = frozenset({"done", "approve", "shipped", "proposed", "approved"})
NOT_RUN: Final = frozenset({126, 127})
"""How a shell says that a command is not there, or cannot be run."""
GREEN: Final = frozenset({"accepted", "shipped", "proposed"})


def coloured(outcome: str) -> str:
    """Return an outcome in its colour: green is through, red needs a person, yellow is on its way."""
    if outcome.split(" ", maxsplit=1)[0] in GREEN:
        return term.style(outcome, "green")
    return term.style(outcome, "red" if outcome == "needs-human" else "yellow")


class Teller:
    """Says what the loop does, as it does it."""

    @staticmethod
    def begun(plan: Plan, jail: str) -> None:
        """Say that a run begins, and what does not hold its agents."""
        term.event("begin", run=plan.run, title=plan.title, base=plan.base)
        term.say(f"run {term.style(plan.run, 'bold')}: {plan.title}")
        term.say(term.style(jail, "dim"))
        term.say(term.style(f"follow an agent with: relay log {plan.run} -f", "dim"))
        if plan.tests.paths:
            term.say(term.style("[tests] is frozen with the run, and not used by this version", "dim"))

    @staticmethod
    def starting(plan: Plan, go: rules.Go) -> None:
        """Say that a leg starts: its phase, its agent, and why."""
        phase = plan.phase(go.phase)
        agent = plan.agent(phase.agent)
        term.event("start", run=plan.run, phase=phase.name, agent=agent.name, round=go.round, because=go.because)
        term.say(
            f"{term.style(phase.name, 'bold')}, round {go.round}: {agent.name} ({agent.vendor})  "
            f"{term.style(go.because, 'dim')}"
        )

    @staticmethod
    def live(plan: Plan, go: rules.Go) -> Live:
        """Return who listens to the leg while it runs."""
        return Live(plan.run, go.phase, plan.phase(go.phase).agent)

    @staticmethod
    def sealed(receipt: Receipt) -> None:
        """Say what a sealed leg or act came to."""
        result = result_of(receipt)
        term.event(
            "receipt",
            run=receipt.run,
            leg=receipt.leg,
            result=result,
            ended_by=receipt.ended_by,
            verdict=receipt.verdict,
            score=receipt.score,
            head=receipt.head,
            steers=steering.steering(change.path for change in receipt.changed),
            seconds=receipt.seconds,
        )
        parts = [f"  {receipt.leg}", term.style(result, "green" if result in GOOD else "yellow"), *details(receipt)]
        term.say("  ".join(parts))
        for line in problems(receipt):
            term.say(f"    {line}")


def result_of(receipt: Receipt) -> str:
    """Name the result of a leg or an act in a word or two."""
    if receipt.act is not None:
        outcome = (receipt.effect or {}).get("outcome")
        return outcome or {"approve": "approved", "go": "resumed", "stop": "stopped"}.get(receipt.act, receipt.act)
    if receipt.ended_by != "reply":
        return receipt.ended_by or "?"
    if receipt.kind == "judge":
        return receipt.verdict or "?"
    return "asks" if receipt.asks else receipt.status or "?"


def details(receipt: Receipt) -> list[str]:
    """Count what a receipt holds: files and lines, findings, score, seconds."""
    found = []
    if receipt.changed:
        added = sum(max(change.added, 0) for change in receipt.changed)
        removed = sum(max(change.removed, 0) for change in receipt.changed)
        files = len(receipt.changed)
        found.append(f"{files} file{'s' * (files != 1)} +{added} -{removed}")
    if receipt.findings:
        blocking = sum(finding.blocks for finding in receipt.findings)
        count = len(receipt.findings)
        found.append(f"{count} finding{'s' * (count != 1)}, {blocking} block{'s' * (blocking == 1)}")
    red = [check for check in receipt.checks if check.newly_red]
    if red:
        found.append(f"{len(red)} newly red")
    old = [check for check in receipt.checks if check.exit != 0 and not check.newly_red]
    if old:
        found.append(f"{len(old)} red, as at the base")
    if receipt.score:
        left = sum(criterion.by == "nobody" for criterion in receipt.criteria)
        found.append(f"{receipt.score} criteria" + f", {left} for a judge" * (left > 0 and receipt.kind == "work"))
    if receipt.cost_microusd is None:
        found.append("cost unknown")
    elif receipt.cost_microusd:
        found.append(f"${receipt.cost_microusd / 1_000_000:.2f}")
    if receipt.kind != "act":
        found.append(f"{receipt.seconds:.1f} s")
    return found


def problems(receipt: Receipt) -> list[str]:
    """List what a person should know of a receipt at once."""
    lines = [receipt.problem] if receipt.problem else []
    lines += [f"breach: {breach}" for breach in receipt.breaches]
    lines += [f"not carried: {item.path} ({item.why})" for item in receipt.refused]
    lines += [f"steers others: {line}" for line in steering.told(change.path for change in receipt.changed)]
    lines += [f"red: {check.command} exited {check.exit}" for check in receipt.checks if check.newly_red]
    lines += [
        f"cannot run: {check.command} exited {check.exit}, at the base too"
        for check in receipt.checks
        if check.exit in NOT_RUN and not check.newly_red
    ]
    why = (receipt.effect or {}).get("why")
    return [*lines, why] if why else lines

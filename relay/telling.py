"""How a run is told while it goes: a line when a leg starts, a line when it is sealed; events for `--json`."""

import math
from collections.abc import Sequence
from typing import Final

from relay.backends import purse
from relay.host import term
from relay.live import Live
from relay.rules import history, order, steering
from relay.rules import plan as rules
from relay.terms import Phase, Plan, Receipt

GOOD: Final = frozenset({"done", "approve", "shipped", "proposed", "approved"})
NOT_RUN: Final = frozenset({126, 127})
"""How a shell says that a command is not there, or cannot be run."""
WIDE: Final = 150
"""Changed lines above which reviewers find little (literature.md 6.1: F1 0.80 up to 50 lines, 0.04 above 150)."""
NEAR: Final = 0.05
"""The share of a bound that is as good as nothing: a leg that got no more would end at once."""
GREEN: Final = frozenset({"accepted", "shipped", "proposed"})


def coloured(outcome: str) -> str:
    """Return an outcome in its colour: green is through, red needs a person, yellow is on its way."""
    if outcome.split(" ", maxsplit=1)[0] in GREEN:
        return term.style(outcome, "green")
    return term.style(outcome, "red" if outcome == "needs-human" else "yellow")


UNSEEN: Final = "what a command's model costs, nobody here knows"


def unbounded(plan: Plan) -> str:
    """Say which agents of a run no bound on money holds, though one is written for them; nothing where it does."""
    agents = {phase.agent: plan.agent(phase.agent) for phase in plan.phases}.values()
    capped = [agent for agent in agents if plan.budget.usd is not None or agent.usd is not None]
    names = ", ".join(f"`{agent.name}`" for agent in capped if purse.unseen(agent))
    return f"{term.style('warning:', 'yellow')} `usd` does not bound {names}: {UNSEEN}; `minutes` does" if names else ""


class Teller:
    """Says what the loop does, as it does it."""

    @staticmethod
    def begun(plan: Plan, jail: str) -> None:
        """Say that a run begins, and what does not hold its agents."""
        term.event("begin", run=plan.run, title=plan.title, base=plan.base)
        term.say(f"run {term.style(plan.run, 'bold')}: {plan.title}")
        term.say(term.style(jail, "dim"))
        if warning := unbounded(plan):
            term.say(warning)
        term.say(term.style(f"follow an agent with: relay log {plan.run} -f", "dim"))

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
    if receipt.reviewed > WIDE and receipt.round == 1:
        lines.append(
            f"{receipt.reviewed} changed lines to judge: above {WIDE} reviewers find little, so smaller tasks do better"
        )
    if receipt.independence == "allowed":
        lines.append("judged by the vendor whose work it is, as `allow_same_vendor` says")
    lines += [
        f"not there, though the reply rests on it: {place.path}" for place in receipt.existing if place.line is None
    ]
    why = (receipt.effect or {}).get("why")
    return [*lines, why] if why else lines


def raised(plan: Plan, chain: Sequence[Receipt]) -> str:
    """Return the flags of `relay resume` that raise what was used up, far enough for the next leg to go on.

    Nothing where more would not help: a bound on money cannot be kept where nobody knows the price.
    """
    return "".join(f" --{name} {more:.12g}" for name, more in _more(plan, chain).items())


def leaves(plan: Plan, chain: Sequence[Receipt]) -> str:
    """Say what that leaves the next leg, by the name of its phase."""
    phase, left = _onward(plan, chain), rules.remaining(plan, chain, _onward(plan, chain).name)
    own, share = _own(plan, chain, phase), order.part(plan, phase.name)
    said = []
    for name, more in _more(plan, chain).items():
        run = None if (rest := left[name]) is None else rest + more * share
        each = own[name] + more if name in own else None
        said.append(order.amount(name, min((cap for cap in (run, each) if cap is not None), default=more)))
    return f"leaves {' and '.join(said)} for {phase.name}; or as much as you like" if said else ""


def _onward(plan: Plan, chain: Sequence[Receipt]) -> Phase:
    """Return the phase that goes on once the budget is raised."""
    return plan.phase(rules.receiver(plan, chain) or plan.phases[-1].name)


def _own(plan: Plan, chain: Sequence[Receipt], phase: Phase) -> dict[str, float]:
    """Return the bounds that the agent's line puts on each leg; what a person adds raises them, too."""
    agent = plan.agent(phase.agent)
    caps = {name: getattr(agent, name) for name in ("usd", "tokens", "turns")}
    return {name: cap + history.extended(chain, name) for name, cap in caps.items() if cap is not None}


def _more(plan: Plan, chain: Sequence[Receipt]) -> dict[str, float]:
    """Return by how much to raise each bound that was reached, or nearly.

    One of the run by half of all that was given, and so far that the next leg may use as much as the last one of its
    phase, half as much again if that was stopped: with the same a fresh session comes no farther. One that an agent's
    line puts on each leg by half.
    """
    phase = _onward(plan, chain)
    last = next((leg for leg in reversed(chain) if leg.phase == phase.name), None)
    stopped = last if last is not None and last.ended_by == "budget" else None
    used, spent = history.spent([last] if last else []), history.spent(chain)
    own, share, again = _own(plan, chain, phase), order.part(plan, phase.name), 1.5 if stopped else 1.0
    more: dict[str, float] = {}
    for name, rest in rules.remaining(plan, chain, phase.name).items():
        if rest is not None and rest <= NEAR * (rest + spent[name]):
            more[name] = _rounded(name, (max((rest + spent[name]) / 2, again * used[name]) - rest) / share)
        if stopped and name in own and used[name] >= own[name] * (1 - NEAR):
            more[name] = max(more.get(name, 0.0), _rounded(name, own[name] / 2))
    if more or stopped is None:
        return more
    bounded = plan.budget.usd is not None or "usd" in own
    return {} if bounded and stopped.cost_microusd is None else {"turns": float(purse.TURNS)}


def _rounded(name: str, amount: float) -> float:
    """Round up to two digits that count: money no finer than a cent, all else than one."""
    step = max(0.01 if name == "usd" else 1.0, 10.0 ** (math.floor(math.log10(amount)) - 1))
    return math.ceil(round(amount / step, 6)) * step


def next_command(run: str, step: rules.Next, more: str = "") -> str:
    """Say what to type next, for a person who stands in the repository; `more` is what raises a budget, if known."""
    match step:
        case rules.Human(reason="budget") if more:
            return f"relay resume {run}{more}"
        case rules.Accepted():
            return f"relay approve {run}\nrelay reject {run} --why TEXT"
        case rules.Human():
            return ASKED.get(step.reason, ASKED[""]).format(run=run, leg=step.leg)
        case rules.End(outcome="proposed"):
            return f"relay approve {run}    (it looks whether the proposal was merged)"
        case rules.End(outcome="shipped" | "not-accepted"):
            return f"relay trace {run}"
        case _:
            return f"relay resume {run}"


ASKED: Final = {
    "question": "relay show {run}/{leg} note\nrelay answer {run} TEXT",
    "cap": "relay show {run}/{leg} note\nrelay answer {run} TEXT, or relay resume {run} --rounds 1",
    "stalemate": "relay show {run}/{leg} note\nrelay answer {run} TEXT, or relay resume {run} --rounds 1",
    "offer": "relay show {run}/{leg}\nrelay resume {run}    (once the reply is written there)",
    "budget": "relay show {run}/{leg}\nrelay reject {run} --close --why 'nobody knows its price'",
    "ship": "relay show {run}/{leg}\nrelay approve {run}",
    "": "relay show {run}/{leg}\nrelay resume {run}",
}
"""What a person types for each reason that Relay stopped."""

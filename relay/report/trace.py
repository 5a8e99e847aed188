"""The story of a run, told from its plan and its receipts alone: no word of an agent's is in it."""

from collections.abc import Iterator, Sequence
from typing import Final

from relay import telling
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import figures
from relay.report import leg as legs
from relay.report import run as runs
from relay.rules import history, steering
from relay.rules import plan as rules
from relay.terms import Plan, Receipt

SHORT: Final = legs.SHORT
EFFECTS: Final = (
    "phase",
    "back_to",
    "into",
    "leg",
    "accepted",
    "remote",
    "branch",
    "url",
    "auto_merge",
    "signed",
    "commit",
    "onto",
    "conflict",
    "overlap",
    "rounds",
    "minutes",
    "usd",
    "tokens",
    "turns",
    "why",
)
"""What is told of an act's effect, in this order; `why` is Relay's own word for what failed."""

LONGEST: Final = 160
"""Characters of a problem that are told: it may quote the last output of a program."""


def tell(ledger: Ledger, run: str) -> list[str]:
    """Tell a run from its beginning; a broken plan or chain is a `RelayError` that names the file."""
    plan, chain = ledgers.read(ledger, run)
    told = [*_began(plan)]
    for sealed in chain:
        told += ["", *(_act(sealed) if sealed.kind == "act" else _leg(plan, sealed))]
    return [*told, "", *_ended(plan, chain)]


def _began(plan: Plan) -> Iterator[str]:
    """Tell what the run was promised."""
    branch = plan.base_ref.removeprefix("refs/heads/") or "a detached HEAD"
    yield f"{plan.run}: {plan.title}"
    yield f"{plan.created}  begun on {branch} at {plan.base[:SHORT]}, with Relay {plan.relay_version}"
    for phase in plan.phases:
        agent = plan.agent(phase.agent)
        who = ", ".join(filter(None, (agent.vendor, agent.backend, agent.model)))
        yield f"    {phase.name} ({phase.kind}, {phase.boundary}): {agent.name} ({who})"
    commanded = sum(criterion.check is not None for criterion in plan.criteria)
    criteria = runs.count(len(plan.criteria), "criterion", "criteria")
    yield f"    {criteria}, {commanded} with a command" if plan.criteria else "    no criterion: unchecked"


def _leg(plan: Plan, sealed: Receipt) -> Iterator[str]:
    """Tell one leg: who, from where to where, what it saw, what Relay saw, and what was derived from it."""
    who = ", ".join(filter(None, (sealed.vendor, sealed.backend, sealed.model, sealed.version)))
    yield f"{sealed.started}  {sealed.leg}, round {sealed.round}: {sealed.agent} ({who})"
    seen = f"saw {', '.join(sealed.crossed)}" if sealed.crossed else "saw nothing"
    if sealed.prompt_sha256 is not None and not sealed.crossed:
        seen = "what it saw stands in its prompt alone"
    kept = f"; withheld: {', '.join(sealed.withheld)}" if sealed.withheld else ""
    yield f"    began at {sealed.start[:SHORT]}, {seen}{kept}"
    if sealed.changed:
        yield f"    changed {_changed(sealed)}: now at {sealed.head[:SHORT]}"
    elif sealed.kind == "work":
        yield "    changed nothing"
    yield from (f"    steers others: {line}" for line in steering.told(change.path for change in sealed.changed))
    yield from (f"    not carried: {figures.named(item.path)} ({item.why})" for item in sealed.refused)
    yield from (f"    Relay ran {legs.checked(sealed, index)}" for index in range(len(sealed.checks)))
    yield from (f"    criterion {legs.criterion(sealed, index)}" for index in range(len(sealed.criteria)))
    yield from (f"    finding {legs.finding(one)}" for one in sealed.findings)
    yield from (f"    finding {one.id} {one.how}" for one in sealed.settled)
    yield from (f"    disputes {legs.disputed(one)}" for one in sealed.disputed)
    yield from (f"    rests on {legs.placed(one)}" for one in sealed.existing if one.line is None)
    yield from (f"    tests: {line}" for line in legs.swapped(sealed))
    if sealed.independence == "allowed":
        yield f"    judged by {legs.INDEPENDENT['allowed']}"
    yield from (f"    breach: {breach}" for breach in sealed.breaches)
    yield from (f"    drift, no fault of the agent: {drift}" for drift in sealed.drift)
    yield f"{sealed.ended}  {_result(plan, sealed)}, after {sealed.seconds:.1f} s{_cost(sealed)}"


def _changed(sealed: Receipt) -> str:
    """Name the first changed files, with their lines, and count the others."""
    named = [legs.changed(item) for item in sealed.changed[:5]]
    rest = len(sealed.changed) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")


def _result(plan: Plan, sealed: Receipt) -> str:
    """Say what a leg came to: what Relay derived, and what the agent claimed where that differs."""
    if sealed.ended_by != "reply":
        why = " ".join((sealed.problem or "").split())[:LONGEST]
        verdict = f", so its verdict is {sealed.verdict}" if sealed.verdict is not None else ""
        return f"ended by {sealed.ended_by}" + (f" ({why})" if why else "") + verdict
    if sealed.kind == "work":
        checked = (
            "nobody checked it, as the phase trusts" if plan.phase(sealed.phase or "").done == "trust" else "a claim"
        )
        asks = ", and asks a question" if sealed.asks else ""
        return f"the agent says {sealed.status} ({checked}){asks}"
    same = sealed.claimed_verdict == sealed.verdict
    claimed = "as the agent says" if same else f"though the agent says {sealed.claimed_verdict or 'nothing'}"
    score = f", {sealed.score} criteria hold" if sealed.score else ""
    return f"verdict {sealed.verdict}, {claimed}{score}"


def _act(sealed: Receipt) -> Iterator[str]:
    """Tell one act: who did it, and what became of it."""
    effect = sealed.effect or {}
    yield f"{sealed.ended}  {sealed.leg}: {sealed.by}: {telling.result_of(sealed)}"
    if sealed.pins is not None:
        pins = sealed.pins
        yield f"    about head {pins.head[:SHORT]} on base {pins.base[:SHORT]}, tree {pins.tree[:SHORT]}"
    for name in EFFECTS:
        if effect.get(name):
            yield f"    {name}: {' '.join(effect[name].split())[:LONGEST]}"
    yield from (f"    Relay ran {legs.checked(sealed, index)}" for index in range(len(sealed.checks)))
    if sealed.why_sha256 is not None:
        yield f"    in words of their own, kept with it (sha256 {sealed.why_sha256[:SHORT]})"


def _ended(plan: Plan, chain: Sequence[Receipt]) -> Iterator[str]:
    """Say how the run stands, what it took, and how its boundaries were kept."""
    taken = [sealed for sealed in chain if sealed.kind != "act"]
    spent, unknown = history.spent(chain), any(sealed.cost_microusd is None for sealed in taken)
    rounds = max((sealed.round for sealed in chain), default=1)
    counts = [runs.count(len(taken), "leg"), runs.count(len(chain) - len(taken), "act"), runs.count(rounds, "round")]
    known = round(spent["usd"] * 1_000_000)
    least = "at least " if unknown and known else ""
    cost = least + runs.dollars(None if unknown and not known else known)
    step = rules.next_leg(plan, chain)
    yield f"outcome: {runs.told(rules.standing(plan, step), forced=runs.forced(chain, step))}"
    yield f"in all: {', '.join(counts)}, {runs.duration(spent['minutes'] * 60)} of agents, {cost}"
    bare = [sealed.leg for sealed in taken if sealed.jail in {None, "off"}]
    if bare and len(bare) == len(taken):
        yield "boundaries were watched, not enforced: there was no jail"
    elif bare:
        yield f"boundaries were watched, not enforced, in {', '.join(bare)}: there was no jail"
    elif taken:
        yield f"boundaries were enforced by {', '.join(sorted({sealed.jail or '' for sealed in taken}))}"


def _cost(sealed: Receipt) -> str:
    """Say what a leg cost, where it cost anything."""
    return "" if sealed.cost_microusd == 0 else f", {runs.dollars(sealed.cost_microusd)}"

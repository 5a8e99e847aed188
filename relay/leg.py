"""One leg, from the gate to a sealed receipt."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from relay import backends, confine, offer, ready, settle, weigh
from relay.backends.base import Lane, Needs
from relay.host import clock, jail, lock, proc, scratch
from relay.live import Live
from relay.record import briefing, creation, evidence, reply
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.record.transcript import Transcript, carry
from relay.rules import gate, night, order
from relay.rules import plan as rules
from relay.rules.night import UNBOUND, Allowance
from relay.terms import Ask, Plan, Receipt, Taken
from relay.underway import Leg

Piece = TypeVar("Piece")


def run(
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    go: rules.Go,
    live: Live,
    allowance: Allowance = UNBOUND,
) -> Receipt:
    """Run the leg that the plan ordered; returns its receipt, or that of the offer where a person takes the leg.

    What the agent does meanwhile is told to `live`. A leg that only `allowance` cut is sealed as interrupted.

    Raises `RelayError` (exit 6) where the gate refuses, before anything started. `Interrupted` passes through, and
    leaves a start without a receipt, which whoever takes the run's lock next seals.
    """
    gate.check([evidence.look(ledger, plan.run, leg, chain) for leg in go.reads], plan.run)
    briefing.document(ledger, plan, chain, go)
    phase = plan.phase(go.phase)
    backend = backends.named(plan.agent(phase.agent).backend)
    if backend.by_hand and go.offer is None:
        return offer.make(ledger, plan, chain, go)
    with _begun(ledger, plan, chain, go) as leg:
        whole, problem = ready.lease(leg) if go.offer is None else (leg, "")
        try:
            if not problem:
                whole = ready.ready(whole, allowance) if go.offer is None else offer.taken_up(whole, go.offer)
        except weigh.SetupError as error:
            problem = error.message
        taken = Taken(ended_by="setup", problem=problem) if problem else _take(whole, live, allowance)
        return settle.seal(whole, taken)


def preflight(plan: Plan, where: Path) -> dict[str, str]:
    """Ask every agent's backend whether it can run, before anything is spent; returns their versions."""
    return {agent.name: backends.named(agent.backend).preflight(agent, where) for agent in plan.agents}


@contextmanager
def _begun(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], go: rules.Go) -> Iterator[Leg]:
    """Take a number and write down the intent; from here on the leg is one that somebody must seal.

    Its lock is taken under the run's, before there is anything to see: nobody finds a leg that has no owner.
    """
    offered = offer.begun(ledger, plan.run, go.offer)
    with ExitStack() as owned:
        with lock.hold(ledger.run_lock(plan.run), "an append", plan.run, wait=10):
            if ledgers.receipts(ledger, plan.run) != tuple(chain):
                raise ready.Overtaken
            start = msgspec.structs.replace(
                offered or ready.intent(ledger, plan, go, act=None),
                leg=ledgers.next_leg_id(ledger, plan.run, go.phase),
                phase=go.phase,
                act=None,
                kind=plan.phase(go.phase).kind,
                started=clock.stamp(),
                relay=proc.this(),
            )
            if offered is None:
                start = msgspec.structs.replace(start, worktree=str(ledger.worktree(plan.run, start.leg)))
            owned.enter_context(lock.hold(ledger.leg_lock(plan.run, start.leg), f"leg {start.leg}", plan.run))
            ledgers.begin(ledger, start)
        yield Leg(ledger=ledger, plan=plan, chain=tuple(chain), go=go, start=start, began=clock.monotonic())


def _take(leg: Leg, live: Live, allowance: Allowance) -> Taken:
    """Let the backend take the leg; every byte it says goes into the transcript, every process into start.json."""
    ask = ready.ask(leg, allowance)
    folder = leg.ledger.leg(leg.plan.run, leg.start.leg)
    backend = backends.named(ask.agent.backend)
    with Transcript(folder / "transcript.jsonl", leg.redactor) as transcript:
        lane = Lane(
            sink=_both(transcript.write, live.heard),
            told=_both(transcript.tell, live.told),
            spawned=lambda process: ledgers.begin(leg.ledger, msgspec.structs.replace(leg.start, agent=process)),
            unfit=lambda raw: reply.decode(raw, ask.kind, ask.nonce)[1],
            cell=_cell(leg, ask, backend.needs(ask)),
        )
        try:
            taken = backend.take(ask, lane)
        finally:
            live.over()
            carry(ready.io(leg.start) / "session.jsonl", folder / "session.jsonl", leg.redactor)
    if why := night.cut(taken.ended_by, taken.usage, taken.cost_microusd, ready.limits(leg), ask.limits):
        return msgspec.structs.replace(taken, ended_by="interrupted", problem=why)
    return _within_budget(leg, taken)


def _within_budget(leg: Leg, taken: Taken) -> Taken:
    """Say of a leg that the run's budget ended what the run spent, and what is kept for its judges.

    Where it was a bound of the agent's own, the backend has said so.
    """
    minutes = rules.remaining(leg.plan, leg.chain, leg.go.phase)["minutes"]
    late = taken.ended_by == "timeout" and minutes is not None and minutes < leg.phase.minutes
    if not late and taken.ended_by != "budget":
        return taken
    used = {
        "usd": ((taken.cost_microusd or 0) + 1) / 1_000_000,  # a leg is bounded in whole millionths
        "minutes": (clock.monotonic() - leg.began) / 60 if late else 0,
        "tokens": taken.usage.input + taken.usage.output,
        "turns": taken.usage.turns,
    }
    why = order.used_up(leg.plan, leg.chain, leg.go.phase, used)
    return msgspec.structs.replace(taken, ended_by="budget", problem=why or taken.problem)


def _both(one: Callable[[Piece], None], other: Callable[[Piece], None]) -> Callable[[Piece], None]:
    """Return what gives each piece to both."""

    def give(piece: Piece) -> None:
        one(piece)
        other(piece)

    return give


def _cell(leg: Leg, ask: Ask, needs: Needs) -> jail.Cell | None:
    """Return the cell that holds the agent: a worker writes its worktree, a judge's writes vanish with it."""
    access = jail.Access.WRITE if ask.boundary == "implement" else jail.Access.SCRATCH
    return confine.cell(leg.ledger, leg.plan, leg.held, access, needs)


def rehearse(ledger: Ledger, plan: Plan, frozen: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield each phase with the prompt it would get; nothing is written but to a temporary folder."""
    with scratch.folder("rehearsal") as folder:
        draft = Ledger(repo=ledger.repo, root=Path(folder) / "relay")
        plan = creation.create(draft, plan, frozen)
        for phase in plan.phases:
            go = msgspec.structs.replace(rules.go(plan, (), phase.name, 1, "a rehearsal"), reads=())
            start = msgspec.structs.replace(ready.intent(draft, plan, go, act=None), leg=f"00-{phase.name}")
            leg = Leg(ledger=draft, plan=plan, chain=(), go=go, start=start, began=clock.monotonic())
            made = briefing.make(draft, plan, (), go, ask=ready.ask(leg), recovery=(), checked=(), criteria=())
            yield phase.name, made.prompt

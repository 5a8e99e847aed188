"""One leg, from the gate to a sealed receipt."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from relay import acts, backends, confine, recovery, settle, watch, weigh
from relay.errors import Exit, RelayError
from relay.host import clock, files, fingerprint, jail, lock, proc, snapshot, worktree
from relay.record import briefing, evidence, reply
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.record.transcript import Transcript
from relay.rules import gate, history
from relay.rules import plan as rules
from relay.settle import Leg
from relay.terms import Act, Ask, Limits, Plan, Receipt, Start, Taken


class Overtaken(Exception):  # noqa: N818 - nothing is wrong: the plan is asked again
    """Somebody sealed an act after the plan was asked, so what it ordered may no longer be what comes next."""


def run(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], go: rules.Go) -> Receipt:
    """Run the leg that the plan ordered; returns its receipt, or that of the offer where a person takes the leg.

    Raises `RelayError` (exit 6) where the gate refuses, before anything started. `Interrupted` passes through, and
    leaves a start without a receipt, which whoever takes the run's lock next seals.
    """
    gate.check([evidence.look(ledger, plan.run, leg, chain) for leg in go.reads], plan.run)
    briefing.document(ledger, plan, chain, go)
    phase = plan.phase(go.phase)
    backend = backends.named(plan.agent(phase.agent).backend)
    if backend.by_hand and go.offer is None:
        return _offer(ledger, plan, chain, go)
    with _begun(ledger, plan, chain, go) as leg:
        whole, problem = _lease(leg) if go.offer is None else (leg, "")
        try:
            if not problem:
                whole = _ready(whole) if go.offer is None else _taken_up(whole, go.offer)
        except weigh.SetupError as error:
            problem = error.message
        return settle.seal(whole, Taken(ended_by="setup", problem=problem) if problem else _take(whole))


def preflight(plan: Plan, where: Path) -> dict[str, str]:
    """Ask every agent's backend whether it can run, before anything is spent; returns their versions."""
    return {agent.name: backends.named(agent.backend).preflight(agent, where) for agent in plan.agents}


@contextmanager
def _begun(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], go: rules.Go) -> Iterator[Leg]:
    """Take a number and write down the intent; from here on the leg is one that somebody must seal.

    Its lock is taken under the run's, before there is anything to see: nobody finds a leg that has no owner.
    """
    offered = _offered(ledger, plan.run, go.offer)
    with ExitStack() as owned:
        with lock.hold(ledger.run_lock(plan.run), "an append", plan.run, wait=10):
            if ledgers.receipts(ledger, plan.run) != tuple(chain):
                raise Overtaken
            start = msgspec.structs.replace(
                offered or _start(ledger, plan, go, act=None),
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


def _start(ledger: Ledger, plan: Plan, go: rules.Go, act: Act | None) -> Start:
    """Fill in a start as far as it is known before there is a worktree."""
    return Start(
        schema=1,
        run=plan.run,
        leg="",
        phase=go.phase,
        act=act,
        kind="act" if act else plan.phase(go.phase).kind,
        round=go.round,
        start=go.start,
        base=go.base,
        common_dir=str(ledger.repo.common),
        nonce=os.urandom(16).hex(),
        started=clock.stamp(),
        relay=proc.this(),
    )


def _lease(leg: Leg) -> tuple[Leg, str]:
    """Make the leg's worktree and set it up; the problem that set-up met is returned in words."""
    ledger, plan = leg.ledger, leg.plan
    path = Path(leg.start.worktree or "")
    (path.parent / f"{path.name}.io").mkdir(parents=True, exist_ok=True, mode=0o700)
    lease = worktree.lease(ledger.repo, path, leg.start.start, f"relay run={plan.run} leg={leg.start.leg}")
    leg = msgspec.structs.replace(leg, lease=lease)
    log = ledger.leg(plan.run, leg.start.leg) / "setup.log"
    return leg, worktree.prepare(
        ledger.repo, lease, plan.worktree, log, lambda: confine.cell(ledger, plan, lease, jail.Access.WRITE, setup=True)
    )


def _ready(leg: Leg) -> Leg:
    """Recover, brief, take the fingerprints, and write all of it down before the agent starts."""
    ledger, plan, lease = leg.ledger, leg.plan, leg.held
    phase = plan.phase(leg.go.phase)
    # Before Relay runs anything of an agent's; the leg's own tree is looked at after that, and before its agent starts.
    around, promised = watch.take(ledger, plan, lease, tree=False), files.read(ledger.folder(plan.run) / "plan.toml")
    recovered = recovery.steps(leg)
    leg = settle.examined(leg) if settle.judges_criteria(plan, phase) else leg
    ask = _ask(leg)
    made = briefing.make(
        ledger,
        plan,
        leg.chain,
        leg.go,
        ask=ask,
        recovery=recovered,
        checked=leg.observed or recovery.outputs(leg),
        criteria=leg.criteria,
    )
    start = msgspec.structs.replace(
        leg.start,
        git_dir=str(lease.git_dir),
        pointer_sha256=lease.pointer_sha256,
        baseline=snapshot.baseline(ledger.repo, lease),
        fingerprint=around | (fingerprint.own(ledger.repo, lease) if phase.boundary == "verify-only" else {}),
    )
    files.write(ledger.leg(plan.run, start.leg) / "prompt.md", made.prompt.encode("utf-8", "replace"))
    ledgers.begin(ledger, start)
    return msgspec.structs.replace(leg, start=start, brief=made, promised=promised)


def _ask(leg: Leg) -> Ask:
    """Make what the backend is given; the time it has is the phase's, or what the budget has left."""
    plan, start = leg.plan, leg.start
    phase, agent = plan.phase(leg.go.phase), plan.agent(plan.phase(leg.go.phase).agent)
    reply_path = str(_io(start) / "reply.json")
    _, minutes = rules.remaining(plan, leg.chain, phase.name)
    return Ask(
        run=plan.run,
        leg=start.leg,
        phase=phase.name,
        kind=phase.kind,
        boundary=phase.boundary,
        round=leg.go.round,
        turn=leg.go.turn,
        nonce=start.nonce,
        prompt=leg.brief.prompt if leg.brief else "",
        folder=start.worktree or "",
        reply_path=reply_path,
        limits=Limits(seconds=60 * (phase.minutes if minutes is None else min(phase.minutes, minutes)), output=1 << 28),
        agent=agent,
        env={name: os.environ[name] for name in agent.env if name in os.environ}
        | {
            "RELAY_RUN": plan.run,
            "RELAY_LEG": start.leg,
            "RELAY_PHASE": phase.name,
            "RELAY_KIND": phase.kind,
            "RELAY_NONCE": start.nonce,
            "RELAY_REPLY": reply_path,
        },
    )


def _take(leg: Leg) -> Taken:
    """Let the backend take the leg; every byte it says goes into the transcript, every process into start.json."""
    ask = _ask(leg)
    folder = leg.ledger.leg(leg.plan.run, leg.start.leg)
    with Transcript(folder / "transcript.jsonl", leg.redactor) as transcript:
        taken = backends.named(ask.agent.backend).take(
            ask,
            transcript.write,
            lambda process: ledgers.begin(leg.ledger, msgspec.structs.replace(leg.start, agent=process)),
            _cell(leg, ask),
        )
    _, minutes = rules.remaining(leg.plan, leg.chain, leg.go.phase)
    if taken.ended_by == "timeout" and minutes is not None and minutes < leg.plan.phase(leg.go.phase).minutes:
        return msgspec.structs.replace(taken, ended_by="budget", problem="the budget's minutes are used up")
    return taken


def _cell(leg: Leg, ask: Ask) -> jail.Cell | None:
    """Return the cell that holds the agent: a worker writes its worktree, a judge's writes vanish with it."""
    access = jail.Access.WRITE if ask.boundary == "implement" else jail.Access.SCRATCH
    return confine.cell(
        leg.ledger, leg.plan, leg.held, access, showing=confine.programs(ask.agent), writing=(_io(leg.start),)
    )


def _io(start: Start) -> Path:
    """Return the folder beside the worktree where the reply goes."""
    path = Path(start.worktree or "")
    return path.parent / f"{path.name}.io"


def rehearse(ledger: Ledger, plan: Plan, frozen: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield each phase with the prompt it would get; nothing is written but to a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="relay-rehearsal-") as folder:
        draft = Ledger(repo=ledger.repo, root=Path(folder) / "relay")
        plan = ledgers.create(draft, plan, frozen)
        for phase in plan.phases:
            go = msgspec.structs.replace(rules.go(plan, (), phase.name, 1, "a rehearsal"), reads=())
            start = msgspec.structs.replace(_start(draft, plan, go, act=None), leg=f"00-{phase.name}")
            leg = Leg(ledger=draft, plan=plan, chain=(), go=go, start=start, began=clock.monotonic())
            made = briefing.make(draft, plan, (), go, ask=_ask(leg), recovery=(), checked=(), criteria=())
            yield phase.name, made.prompt


# --- a leg that a person takes ------------------------------------------------------------------------------------


def _offer(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], go: rules.Go) -> Receipt:
    """Offer a leg to a person: a worktree, a prompt, and the path where the reply is awaited."""
    with lock.hold(ledger.run_lock(plan.run), "an offer", plan.run, wait=10):
        if ledgers.receipts(ledger, plan.run) != tuple(chain):
            raise Overtaken
        leg_id = ledgers.next_leg_id(ledger, plan.run, "offer")
        start = msgspec.structs.replace(
            _start(ledger, plan, go, act="offer"), leg=leg_id, worktree=str(ledger.worktree(plan.run, leg_id))
        )
        ledgers.begin(ledger, start)
        leg = Leg(ledger=ledger, plan=plan, chain=tuple(chain), go=go, start=start, began=clock.monotonic())
        leg, problem = _lease(leg)
        if problem:
            log = ledger.leg(plan.run, leg_id) / "setup.log"
            raise RelayError(
                f"the worktree for the offer could not be set up: {problem}",
                hint=f"look at `{log}`, then relay resume {plan.run}",
                exit_code=Exit.HUMAN,
            )
        leg = _ready(leg)
        schema = reply.schema(plan.phase(go.phase).kind)
        files.write(_io(start) / "reply.schema.json", msgspec.json.format(msgspec.json.encode(schema)))
        effect = {
            "phase": go.phase,
            "worktree": start.worktree or "",
            "prompt": str(ledger.leg(plan.run, leg_id) / "prompt.md"),
            "reply": str(_io(start) / "reply.json"),
        }
        return acts.seal(ledger, plan, chain, "offer", leg=leg_id, effect=effect, round_=go.round, by="relay")


def _taken_up(leg: Leg, offer: str) -> Leg:
    """Give the leg that a person took the prompt of its offer, and to a judge's leg what Relay sees of the criteria."""
    ledger, run = leg.ledger, leg.plan.run
    files.write(ledger.leg(run, leg.start.leg) / "prompt.md", files.read(ledger.leg(run, offer) / "prompt.md"))
    leg = settle.examined(leg) if settle.judges_criteria(leg.plan, leg.phase) else leg
    made = briefing.make(
        ledger, leg.plan, leg.chain, leg.go, ask=_ask(leg), recovery=(), checked=leg.observed, criteria=leg.criteria
    )
    return msgspec.structs.replace(leg, brief=made)


def _offered(ledger: Ledger, run: str, offer: str | None) -> Start | None:
    """Read the start of an offer that is being taken."""
    if offer is None:
        return None
    from relay.record import receipt

    path = ledger.leg(run, offer) / "start.json"
    return receipt.decode(files.read(path), Start, str(path))


def unfit(ledger: Ledger, plan: Plan, chain: Sequence[Receipt]) -> str:
    """Say what is wrong with the reply that a person wrote, so that it can be mended before it is taken."""
    offer = history.offer(chain)
    start = _offered(ledger, plan.run, offer.leg) if offer is not None else None
    if offer is None or start is None:
        return ""
    effect = offer.effect or {}
    try:
        raw = files.read(Path(effect["reply"]))
    except (OSError, RelayError) as error:
        return error.message if isinstance(error, RelayError) else str(error.strerror)
    return reply.decode(raw, plan.phase(effect["phase"]).kind, start.nonce)[1]


def awaited(chain: Sequence[Receipt]) -> bool:
    """Tell whether the reply that the newest offer waits for has been written."""
    offer = history.offer(chain)
    return offer is not None and Path((offer.effect or {}).get("reply", "")).is_file()

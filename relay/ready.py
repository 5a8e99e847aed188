"""All that stands ready when an agent starts: the intent, the worktree, the prompt, the fingerprints, the limits."""

import os
from pathlib import Path

import msgspec

from relay import caches, clean, confine, examination, loss, recovery, watch
from relay.errors import Exit
from relay.host import clock, files, proc, snapshot, worktree
from relay.host.tripwire import fingerprint, guarded
from relay.record import briefing, reply
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import history
from relay.rules import plan as rules
from relay.rules.night import UNBOUND, Allowance
from relay.terms import Act, Ask, Limits, Plan, Start
from relay.underway import Leg


class Overtaken(Exception):  # noqa: N818 - nothing is wrong: the plan is asked again
    """Somebody sealed an act after the plan was asked, so what it ordered may no longer be what comes next."""


def intent(ledger: Ledger, plan: Plan, go: rules.Go, act: Act | None) -> Start:
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


def lease(leg: Leg) -> tuple[Leg, str]:
    """Make the leg's worktree and set it up; the problem that set-up met is returned in words."""
    ledger, plan = leg.ledger, leg.plan
    path = Path(leg.start.worktree or "")
    (path.parent / f"{path.name}.io").mkdir(parents=True, exist_ok=True, mode=0o700)
    leased = worktree.lease(ledger.repo, path, leg.start.start, f"relay run={plan.run} leg={leg.start.leg}")
    loss.beat.begin(leased.git_dir)
    leg = msgspec.structs.replace(leg, lease=leased)
    log = ledger.leg(plan.run, leg.start.leg) / "setup.log"
    return leg, caches.prepare(ledger, plan, leased, leg.start.start, leg.start.base, log)


def ready(leg: Leg, allowance: Allowance = UNBOUND) -> Leg:
    """Recover, brief, take the fingerprints, and write all of it down before the agent starts."""
    ledger, plan, lease = leg.ledger, leg.plan, leg.held
    phase, rung = plan.phase(leg.go.phase), confine.rung(plan)[0]
    if not rung.holds:
        guarded.keep(ledger.repo, ledger.leg(plan.run, leg.start.leg))
    # Before Relay runs anything of an agent's; the leg's own tree is looked at after that, and before its agent starts.
    around, promised = watch.take(ledger, plan, lease, tree=False), files.read(ledger.folder(plan.run) / "plan.toml")
    recovered = recovery.steps(leg)
    leg = examination.before(leg) if examination.judges_criteria(plan, phase) else leg
    asked = ask(leg, allowance)
    made = briefing.make(
        ledger,
        plan,
        leg.chain,
        leg.go,
        ask=asked,
        recovery=recovered,
        checked=leg.observed or recovery.outputs(leg),
        criteria=leg.criteria,
        tests=leg.tests.shown if leg.tests else None,
    )
    if made.cut:
        raise clean.SetupError(made.cut, exit_code=Exit.HUMAN)
    for path, text in made.files.items():
        Path(path).parent.mkdir(exist_ok=True, mode=0o700)
        files.write(Path(path), text.encode("utf-8", "replace"))
    start = msgspec.structs.replace(
        leg.start,
        git_dir=str(lease.git_dir),
        pointer_sha256=lease.pointer_sha256,
        baseline=snapshot.baseline(ledger.repo, lease, rung),
        fingerprint=around | (fingerprint.own(ledger.repo, lease, rung) if phase.boundary == "verify-only" else {}),
    )
    prompt = leg.redactor.bytes(made.prompt.encode("utf-8", "replace"))
    files.write(ledger.leg(plan.run, start.leg) / "prompt.md", prompt)
    ledgers.begin(ledger, start)
    return msgspec.structs.replace(leg, start=start, brief=made, promised=promised)


def ask(leg: Leg, allowance: Allowance = UNBOUND) -> Ask:
    """Make what the backend is given; the time it has is the phase's, or what the budget or the night has left."""
    plan, start = leg.plan, leg.start
    phase, agent = plan.phase(leg.go.phase), plan.agent(plan.phase(leg.go.phase).agent)
    reply_path = str(io(start) / "reply.json")
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
        limits=allowance.bound(limits(leg), clock.now()),
        agent=agent,
        schema=reply.schema(phase.kind),
        context=phase.context,
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


def limits(leg: Leg) -> Limits:
    """Return what the leg may use: what the phase and the agent say, and no more than the run's budget has left.

    What a person adds to the budget is added to the agent's own bounds, too: it is meant to let the leg go on.
    """
    agent = leg.plan.agent(leg.phase.agent)
    left = rules.remaining(leg.plan, leg.chain, leg.go.phase)
    more = {name: history.extended(leg.chain, name) for name in ("turns", "tokens", "usd")}
    own = {name: cap + more[name] for name in more if (cap := getattr(agent, name)) is not None}
    turns, tokens, usd = (_least(left[name], own.get(name)) for name in more)
    return Limits(
        seconds=60 * (_least(left["minutes"], leg.phase.minutes) or 0),
        idle=None if agent.idle is None else 60 * agent.idle,
        output=1 << 28,
        turns=None if turns is None else max(1, int(turns)),
        tokens=None if tokens is None else int(tokens),
        microusd=None if usd is None else int(usd * 1_000_000),
    )


def _least(*caps: float | None) -> float | None:
    return min((cap for cap in caps if cap is not None), default=None)


def io(start: Start) -> Path:
    """Return the folder beside the worktree where the reply goes."""
    path = Path(start.worktree or "")
    return path.parent / f"{path.name}.io"

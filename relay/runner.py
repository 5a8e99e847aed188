"""The one loop: while the plan says go, run the leg. It closes over receipts on disk, never over memory."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from relay import acts, confine, leg, nights, notify, offer, ready, salvage, ship
from relay.errors import Exit, Interrupted, RelayError
from relay.host import clock, git, lock, term, worktree
from relay.record import creation, freeze
from relay.record import ledger as ledgers
from relay.record.freeze import Frozen
from relay.record.ledger import Ledger
from relay.rules import history
from relay.rules import plan as rules
from relay.rules.night import UNBOUND, Allowance
from relay.telling import Teller
from relay.terms import Plan, Receipt, Struct

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

REAPING: Final = 60.0
"""Seconds for which a reaper that holds the repository is waited for; it ends stubborn programs in a few."""

LAG: Final = 1.0
"""Seconds for which who holds a lock may stand nowhere: that is written after it is taken, and goes before it."""

REAPS: Final = "relay reap"
"""What the reaper says it holds the repository for."""

RESUMED_BY_GO: Final = frozenset(
    {
        "no-change",
        "no-reply",
        "check-red",
        "max-legs",
        "inconclusive",
        "ship",
        "base",
        "interrupted",
        "crash",
        *history.RETRIED_BY_HAND,
    }
) - {"budget"}
"""What a plain `relay resume` tries again; a question wants an answer, a cap and a budget want more of it."""


class Order(Struct, frozen=True, kw_only=True):
    """What was asked of the loop: resume by hand, the phase after which to stop, what all its legs may use together.

    A night sends one notice of its own, so that its runs send none.
    """

    by_hand: bool = False
    until: str | None = None
    allowance: Allowance = UNBOUND
    notices: bool = True


def start(ledger: Ledger, frozen: Frozen, order: Order, tell: Teller) -> tuple[str, rules.Next]:
    """Write a frozen run down and drive it, all under the repository's lock: a run that is refused leaves no trace."""
    confine.rung(frozen.plan)
    leg.preflight(frozen.plan, ledger.repo.main_top or ledger.repo.common)
    ship.preflight(ledger.repo, frozen.plan)
    worktree.refuse_inside(ledger.repo, ledger.worktree(frozen.plan.run, ""))
    plan = freeze.unused(ledger, frozen.plan)
    with occupied(ledger, f"run {plan.run}", plan.run), signals():
        plan = creation.create(ledger, plan, frozen.files)
        tell.begun(plan, confine.rung(plan)[1])
        return plan.run, _guarded(ledger, plan, order, tell)


def drive(ledger: Ledger, run: str, order: Order, tell: Teller) -> rules.Next:
    """Run legs until the plan says something else than go; returns what it said.

    Holds the repository's lock for its whole life: exit 75 where another loop has it. On a signal the agent's
    processes end, the leg is sealed as interrupted, and `Interrupted` passes through.
    """
    with occupied(ledger, f"run {run}", run), signals():
        return _guarded(ledger, ledgers.read_plan(ledger, run), order, tell)


class OccupiedError(RelayError):
    """Another process holds the repository."""


@contextmanager
def occupied(ledger: Ledger, what: str, run: str = "") -> Iterator[None]:
    """Hold the repository's lock inside a `with` block; `OccupiedError` (exit 75) where another process has it."""
    with ExitStack() as held:
        try:
            held.enter_context(patient(ledger, ledger.lock, lambda: lock.hold(ledger.lock, what, run)))
        except RelayError as error:
            if error.exit_code != Exit.HELD:
                raise
            raise OccupiedError(_held(ledger) or error.message, hint=error.hint, exit_code=Exit.HELD) from None
        yield


def _held(ledger: Ledger) -> str:
    """Say who holds the repository, and whether a night does; nothing where that stands nowhere."""
    who, night = lock.holder(ledger.lock), nights.going(ledger)
    if who is None:
        return ""
    whose = " of a night" if who.run and night is not None and night.process == who.process else ""
    return f"`{who.what}`{whose} already holds the repository: process {who.process.pid}, since {who.since}"


@contextmanager
def patient(ledger: Ledger, path: Path, hold: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Hold the lock at `path` inside a `with` block; a reaper that has it is done soon, so it is waited for a while."""
    begun, told = clock.monotonic(), False
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(hold())
                break
            except RelayError as error:
                holder, waited = lock.holder(ledger.lock), clock.monotonic() - begun
                reaper = holder if holder is not None and holder.what == REAPS and waited < REAPING else None
                nobody = waited < LAG and lock.holder(path) is None
                if error.exit_code != Exit.HELD or not (reaper or nobody):
                    raise
                if reaper is not None and not told:
                    told = True
                    term.say(f"waiting for `{REAPS}`, process {reaper.process.pid}, to end")
                clock.pause(0.05)
        yield


def _guarded(ledger: Ledger, plan: Plan, order: Order, tell: Teller) -> rules.Next:
    """Seal what a signal cut short before it passes on."""
    try:
        step = _loop(ledger, plan, order, tell)
    except Interrupted as interrupted:
        interrupted.run = plan.run
        with lock.hold(ledger.run_lock(plan.run), "salvage", plan.run, wait=10):
            for sealed in salvage.seal_open(ledger, plan):
                tell.sealed(sealed)
        raise
    if order.notices:
        notify.about(ledger, plan, step)
    return step


def _loop(ledger: Ledger, plan: Plan, order: Order, tell: Teller) -> rules.Next:
    """Ask the plan, do what it says, and begin again from disk."""
    begun = len(_lifted(ledger, plan, tell) if order.by_hand else settled(ledger, plan, tell))
    while True:
        chain = settled(ledger, plan, tell)
        step = due(ledger, plan, chain)
        left = order.allowance.after(chain[begun:])
        if _reached(plan, chain[begun:], step, order.until):
            return step
        match step:
            case rules.Go() if left.over(clock.now()) or _cut(order, chain[begun:]):
                return step
            case rules.Go():
                tell.starting(plan, step)
                with suppress(ready.Overtaken):
                    tell.sealed(leg.run(ledger, plan, chain, step, tell.live(plan, step), left))
            case rules.ShipIt():
                with lock.hold(ledger.run_lock(plan.run), "shipping", plan.run, wait=10):
                    if ledgers.receipts(ledger, plan.run) == chain:
                        tell.sealed(ship.ship(ledger, plan, chain, step.approval))
            case rules.Accepted():
                _branch(ledger, plan, chain)
                if plan.ship.approval == "manual" or plan.unchecked:
                    return step
                with lock.hold(ledger.run_lock(plan.run), "approving", plan.run, wait=10):
                    if ledgers.receipts(ledger, plan.run) != chain:
                        continue
                    tell.sealed(ship.approve(ledger, plan, chain, None, by="relay, as ship.approval says"))
            case _:
                return step


def _cut(order: Order, new: tuple[Receipt, ...]) -> bool:
    """Tell whether what the legs may use together cut the newest one: whoever gave so much asks for no further leg."""
    return order.allowance != UNBOUND and bool(new) and new[-1].ended_by == "interrupted"


def _lifted(ledger: Ledger, plan: Plan, tell: Teller) -> tuple[Receipt, ...]:
    """Record that a person resumed: it lifts a stop, and then what the run was waiting for when it was stopped.

    A leg that is sealed only now is news: it was not what the person meant.
    """
    known = len(ledgers.receipts(ledger, plan.run))
    chain = settled(ledger, plan, tell)
    if any(sealed.kind != "act" for sealed in chain[known:]):
        return chain
    for _ in range(2):
        if _tries_again(rules.next_leg(plan, chain)):
            with lock.hold(ledger.run_lock(plan.run), "resuming", plan.run, wait=10):
                tell.sealed(acts.seal(ledger, plan, chain, "go"))
            chain = settled(ledger, plan, tell)
    return chain


def settled(ledger: Ledger, plan: Plan, tell: Teller) -> tuple[Receipt, ...]:
    """Seal what nobody owns, then read the receipts."""
    with lock.hold(ledger.run_lock(plan.run), "a look", plan.run, wait=10):
        for sealed in salvage.seal_open(ledger, plan):
            tell.sealed(sealed)
        return ledgers.receipts(ledger, plan.run)


def due(ledger: Ledger, plan: Plan, chain: tuple[Receipt, ...]) -> rules.Next:
    """Look at the world where the plan says to wait for it: for a time, or for a person's reply."""
    step = rules.next_leg(plan, chain)
    if isinstance(step, rules.Wait) and clock.parse(step.until) <= clock.now():
        return step.go
    if isinstance(step, rules.Human) and step.reason == "offer" and offer.awaited(chain):
        problem = offer.unfit(ledger, plan, chain)
        if problem:
            return rules.Human(reason="offer", leg=step.leg, text=problem)
        return rules.taken(plan, chain)
    return step


def _tries_again(step: rules.Next) -> bool:
    """Tell whether a plain `relay resume` lifts what stands in the way, which an act then records."""
    if isinstance(step, rules.End):
        return step.outcome == "stopped"
    return isinstance(step, rules.Human) and step.reason in RESUMED_BY_GO


def _reached(plan: Plan, new: tuple[Receipt, ...], step: rules.Next, until: str | None) -> bool:
    """Tell whether the phase after which a person wanted a pause has ended, or lies behind already.

    `new` are the receipts of this loop. Approving and shipping lie behind every phase.
    """
    if until is None:
        return False
    if isinstance(step, rules.Accepted | rules.ShipIt):
        return plan.ship.approval == "auto"
    if not isinstance(step, rules.Go) or step.phase == until:
        return False
    order = [phase.name for phase in plan.phases]
    return order.index(step.phase) > order.index(until) or (bool(new) and new[-1].phase == until)


def _branch(ledger: Ledger, plan: Plan, chain: tuple[Receipt, ...]) -> None:
    """Let the branch `relay/RUN` appear at what was accepted; a branch that somebody moved is left where it is."""
    name, head = f"refs/heads/relay/{plan.run}", history.head(plan, chain)
    now = git.resolve(ledger.repo, name)
    ours = {sealed.head for sealed in chain}
    if now is None or (now != head and now in ours):
        try:
            git.update_ref(ledger.repo, name, head, now)
        except RelayError:
            return  # a branch `relay` leaves no room for `relay/RUN` (pitfalls row 94); the ref under refs/relay/ stays


@contextmanager
def signals() -> Iterator[None]:
    """Turn the first signal that asks to end into `Interrupted`; later ones do nothing, until the process ends."""
    came: list[int] = []

    def end(signum: int, _frame: FrameType | None) -> None:
        if not came:
            came.append(signum)
            raise Interrupted(signum)

    before = {name: signal.signal(name, end) for name in SIGNALS if signal.getsignal(name) != signal.SIG_IGN}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, signal.SIG_IGN if came else handler)


def stop(ledger: Ledger, run: str) -> bool:
    """Ask the loop that works on a run to end; tell whether there was one. A night is asked to end that run alone."""
    holder, night = lock.holder(ledger.lock), nights.going(ledger)
    if holder is None or holder.run != run:
        return False
    if night is not None and night.process == holder.process:
        return nights.stop(ledger, run)
    os.kill(holder.process.pid, signal.SIGTERM)
    return True

"""What every verb has: the way to a run, and how it is told where that stands."""

import math
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from relay import aftermath, telling
from relay.commands.options import as_json, everywhere, folder
from relay.errors import Exit, RelayError
from relay.host import repository, term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import plan as rules
from relay.telling import coloured
from relay.terms import Plan, Receipt

__all__ = ["as_json", "code", "everywhere", "finish", "folder", "ledger", "next_command", "outcome", "run_or_only"]


GLANCE: Final = 5.0
"""Seconds that a command such as `relay status` spends on all forges together."""


def ledger() -> Ledger:
    """Return the ledger of the repository here."""
    return ledgers.at(repository.discover(folder()))


def run_or_only(here: Ledger, wanted: str | None, what: str) -> str:
    """Return the run that is meant: the one named, else the only one that is not ended."""
    if wanted is not None:
        return named(here, wanted)
    open_ones = [run for run in ledgers.runs(here) if _open(here, run)]
    if len(open_ones) == 1:
        return open_ones[0]
    if not open_ones:
        raise RelayError(f"there is no run to {what}", hint="relay run SPEC")
    raise RelayError(f"{len(open_ones)} runs are open: {', '.join(open_ones)}", hint=f"relay {what} RUN")


def named(here: Ledger, wanted: str) -> str:
    """Return the run that a person names, in part if it must be: where several fit, the only one that is open."""
    fitting = [run for run in ledgers.runs(here) if wanted and wanted in run]
    open_ones = [run for run in fitting if _open(here, run)] if len(fitting) > 1 and wanted not in fitting else []
    return open_ones[0] if len(open_ones) == 1 else ledgers.find(here, wanted)


def _open(here: Ledger, run: str) -> bool:
    """Tell whether a run can still go on."""
    return outcome(here, run) not in {"shipped", "not-accepted", "proposed"}


@contextmanager
def deciding(here: Ledger, run: str, what: str) -> Iterator[tuple[Plan, tuple[Receipt, ...], rules.Next]]:
    """Hold a run for an act of a person: legs that nobody owns are sealed first, then the plan is asked."""
    from relay import salvage
    from relay.host import lock
    from relay.telling import Teller

    plan = ledgers.read_plan(here, run)
    with lock.hold(here.run_lock(run), f"relay {what}", run, wait=10):
        for sealed in salvage.seal_open(here, plan):
            Teller.sealed(sealed)
        chain = ledgers.receipts(here, run)
        yield plan, chain, rules.next_leg(plan, chain)


def outcome(here: Ledger, run: str) -> str:
    """Derive a run's outcome from its receipts."""
    return rules.outcome(rules.next_leg(ledgers.read_plan(here, run), ledgers.receipts(here, run)))


def follow(here: Ledger, plan: Plan, *, verify: bool = False) -> str:
    """Look after an open proposal: seal its merge or its end, and say that; `verify` says there is time to confirm.

    Where there is none, all that one command looks after shares `GLANCE`. What is left unasked is said, and returned.
    """
    from relay import ship
    from relay.host import clock, lock
    from relay.telling import Teller
    from relay.ways import patience

    over = math.inf
    if not verify:
        over = click.get_current_context().meta.setdefault("relay.glance", clock.monotonic() + GLANCE)
    try:
        with patience.until(over), lock.hold(here.run_lock(plan.run), "following", plan.run):
            sealed = ship.follow(here, plan, ledgers.receipts(here, plan.run), verify=verify)
    except RelayError as error:
        unasked = f"its proposal cannot be looked at now: {error.message}"
        term.say(f"{plan.run}: {unasked}")
        return unasked
    if sealed is not None:
        Teller.sealed(sealed)
        tell(here, plan, rules.next_leg(plan, ledgers.receipts(here, plan.run)))
    return ""


def words(text: str, what: str, hint: str) -> str:
    """Return a person's own words; `RelayError` where there are none, or still the one that a hint prints for them."""
    if text.strip() in {"", "TEXT"}:
        wrong = f"the word `{text}`, which stands for yours" if text.strip() else "empty"
        raise RelayError(f"the {what} is {wrong}", hint=hint)
    return text


def tell(here: Ledger, plan: Plan, step: rules.Next) -> None:
    """Send a notice of how a run stands, where the person wants one."""
    from relay import notify

    notify.about(here, plan, step)


def finish(here: Ledger, run: str, step: rules.Next, until: str | None = None) -> int:
    """Say where a run stands and what to type next; returns the exit code. `until` is why it paused."""
    from relay.report import figures

    plan = ledgers.read_plan(here, run)
    stands, hint = rules.standing(plan, step), next_command(run, step)
    reason, text = (step.reason, step.text) if isinstance(step, rules.Human) else ("", "")
    term.event("run", run=run, outcome=stands, reason=reason, needs=text, next=hint.splitlines()[0])
    term.say(f"{run}: {coloured(stands)}  {text}".rstrip())
    if reason == "question":
        _ask(here, run, step.leg if isinstance(step, rules.Human) else "")
    for line in aftermath.lines(aftermath.look(here, plan, ledgers.receipts(here, run))):
        term.say(f"  {line}")
    if isinstance(step, rules.Wait):
        term.say(f"quota is used up until {figures.at(step.until)}")
    if until is not None and isinstance(step, rules.Go):
        term.say(f"paused before `{step.phase}`, since `{until}` has ended")
    if hint:
        term.hint(hint)
    return int(code(step))


def _ask(here: Ledger, run: str, leg: str) -> None:
    """Show what an agent asks: the person need not look for it."""
    from relay.record import evidence

    asked = next((sealed for sealed in ledgers.receipts(here, run) if sealed.leg == leg), None)
    answer = evidence.reply_of(here, asked) if asked is not None else None
    if answer is not None and answer.question:
        term.say(f"  it asks: {answer.question}")


def code(step: rules.Next) -> Exit:
    """Return the exit code that a run's standing means."""
    match step:
        case rules.Human():
            return rules.EXIT[step.reason]
        case rules.Wait():
            return Exit.AGENT
        case rules.End(outcome="not-accepted" | "stopped"):
            return Exit.NOT_ACCEPTED
        case _:
            return Exit.OK


def next_command(run: str, step: rules.Next) -> str:
    """Say what to type next, in the folder where the person is."""
    at, more = "" if folder() == Path() else f"-C {shlex.quote(str(folder()))} ", ""
    if isinstance(step, rules.Human) and step.reason == "budget":
        here = ledger()
        more = telling.raised(ledgers.read_plan(here, run), ledgers.receipts(here, run))
    return telling.next_command(run, step, more).replace("relay ", f"relay {at}")

"""What every verb has: the options that hold everywhere, and the way to a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from relay.errors import Exit, RelayError
from relay.host import repository, term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import plan as rules

KEPT: Final = "relay.everywhere"


def everywhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-C`, `-q`, `-v` and `--json`: before the verb or after it, they mean the same."""
    for decorate in (
        click.option("--json", "as_json", is_flag=True, expose_value=False, callback=_keep, help="JSON lines on stdout."),
        click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_keep, help="Say more."),
        click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_keep, help="Say only what went wrong."),
        click.option("-C", "folder", metavar="DIR", expose_value=False, callback=_keep, help="Work in DIR."),
    ):
        function = decorate(function)
    return function


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Remember an option wherever it stood, and set the terminal by it."""
    kept: dict[str, object] = context.meta.setdefault(KEPT, {})
    if value:
        kept[parameter.name or ""] = value
    term.configure(
        quiet=bool(kept.get("quiet")), verbose=bool(kept.get("verbose")), json=bool(kept.get("as_json"))
    )


def folder() -> Path:
    """Return the folder that `-C` names, else the one Relay was called in."""
    kept = click.get_current_context().meta.get(KEPT, {})
    return Path(str(kept.get("folder", ".")))


def as_json() -> bool:
    """Tell whether `--json` was given."""
    return bool(click.get_current_context().meta.get(KEPT, {}).get("as_json"))


def ledger() -> Ledger:
    """Return the ledger of the repository here."""
    return ledgers.at(repository.discover(folder()))


def run_or_only(here: Ledger, wanted: str | None, what: str) -> str:
    """Return the run that is meant: the one named, else the only one that is not ended."""
    if wanted is not None:
        return ledgers.find(here, wanted)
    known = ledgers.runs(here)
    open_ones = [run for run in known if outcome(here, run) not in {"shipped", "not-accepted", "proposed"}]
    if len(open_ones) == 1:
        return open_ones[0]
    if not open_ones:
        raise RelayError(f"there is no run to {what}", hint="relay run SPEC")
    raise RelayError(f"{len(open_ones)} runs are open: {', '.join(open_ones)}", hint=f"relay {what} RUN")


def outcome(here: Ledger, run: str) -> str:
    """Derive a run's outcome from its receipts."""
    return rules.outcome(rules.next_leg(ledgers.read_plan(here, run), ledgers.receipts(here, run)))


def finish(here: Ledger, run: str, step: rules.Next) -> int:
    """Say where a run stands and what to type next; returns the exit code."""
    plan = ledgers.read_plan(here, run)
    stands = rules.outcome(step)
    hint = next_command(run, step)
    shown = f"{stands} (unchecked)" if plan.unchecked and stands in {"accepted", "proposed", "shipped"} else stands
    reason = step.reason if isinstance(step, rules.Human) else ""
    term.event("run", run=run, outcome=shown, reason=reason, next=hint)
    colour = {"accepted": "green", "shipped": "green", "needs-human": "red"}.get(stands, "yellow")
    term.say(f"{run}: {term.style(shown, colour)}" + (f"  {step.text}" if isinstance(step, rules.Human) else ""))
    if isinstance(step, rules.Wait):
        term.say(f"quota is used up until {step.until}")
    if hint:
        term.hint(hint)
    return int(code(step))


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
    """Say what to type next."""
    match step:
        case rules.Accepted():
            return f"relay approve {run}    (or relay reject {run} --why TEXT)"
        case rules.Human(reason="question"):
            return f"relay show {run}/{step.leg} note    then relay answer {run} TEXT"
        case rules.Human(reason="cap" | "stalemate"):
            return f"relay show {run}/{step.leg} note    then relay answer {run} TEXT, or relay resume {run} --rounds 1"
        case rules.Human(reason="offer"):
            return f"relay show {run}/{step.leg}    write the reply there, then relay resume {run}"
        case rules.Human(reason="budget"):
            return f"relay resume {run} --minutes N or --usd N"
        case rules.Human():
            return f"relay show {run}/{step.leg} log    then relay resume {run}"
        case rules.End(outcome="stopped") | rules.Go() | rules.Wait() | rules.ShipIt():
            return f"relay resume {run}"
        case _:
            return f"relay trace {run}"

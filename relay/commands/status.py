"""`relay status`: every run, how it stands, and what it needs; no git is run."""

import click

from relay.commands import common
from relay.errors import RelayError
from relay.host import lock, term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import run as report
from relay.rules import plan as rules
from relay.telling import coloured

ENDED = frozenset({"shipped", "not-accepted"})


@click.command("status")
@click.option("-a", "--all", "everything", is_flag=True, help="List ended runs too.")
@click.option("--offline", is_flag=True, help="Do not ask what became of open proposals.")
@common.everywhere
def command(everything: bool, offline: bool) -> int:  # noqa: FBT001 - options
    """List the runs of this repository, newest last; an open proposal is looked after."""
    here = common.ledger()
    holder = lock.holder(here.lock)
    held = holder.run if holder is not None else None
    rows, hidden = [], 0
    for run in ledgers.runs(here):
        line = _line(here, run, held=run == held)
        if not offline and str(line["outcome"]).startswith("proposed"):
            common.follow(here, ledgers.read_plan(here, run))
            line = _line(here, run, held=run == held)
        term.event("run", **line)
        if str(line["outcome"]).split(" ")[0] in ENDED and not everything:
            hidden += 1
            continue
        stands = coloured(str(line["outcome"])) + (" (held)" * bool(line["held"]))
        rows.append(
            [
                run,
                stands,
                str(line["leg"] or "-"),
                str(line["score"] or "-"),
                str(line["needs"]),
                str(line["next"]),
            ]
        )
    if common.as_json():
        return 0
    if rows:
        term.table(rows, ("run", "outcome", "leg", "score", "needs", "next"))
    if hidden:
        term.say(f"{hidden} ended run{'s' * (hidden != 1)} not listed: relay status --all")
    if not rows and not hidden:
        term.say("no runs yet")
        term.hint("relay run SPEC")
    return 0


def _line(here: Ledger, run: str, *, held: bool) -> dict[str, object]:
    """Derive one run's line from its receipts; a run that cannot be read says so instead of hiding the others."""
    try:
        plan = ledgers.read_plan(here, run)
        chain = ledgers.receipts(here, run)
    except RelayError as error:
        return {
            "run": run,
            "outcome": "unreadable",
            "held": held,
            "leg": None,
            "score": None,
            "rounds": 0,
            "cost_microusd": 0,
            "seconds": 0.0,
            "needs": error.message,
            "next": f"relay verify {run}",
        }
    step = rules.next_leg(plan, chain)
    legs = [receipt for receipt in chain if receipt.kind != "act"]
    return {
        "run": run,
        "outcome": rules.standing(plan, step),
        "held": held,
        "leg": chain[-1].leg if chain else None,
        "score": next((receipt.score for receipt in reversed(legs) if receipt.score), None),
        "rounds": chain[-1].round if chain else 1,
        "cost_microusd": sum(receipt.cost_microusd or 0 for receipt in legs),
        "seconds": round(sum(receipt.seconds for receipt in legs), 3),
        "needs": report.needs(step, held=held),
        "next": "" if held else common.next_command(run, step).splitlines()[0],
    }

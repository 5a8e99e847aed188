"""`relay resume [RUN]`: go on from the last sealed leg."""

import click

from relay.commands import common
from relay.errors import RelayError
from relay.host import term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import plan as rules


@click.command("resume")
@click.argument("run", required=False)
@click.option("--rounds", type=click.IntRange(1), help="Grant the judge that is at its cap N more rounds.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Add N minutes to the budget.")
@click.option("--usd", type=click.FloatRange(0, min_open=True), help="Add N dollars to the budget.")
@click.option("--tokens", type=click.IntRange(1), help="Add N tokens to the budget.")
@click.option("--turns", type=click.IntRange(1), help="Add N turns to the budget.")
@click.option("--until", metavar="PHASE", help="Pause when PHASE has ended and another one is due.")
@common.everywhere
def command(run: str | None, until: str | None, **more: float | None) -> int:
    """Go on with a run: after an interruption, an answer, a failure, a stop, or a wait."""
    from relay import runner
    from relay.telling import Teller

    here = common.ledger()
    wanted = common.run_or_only(here, run, "resume")
    plan = ledgers.read_plan(here, wanted)
    if until is not None and until not in {phase.name for phase in plan.phases}:
        raise RelayError(f"--until names no phase of this run: `{until}`", hint=", ".join(p.name for p in plan.phases))
    stands = common.outcome(here, wanted)
    if stands in {"shipped", "proposed", "not-accepted"}:
        term.say(f"{wanted} is {stands}: there is nothing to resume")
        term.hint(f"relay trace {wanted}")
        return int(common.code(rules.next_leg(plan, ledgers.receipts(here, wanted))))
    if extension := {name: str(value) for name, value in more.items() if value}:
        _extend(here, wanted, extension)
    term.say(f"resuming {term.style(wanted, 'bold')}: {plan.title}")
    step = runner.drive(here, wanted, runner.Order(by_hand=True, until=until), Teller())
    return common.finish(here, wanted, step, until)


def _extend(here: Ledger, run: str, effect: dict[str, str]) -> None:
    """Record that a person raised a cap."""
    from relay import acts

    with common.deciding(here, run, "resume") as (plan, chain, _):
        acts.seal(here, plan, chain, "extend", effect=effect)

"""`relay reject RUN --why TEXT`: send it back with a reason, or close it."""

from collections.abc import Sequence

import click

from relay.commands import common
from relay.errors import RelayError
from relay.host import term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import history
from relay.rules import plan as rules
from relay.terms import Plan, Receipt


@click.command("reject")
@click.argument("run")
@click.option("--why", required=True, metavar="TEXT", help="The reason; it is a must for every leg that follows.")
@click.option("--close", is_flag=True, help="End the run as not accepted, instead of sending it back.")
@common.everywhere
def command(run: str, why: str, close: bool) -> int:  # noqa: FBT001 - an option
    """Reject what a run made: its worker goes on with the reason, or the run ends here; its proposal is closed."""
    from relay import acts, salvage

    here = common.ledger()
    wanted = common.named(here, run)
    why = common.words(why, "reason", f"relay reject {wanted} --why TEXT")
    with common.deciding(here, wanted, "reject") as (plan, before, asked):
        _refuse_ended(wanted, asked)
        chain = _withdrawn(here, plan, before)
        _refuse_ended(wanted, rules.next_leg(plan, chain))
        kept = salvage.keep_offer(here, plan, chain)
        effect = {"close": "yes"} if close else {"back_to": _worker(plan, chain)}
        acts.seal(here, plan, chain, "reject", why=why, effect=effect)
    if kept:
        term.say(f"what stood in the offered worktree is kept at {kept}")
    if close:
        term.say(f"{wanted}: not accepted, closed")
        return common.finish(here, wanted, rules.End(outcome="not-accepted"))
    term.say(f"{wanted}: sent back to `{effect['back_to']}`")
    term.hint(f"relay resume {wanted}")
    return 0


def _refuse_ended(run: str, step: rules.Next) -> None:
    """Refuse a run that is over: what has shipped cannot be taken back."""
    if isinstance(step, rules.End) and step.outcome not in {"stopped", "proposed"}:
        raise RelayError(f"run `{run}` is {step.outcome}: it cannot be rejected any more", hint=f"relay trace {run}")


def _withdrawn(here: Ledger, plan: Plan, chain: tuple[Receipt, ...]) -> tuple[Receipt, ...]:
    """Close what is proposed, before it can be merged; one that was merged already has shipped."""
    from relay import ship
    from relay.telling import Teller

    sealed = ship.withdraw(here, plan, chain)
    if sealed is None:
        return chain
    Teller.sealed(sealed)
    return ledgers.receipts(here, plan.run)


def _worker(plan: Plan, chain: Sequence[Receipt]) -> str:
    """Name the phase that mends what was rejected: the newest leg's own, or the one its judge sends back to."""
    newest = history.last_leg(chain)
    phase = plan.phase(newest.phase or "") if newest is not None else plan.phases[0]
    return rules.back_to(plan, phase) if phase.kind == "judge" else phase.name

"""`relay approve RUN`: it ships, at once, exactly what was accepted."""

import click

from relay.commands import common
from relay.errors import Exit, RelayError
from relay.host import term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import history
from relay.rules import plan as rules
from relay.terms import Plan


@click.command("approve")
@click.argument("run", required=False)
@click.option("--into", metavar="BRANCH", help="Ship into this branch instead of the run's base.")
@click.option("--dry-run", is_flag=True, help="Say what would go out, and where; do nothing.")
@common.everywhere
def command(run: str | None, into: str | None, dry_run: bool) -> int:  # noqa: FBT001 - an option
    """Approve an accepted run: one command, one action, no second step."""
    from relay import acts, runner, salvage, ship
    from relay.host import lock
    from relay.telling import Teller

    here = common.ledger()
    wanted = common.run_or_only(here, run, "approve")
    plan = ledgers.read_plan(here, wanted)
    with runner.signals(), lock.hold(here.run_lock(wanted), "relay approve", wanted, wait=10):
        if not dry_run:
            for sealed in salvage.seal_open(here, plan):
                Teller.sealed(sealed)
        chain = ledgers.receipts(here, wanted)
        step = rules.next_leg(plan, chain)
        if isinstance(step, rules.End) and step.outcome == "shipped":
            term.say(f"{wanted} has shipped already")
            return common.finish(here, wanted, step)
        _refuse_unless_accepted(plan, step)
        if dry_run:
            return _shown(here, plan, into)
        if not isinstance(step, rules.ShipIt):
            acts.refuse_while_open(here, wanted)
            approval = ship.approve(here, plan, chain, into)
            Teller.sealed(approval)
            chain = ledgers.receipts(here, wanted)
            step = rules.ShipIt(approval=approval.leg)
        Teller.sealed(ship.ship(here, plan, chain, step.approval))
    step = rules.next_leg(plan, ledgers.receipts(here, wanted))
    code = common.finish(here, wanted, step)
    return int(Exit.NOT_ACCEPTED) if isinstance(step, rules.Go) else code  # the base moved: it is to be judged again


def _refuse_unless_accepted(plan: Plan, step: rules.Next) -> None:
    """Refuse what nothing accepted, and say what would make it so; a shipment that failed may be approved again."""
    if isinstance(step, rules.Accepted | rules.ShipIt) or (isinstance(step, rules.Human) and step.reason == "ship"):
        return
    code = common.code(step)
    raise RelayError(
        f"run `{plan.run}` is not accepted: it is {rules.outcome(step)}"
        + (f" ({step.text})" if isinstance(step, rules.Human) else ""),
        hint=common.next_command(plan.run, step),
        exit_code=code if code != Exit.OK else Exit.NOT_ACCEPTED,
    )


def _shown(here: Ledger, plan: Plan, into: str | None) -> int:
    """Say what an approval would ship."""
    from relay.host import git

    chain = ledgers.receipts(here, plan.run)
    head, base = history.head(plan, chain), history.base(plan, chain)
    target = into or plan.base_ref.removeprefix("refs/heads/") or "a branch that --into names"
    term.data(f"{plan.ship.method} into {target}: {head[:12]}, tree {git.tree(here.repo, head)[:12]}")
    for change in git.numstat(here.repo, base, head):
        term.data(f"  {change.path} +{change.added} -{change.removed}")
    term.say("nothing was done")
    return 0

"""`relay approve RUN`: it ships, at once, exactly what was accepted."""

from collections.abc import Sequence

import click

from relay.commands import common
from relay.errors import Exit, RelayError
from relay.host import term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import history
from relay.rules import plan as rules
from relay.terms import Plan, Receipt


@click.command("approve")
@click.argument("run", required=False)
@click.option("--into", metavar="BRANCH", help="Ship into this branch instead of the run's base.")
@click.option("--dry-run", is_flag=True, help="Say what would go out, and where; do nothing.")
@common.everywhere
def command(run: str | None, into: str | None, dry_run: bool) -> int:  # noqa: FBT001 - an option
    """Approve an accepted run: one command, one action, no second step."""
    from relay import runner

    here = common.ledger()
    wanted = common.run_or_only(here, run, "approve")
    if into == "":
        raise RelayError("--into names no branch", hint=f"relay approve {wanted} --into BRANCH")
    if dry_run:
        return _shown(here, ledgers.read_plan(here, wanted), into)
    with runner.signals(), common.deciding(here, wanted, "approve") as (plan, chain, asked):
        if isinstance(asked, rules.End) and asked.outcome == "shipped":
            term.say(f"{wanted} has shipped already")
            return common.finish(here, wanted, asked)
        _refuse_unless_accepted(plan, asked)
        step = _shipped(here, plan, chain, asked, into)
    code = common.finish(here, wanted, step)
    return int(Exit.NOT_ACCEPTED) if isinstance(step, rules.Go) else code  # the base moved: it is to be judged again


def _shipped(here: Ledger, plan: Plan, chain: Sequence[Receipt], step: rules.Next, into: str | None) -> rules.Next:
    """Approve, unless an approval stands already, and ship; returns what comes next."""
    from relay import ship
    from relay.telling import Teller

    if isinstance(step, rules.ShipIt):
        approval = step.approval
    else:
        sealed = ship.approve(here, plan, chain, into)
        Teller.sealed(sealed)
        approval = sealed.leg
    Teller.sealed(ship.ship(here, plan, ledgers.receipts(here, plan.run), approval))
    return rules.next_leg(plan, ledgers.receipts(here, plan.run))


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
    step = rules.next_leg(plan, chain)
    if isinstance(step, rules.End) and step.outcome == "shipped":
        term.say(f"{plan.run} has shipped already")
        return 0
    _refuse_unless_accepted(plan, step)
    head, base = history.head(plan, chain), history.base(plan, chain)
    target = into or plan.base_ref.removeprefix("refs/heads/") or "a branch that --into names"
    term.data(f"{plan.ship.method} into {target}: {head[:12]}, tree {git.tree(here.repo, head)[:12]}")
    for change in git.numstat(here.repo, base, head):
        term.data(f"  {change.path} +{change.added} -{change.removed}")
    term.say("nothing was done")
    return 0

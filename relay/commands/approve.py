"""`relay approve RUN`: it ships, at once, exactly what was accepted."""

from collections.abc import Sequence

import click

from relay.commands import common
from relay.errors import Exit, RelayError
from relay.host import term
from relay.record import evidence
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import history
from relay.rules import plan as rules
from relay.terms import Plan, Receipt, Struct


class Wish(Struct, frozen=True, kw_only=True):
    """What a person says with an approval: another branch, or a leg that nothing accepted, and why it may go out."""

    into: str | None = None
    leg: str | None = None
    why: str = ""


@click.command("approve")
@click.argument("run", required=False)
@click.option("--into", metavar="BRANCH", help="Ship into this branch instead of the run's base.")
@click.option("--leg", metavar="LEG", help="Ship what this leg left, though nothing accepted it; --why says why.")
@click.option("--why", metavar="TEXT", help="Why you take the responsibility for --leg.")
@click.option("--dry-run", is_flag=True, help="Say what would go out, and where; do nothing.")
@common.everywhere
def command(run: str | None, into: str | None, leg: str | None, why: str | None, dry_run: bool) -> int:  # noqa: FBT001 - an option
    """Approve an accepted run: one command, one action, no second step."""
    from relay import runner

    here = common.ledger()
    wanted = common.run_or_only(here, run, "approve")
    if into == "":
        raise RelayError("--into names no branch", hint=f"relay approve {wanted} --into BRANCH")
    if (leg is None) != (why is None) or (why is not None and not why.strip()):
        raise RelayError(
            "--leg and --why go together: who ships what nothing accepted says why",
            hint=f"relay approve {wanted} --leg LEG --why TEXT",
        )
    if why is not None:
        why = common.words(why, "reason", f"relay approve {wanted} --leg {leg} --why TEXT")
    wish = Wish(into=into, leg=leg, why=why or "")
    if dry_run:
        return _shown(here, ledgers.read_plan(here, wanted), wish)
    with runner.signals(), common.deciding(here, wanted, "approve") as (plan, chain, asked):
        step = _decided(here, plan, chain, asked, wish)
    common.tell(here, plan, step)
    code = common.finish(here, wanted, step)
    return int(Exit.NOT_ACCEPTED) if isinstance(step, rules.Go) else code  # the base moved: it is to be judged again


def _decided(here: Ledger, plan: Plan, chain: Sequence[Receipt], asked: rules.Next, wish: Wish) -> rules.Next:
    """Ship what may go out; what is out already is said, and what is proposed is looked after."""
    from relay import ship
    from relay.telling import Teller

    _refuse_late(plan, chain, asked, wish)
    if isinstance(asked, rules.End) and asked.outcome == "shipped":
        term.say(f"{plan.run} has shipped already")
        ship.published(here, plan)
        return asked
    if isinstance(asked, rules.End) and asked.outcome == "proposed":
        sealed = ship.follow(here, plan, chain)
        if sealed is None:
            term.say(f"{plan.run} is proposed already, and open: {(chain[-1].effect or {}).get('url', '')}")
            return asked
        Teller.sealed(sealed)
        return rules.next_leg(plan, ledgers.receipts(here, plan.run))
    about = _about(plan, chain, asked, _again(here, chain, asked, wish))
    return _shipped(here, plan, chain, asked, about)


def _refuse_late(plan: Plan, chain: Sequence[Receipt], step: rules.Next, wish: Wish) -> None:
    """Refuse to say anew what goes out, or where, once it is out: nothing would come of it."""
    if not isinstance(step, rules.End) or step.outcome not in {"shipped", "proposed"}:
        return
    sent = next((dict(one.effect or {}) for one in reversed(chain) if one.act == "ship"), {})
    into, wanted = ((name or "").removeprefix("refs/heads/") for name in (sent.get("into"), wish.into))
    if wish.leg is None and wanted in {"", into}:
        return
    first = f"relay reject {plan.run} --why TEXT    (it closes the proposal)"
    raise RelayError(
        f"run `{plan.run}` is {step.outcome} already, into `{into}`: --into and --leg come too late",
        hint=first if step.outcome == "proposed" else f"relay trace {plan.run}",
    )


def _again(here: Ledger, chain: Sequence[Receipt], step: rules.Next, wish: Wish) -> Wish:
    """Let an approval after a shipment that failed be about what the one before was about, unless it says otherwise."""
    if wish.leg is not None or not (isinstance(step, rules.Human) and step.reason == "ship"):
        return wish
    before = next((sealed for sealed in reversed(chain) if sealed.act == "approve"), None)
    effect = dict(before.effect or {}) if before is not None else {}
    why = evidence.why_of(here, before) if before is not None else ""
    return Wish(into=wish.into or effect.get("into"), leg=effect.get("leg"), why=why)


def _about(plan: Plan, chain: Sequence[Receipt], step: rules.Next, wish: Wish) -> Wish:
    """Refuse what nothing accepted, unless a person takes the responsibility for one leg of it."""
    if wish.leg is None:
        _refuse_unless_accepted(plan, step)
        return wish
    from relay.report import pick

    known = [sealed.leg for sealed in chain]
    leg = pick.among(plan.run, known, wish.leg)
    sealed = chain[known.index(leg)]
    if isinstance(step, rules.Accepted) and sealed.head == history.head(plan, chain):
        raise RelayError(f"what `{leg}` left is accepted", hint=f"relay approve {plan.run}")
    if isinstance(step, rules.End) and step.outcome == "not-accepted":
        raise RelayError(f"run `{plan.run}` is closed", hint="relay run SPEC", exit_code=Exit.NOT_ACCEPTED)
    if sealed.kind == "act" or sealed.ended_by == "breach":
        what = "is no leg" if sealed.kind == "act" else "is void: it crossed its boundary"
        legs = [one.leg for one in chain if one.kind != "act" and one.ended_by != "breach"]
        raise RelayError(f"`{leg}` {what}", hint=f"name one of: {', '.join(legs)}")
    return Wish(into=wish.into, leg=leg, why=wish.why)


def _shipped(here: Ledger, plan: Plan, chain: Sequence[Receipt], step: rules.Next, wish: Wish) -> rules.Next:
    """Approve, unless this very approval stands already, and ship; returns what comes next."""
    from relay import ship
    from relay.telling import Teller

    if isinstance(step, rules.ShipIt) and wish == Wish():
        approval = step.approval
    else:
        sealed = ship.approve(here, plan, chain, wish.into, leg=wish.leg, why=wish.why)
        Teller.sealed(sealed)
        if wish.leg is not None:
            term.say(f"nothing accepted `{wish.leg}`: {sealed.by} takes the responsibility")
        approval = sealed.leg
    Teller.sealed(ship.ship(here, plan, ledgers.receipts(here, plan.run), approval))
    return rules.next_leg(plan, ledgers.receipts(here, plan.run))


def _refuse_unless_accepted(plan: Plan, step: rules.Next) -> None:
    """Refuse what nothing accepted, and say what would make it so; a shipment that failed may be approved again."""
    if isinstance(step, rules.Accepted | rules.ShipIt) or (isinstance(step, rules.Human) and step.reason == "ship"):
        return
    code = common.code(step)
    hint = common.next_command(plan.run, step)
    if not isinstance(step, rules.End):
        hint += f"\nrelay approve {plan.run} --leg LEG --why TEXT    (you take the responsibility)"
    raise RelayError(
        f"run `{plan.run}` is not accepted: it is {rules.outcome(step)}"
        + (f" ({step.text})" if isinstance(step, rules.Human) else ""),
        hint=hint,
        exit_code=code if code != Exit.OK else Exit.NOT_ACCEPTED,
    )


def _shown(here: Ledger, plan: Plan, wish: Wish) -> int:
    """Say what an approval would ship; what it would refuse is refused here too."""
    from relay import ship
    from relay.host import git

    chain = ledgers.receipts(here, plan.run)
    step = rules.next_leg(plan, chain)
    _refuse_late(plan, chain, step, wish)
    if isinstance(step, rules.End) and step.outcome in {"shipped", "proposed"}:
        term.say(f"{plan.run} is {step.outcome} already")
        return 0
    about = _about(plan, chain, step, _again(here, chain, step, wish))
    pins, target = ship.wanted(here, plan, chain, about.into, leg=about.leg)
    if about.leg is not None:
        term.data(f"nothing accepted {about.leg}")
    term.data(f"{_where(plan, target.removeprefix('refs/heads/'))}: {pins.head[:12]}, tree {pins.tree[:12]}")
    for change in git.numstat(here.repo, pins.base, pins.head):
        term.data(f"  {change.path} +{change.added} -{change.removed}")
    term.say("nothing was done")
    return 0


def _where(plan: Plan, target: str) -> str:
    """Say how and where it would go out."""
    ship = plan.ship
    match ship.method:
        case "push":
            return f"push to {target} on {ship.remote}"
        case "pr":
            branch = (ship.branch or "relay/{run}").replace("{run}", plan.run)
            return f"pr from {branch} into {target} on {ship.upstream or ship.remote}"
        case "command":
            return f"command {ship.command}" + f", on {target}" * bool(target)
        case _:
            return f"{ship.method} into {target}"

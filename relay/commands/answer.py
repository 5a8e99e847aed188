"""`relay answer RUN TEXT`: answer what a run asks."""

import click

from relay.commands import common
from relay.errors import RelayError
from relay.host import term
from relay.rules import plan as rules


@click.command("answer")
@click.argument("run")
@click.argument("text")
@common.everywhere
def command(run: str, text: str) -> int:
    """Answer a question, or tell a run that is stuck how to go on; the next leg gets question and answer."""
    from relay import acts

    here = common.ledger()
    wanted = common.named(here, run)
    text = common.words(text, "answer", f"relay answer {wanted} TEXT")
    with common.deciding(here, wanted, "answer") as (plan, chain, step):
        if not isinstance(step, rules.Human) or step.reason in {"offer", "ship", "budget"}:
            raise RelayError(
                f"run `{wanted}` asks nothing: it is {rules.outcome(step)}", hint=common.next_command(wanted, step)
            )
        acts.seal(here, plan, chain, "answer", why=text)
    term.say(f"{wanted}: answered `{step.leg}`")
    term.hint(f"relay resume {wanted}")
    return 0

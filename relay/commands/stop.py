"""`relay stop RUN`: end its loop, and do not go on until a person resumes it."""

import click

from relay.commands import common
from relay.errors import Exit, RelayError
from relay.host import clock, lock, term
from relay.rules import plan as rules

PATIENCE = 60.0
"""Seconds that the holder has to end its agent and seal the leg; its own ladder of signals takes about five."""


AGAIN = 1.0
"""Seconds after which a night is asked again."""


@click.command("stop")
@click.argument("run", required=False)
@common.everywhere
def command(run: str | None) -> int:
    """Stop a run: its agent ends, the leg is sealed as interrupted, and `relay resume` goes on from there.

    A night that works on it goes on with what is next.
    """
    from relay import acts, nights, runner

    here = common.ledger()
    wanted = common.run_or_only(here, run, "stop")
    of_night = nights.stop(here, wanted)
    if of_night or runner.stop(here, wanted):
        term.say(f"{wanted}: asked its loop to end")
        if of_night:
            term.say("it was part of a night, which goes on with what is next")
        asked = clock.monotonic()
        deadline = asked + PATIENCE
        while (holder := lock.holder(here.lock)) is not None and holder.run == wanted:
            if clock.monotonic() > deadline:
                raise RelayError(
                    f"process {holder.process.pid} still holds run `{wanted}`",
                    hint="relay stop again",
                    exit_code=Exit.HELD,
                )
            if of_night and clock.monotonic() - asked > AGAIN:  # a night hears nothing before the run has its folder
                asked = clock.monotonic()
                nights.stop(here, wanted)
            clock.pause(0.05)
    with common.deciding(here, wanted, "stop") as (plan, chain, step):
        if isinstance(step, rules.End | rules.Accepted):
            raise RelayError(
                f"run `{wanted}` is {rules.outcome(step)}: there is nothing to stop",
                hint=common.next_command(wanted, step),
            )
        acts.seal(here, plan, chain, "stop")
    term.say(f"{wanted}: stopped")
    term.hint(f"relay resume {wanted}")
    return 0

"""`relay trace [RUN]`: what happened, told from receipts alone."""

import click
import msgspec

from relay.commands import common
from relay.host import term
from relay.record import ledger as ledgers
from relay.report import pick, trace


@click.command("trace")
@click.argument("run", required=False)
@common.everywhere
def command(run: str | None) -> int:
    """Tell a run from its plan and its receipts, with no agent's words in it; the newest run if none is named."""
    here = common.ledger()
    wanted = pick.run(here, run)
    if common.as_json():
        for sealed in ledgers.receipts(here, wanted):
            term.event("receipt", run=wanted, leg=sealed.leg, receipt=msgspec.to_builtins(sealed))
        return 0
    for line in trace.tell(here, wanted):
        term.data(line)
    return 0

"""`relay trace [RUN]`: what happened, told from receipts alone."""

import click
import msgspec

from relay.commands import common
from relay.host import term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import pick, trace


@click.command("trace")
@click.argument("run", required=False)
@click.option("--from", "ref", metavar="REF", help="Read what `ship.publish` keeps under a ref, or of a run's id.")
@common.everywhere
def command(run: str | None, ref: str | None) -> int:
    """Tell a run from its plan and its receipts, with no agent's words in it; the newest run if none is named."""
    here = common.ledger()
    if ref is None:
        return _told(here, pick.run(here, run))
    from relay.ways import publish

    with publish.borrowed(here.repo, ref) as (kept, named):
        return _told(kept, named)


def _told(here: Ledger, wanted: str) -> int:
    if common.as_json():
        for sealed in ledgers.receipts(here, wanted):
            term.event("receipt", run=wanted, leg=sealed.leg, receipt=msgspec.to_builtins(sealed))
        return 0
    for line in trace.tell(here, wanted):
        term.data(line)
    return 0

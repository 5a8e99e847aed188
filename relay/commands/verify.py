"""`relay verify [RUN]`: whether a run still is what its receipts say."""

import click

from relay.commands import common
from relay.errors import Exit
from relay.host import term
from relay.report import pick, verify
from relay.report import run as runs


@click.command("verify")
@click.argument("run", required=False)
@common.everywhere
def command(run: str | None) -> int:
    """Check a run's hashes, notes, commits and refs, and name every fault; the newest run if none is named."""
    here = common.ledger()
    wanted = pick.run(here, run)
    found = verify.verify(here, wanted)
    for fault in found.faults:
        term.event("fault", run=wanted, path=fault.path, what=fault.what)
        if not common.as_json():
            term.data(f"{fault.path}: {fault.what}")
    term.event("verify", run=wanted, faults=len(found.faults), receipts=found.receipts, unsealed=list(found.unsealed))
    for leg in found.unsealed:
        term.say(f"{leg} was begun and is not sealed: it is in progress, or `relay resume {wanted}` seals it")
    if found.faults:
        term.say(f"{wanted}: {term.style(runs.count(len(found.faults), 'fault'), 'red')}")
        term.hint(f"restore the files from a backup; a lost note: relay note rebuild {wanted}/LEG")
        return int(Exit.GATE)
    held = f"{runs.count(found.receipts, 'receipt')} and {runs.count(found.notes, 'note')}"
    term.say(f"{wanted}: {term.style('whole', 'green')}, {held}")
    return 0

"""`relay verify [RUN]`: whether a run still is what its receipts say."""

import click
import msgspec

from relay.commands import common
from relay.errors import Exit
from relay.host import term
from relay.record.ledger import Ledger
from relay.report import pick, verify
from relay.report import run as runs


@click.command("verify")
@click.argument("run", required=False)
@click.option(
    "--again", is_flag=True, help="Also run the commands of its acceptance again, on the commit it was about."
)
@common.everywhere
def command(run: str | None, *, again: bool) -> int:
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
    return _again(here, wanted) if again else 0


def _again(here: Ledger, run: str) -> int:
    """Run acceptance's commands again, and tell each beside what it did then."""
    from relay.report import again

    leg, ran = again.accepted(here, run).leg, []
    for one in again.run(here, run):
        ran.append(one)
        term.event("again", run=run, leg=leg, holds=one.holds, **msgspec.to_builtins(one))
        if not common.as_json():
            then = "as then" if one.holds else term.style(f"and exited {one.then} then", "red")
            output = "" if one.same else ", with another output"
            term.data(f"{one.by}: `{one.command}` exited {one.now}, {then}{output}")
    others = [one for one in ran if not one.holds]
    if others:
        term.say(
            f"{run}: {runs.count(len(others), 'command')} of {leg} {term.style('ended otherwise', 'red')} than then"
        )
        term.hint(f"look at what it is about: relay show {run}/{leg}")
        return int(Exit.GATE)
    term.say(f"{run}: {runs.count(len(ran), 'command')} of {leg} {term.style('ended as then', 'green')}")
    return 0

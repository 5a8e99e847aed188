"""`relay reap`: repair what nobody owns any more, or raise it."""

import click
import msgspec

from relay.commands import common
from relay.host import term
from relay.terms import Struct


@click.command("reap")
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@common.everywhere
def command(*, dry_run: bool) -> int:
    """Find what nobody owns any more: legs, worktrees, programs, locks, refs; repair it, or raise it once."""
    from relay import alerts, reaper
    from relay.report import figures

    here = common.ledger()
    reaper.limit(reaper.settings(here)[0].max_disk)
    done = reaper.pass_over(here, dry_run=dry_run)
    for repair in done.repaired:
        term.event("repaired", dry_run=dry_run, **_fields(repair))
        if not common.as_json():
            term.told(f"{term.style(repair.kind, 'green')}  {repair.what}")
    for alert in done.raised:
        term.event("alert", dry_run=dry_run, **_fields(alert))
        if not common.as_json():
            term.told(f"{term.style(alert.kind, 'yellow')}  {figures.local(alert.what)}")
            term.told(f"      {term.style('hint:', 'cyan')} {alert.command}")
    if not done.alone:
        term.say("a loop is at work here: its legs, and all worktrees and refs, are left to a later pass")
    if not done.repaired and not done.raised:
        term.say("nothing to reap")
    new = {alert.key for alert in done.raised}
    standing = [alert for alert in alerts.all(here) if alert.key not in new]
    if standing:
        term.say(f"{len(standing)} raised before and not settled: relay reap -v")
    for alert in standing:
        term.detail(figures.local(f"{alert.kind}, since {alert.since}: {alert.what}\n      {alert.command}"))
    if dry_run and done.repaired:
        term.hint("relay reap")
    return 0


def _fields(found: Struct) -> dict[str, object]:
    """Return what a line of JSON says of it; `kind` is called `about` there, since the line has a `type`."""
    return {"about" if name == "kind" else name: value for name, value in msgspec.structs.asdict(found).items()}

"""`relay nightly`: one night, within a purse."""

import click

from relay.commands import common
from relay.host import term
from relay.record.ledger import Ledger
from relay.terms import Night, Nightly


@click.command("nightly")
@click.option(
    "--usd", type=click.FloatRange(0, min_open=True), help="Spend N dollars at most, as far as costs are known."
)
@click.option("--tokens", type=click.IntRange(1), help="Use N tokens at most, in and out together.")
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="End after N hours.")
@click.option("--until", metavar="TIME", help="End then: 07:00, 2026-12-01 or 2026-12-01T07:00, local time.")
@click.option("-n", "--dry-run", is_flag=True, help="Say what a night would do now; do and write nothing.")
@click.option(
    "--scheduled", is_flag=True, help="A schedule starts it: a late one may be skipped, a dull one is silent."
)
@common.everywhere
def command(
    usd: float | None, tokens: int | None, hours: float | None, until: str | None, *, dry_run: bool, scheduled: bool
) -> int:
    """Be one night: go on with what waits, then take the queue, one run at a time, until a limit or the end of it.

    Each limit goes before the one in `[nightly]` of relay.toml. What a limit cuts short is resumed by the next night.
    A run that waits for a quota is waited for where the night has an end. One notice is sent when the night is over;
    a scheduled night that found nothing to do, and nothing to raise, sends none.
    """
    here = common.ledger()
    asked = Nightly(usd=usd, tokens=tokens, hours=hours, until=until)
    from relay.nightly import purse

    purse.of(Nightly(), asked)  # what nobody can read, or reckon with, is refused before there is a record
    from relay.host import clock

    purse.allowance(Nightly(until=until), clock.now())
    if dry_run:
        return _rehearsed(here, asked)
    from relay.nightly import night

    done, code = night.run(here, asked, scheduled=scheduled)
    _told(here, done)
    return int(code)


def _told(here: Ledger, done: Night) -> None:
    """Say what a night came to: a line for each run, and what to type."""
    from relay.nightly import closing
    from relay.report import figures

    told = closing.lines(here, done)
    for line in told:
        item = line.item
        term.event(
            "item",
            night=done.id,
            did=item.did,
            run=item.run,
            spec=item.spec,
            outcome=item.outcome,
            reason=item.reason,
            cost_microusd=item.microusd,
            tokens=item.tokens,
            seconds=item.seconds,
            question=line.question or None,
            next=line.next,
        )
        if not common.as_json():
            term.told(line.text)
    term.event("night", id=done.id, ended_by=done.ended_by, reason=done.reason, alerts=done.alerts)
    if not common.as_json():
        why = figures.local(done.reason)
        term.told(f"night {done.id}: {closing.headline(told, done)}" + f"  ({why})" * bool(why))
    term.hint("relay report --night")


def _rehearsed(here: Ledger, asked: Nightly) -> int:
    """Say what a night would do now."""
    from relay.nightly import rehearsal
    from relay.report import figures

    for item in rehearsal.items(here, asked):
        term.event("item", did=item.did, run=item.run, spec=item.spec, reason=item.reason)
        if not common.as_json():
            does = {"started": "would start", "resumed": "would resume", "followed": "would look after"}
            said = does.get(item.did, "would skip")
            why = figures.local(item.reason)
            term.told(f"{said}  {item.run or item.spec}" + f"  ({why})" * bool(why))
    term.say("nothing was run or written")
    return 0

"""`relay queue`: line up specs for the nights."""

import shlex
from typing import TYPE_CHECKING

import click

from relay.commands import common, options
from relay.errors import RelayError
from relay.host import term

if TYPE_CHECKING:
    from relay.queue.adding import Added


@click.group("queue", cls=options.Group, no_args_is_help=True)
@common.everywhere
def command() -> None:
    """Line up specs for `relay nightly`, which takes them one at a time."""


@command.command("add")
@click.argument("spec_files", metavar="SPEC...", nargs=-1, required=True, type=click.Path(readable=False))
@click.option("--priority", type=int, metavar="N", help="Higher numbers go first; 0 if unsaid.")
@click.option(
    "--after", metavar="RUN|SPEC", help="Not before RUN, or the run of SPEC, is shipped; `none` takes that back."
)
@click.option(
    "--not-before",
    metavar="TIME",
    help="22:00, 2026-12-01 or 2026-12-01T22:00, local time; `now` takes that back.",
)
@click.option("--again", is_flag=True, help="Also where a run was made from this very text already.")
@common.everywhere
def add(
    spec_files: tuple[str, ...], priority: int | None, after: str | None, not_before: str | None, *, again: bool
) -> int:
    """Put specs at the end of the queue; each is read now, and again when its turn comes.

    A spec that is queued keeps its place, and each option that is not said anew: to change one, add it again. One whose
    very text had its run is not queued; where that was stopped or refused, it is.
    """
    from relay import queue
    from relay.host import clock
    from relay.queue.adding import Wish
    from relay.rules import night

    here = common.ledger()
    paths = [common.folder() / name for name in spec_files]
    earliest, now = "" if not_before == "now" else None, clock.now()
    if not_before is not None and earliest is None:
        earliest = clock.stamp(moment := night.moment(not_before, now))
        if moment <= now:
            term.say(f"{term.style('warning:', 'yellow')} `{not_before}` is over, so nothing waits for it")
    if after is not None and (common.folder() / after).is_file():
        after = str(common.folder() / after)
    elif after == "none":
        after = ""
    had = []
    for one in queue.add(here, paths, Wish(priority=priority, after=after, not_before=earliest, again=again)):
        had += [queue.where(here, one.spec)] * (one.how == "made")
        _told(one, [name for name, value in (("after", after), ("not before", earliest)) if value == ""])
    many = "SPEC" if len(had) > 1 else "".join(shlex.quote(str(path)) for path in had)
    term.hint(f"relay queue add --again {many}" if had else "relay queue list")
    return 0


def _told(one: "Added", back: list[str]) -> None:
    """Say what became of one spec, and what of its entry holds now; `back` names what was taken back."""
    from relay.report import figures

    entry, run = one.entry, f"`{one.run}`, made from this very text, is {one.outcome}"
    name = entry.id if entry is not None else None
    holds = {field: getattr(entry, field, None) for field in ("priority", "after", "not_before")}
    term.event("entry", how=one.how, id=name, spec=one.spec, **holds, run=one.run or None, outcome=one.outcome or None)
    now = ", ".join(f"{what.replace('_', ' ')} {value}" for what, value in holds.items() if value is not None)
    now = figures.local(now)
    now += "".join(f", `{what}` taken back" for what in back)
    said = {
        "added": "queued" + " again" * bool(one.run),
        "known": "queued already, with this very text; nothing was changed",
        "changed": f"queued already, with this very text; now with {now}",
        "renewed": f"queued already; its text changed since, and it keeps its place, with {now}",
        "made": "queued already; nothing was changed" if name else "not queued",
    }
    term.say(f"{term.style(name or '-', 'bold')}  {one.spec}: {said[one.how]}" + f": {run}" * bool(one.run))


@command.command("list")
@common.everywhere
def listed() -> int:
    """List what waits for a night, in the order in which it is taken, and why a spec would not be taken now."""
    from relay import queue
    from relay.record import config
    from relay.record.config import Config
    from relay.report import figures

    here = common.ledger()
    settings, commit = Config(), ""
    try:
        settings, _, commit = config.load(here.repo)
    except RelayError as error:
        term.say(f"{term.style('warning:', 'yellow')} what relay.toml lists is not shown: {error.message}")
    rows = []
    for one in queue.line(here, settings, commit):
        entry = one.entry
        name = "" if entry is None else entry.id
        why = one.blocked if entry is not None else one.blocked or "listed by `queue` of relay.toml"
        term.event(
            "entry", id=name or None, spec=one.spec, priority=entry.priority if entry else 0, blocked=one.blocked
        )
        rows.append([name or "-", one.spec, str(entry.priority) if entry is not None else "-", figures.local(why)])
    if not common.as_json():
        term.table(rows, ("entry", "spec", "priority", "why not now") if rows else ())
    for problem in queue.unreadable(here).values():
        term.say(f"{term.style('warning:', 'yellow')} not an entry: {problem}")
    if not rows:
        term.say("the queue is empty")
        term.hint("relay queue add SPEC")
    return 0


@command.command("remove")
@click.argument("entries", metavar="ENTRY...", nargs=-1, required=True)
@common.everywhere
def remove(entries: tuple[str, ...]) -> int:
    """Take entries out of the queue, by their names or their specs; the specs stay where they are."""
    from relay import queue

    for entry in queue.remove(common.ledger(), entries):
        term.event("removed", id=entry.id, spec=entry.spec)
        term.say(f"{term.style(entry.id, 'bold')}  {entry.spec}: not queued any more")
    return 0


@command.command("move")
@click.argument("entry")
@click.option("--first", is_flag=True, help="To the front.")
@click.option("--before", metavar="ENTRY", help="Just before another entry.")
@click.option("--last", is_flag=True, help="To the end.")
@common.everywhere
def move(entry: str, before: str | None, *, first: bool, last: bool) -> int:
    """Move an entry; it takes the priority of the place where it goes."""
    from relay import queue

    if (said := sum((first, last, before is not None))) != 1:
        what = "an entry goes to one place: say only one of" if said else "say where to:"
        hint = f"relay queue move {shlex.quote(entry)} --first"
        raise RelayError(f"{what} --first, --before ENTRY or --last", hint=hint)
    moved = queue.move(common.ledger(), entry, before=before, last=last)
    term.event("moved", id=moved.id, spec=moved.spec, priority=moved.priority, place=moved.place)
    term.say(f"{term.style(moved.id, 'bold')}  {moved.spec}: moved")
    term.hint("relay queue list")
    return 0

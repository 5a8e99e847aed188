"""`relay report`: what a night or a run came to, in lines for the terminal or as a page for a browser."""

import shlex
from pathlib import Path

import click
import msgspec

from relay import nights
from relay.commands import common
from relay.errors import Exit, RelayError
from relay.host import files, term
from relay.record.ledger import Ledger
from relay.report import figures, lines, morning, pick
from relay.report.morning import Morning
from relay.terms import Night


@click.command("report")
@click.argument("wanted", metavar="[RUN]", required=False)
@click.option("--night", "named", metavar="[ID]", is_flag=False, flag_value="", help="A night; the newest if unsaid.")
@click.option("--html", "file", metavar="FILE", help="Write the page to FILE; `-` is stdout.")
@click.option("--open", "opened", is_flag=True, help="Write the page into the ledger, and open it.")
@common.everywhere
def command(wanted: str | None, named: str | None, file: str | None, opened: bool) -> int:  # noqa: FBT001 - an option
    """Tell what a night or a run came to: how each run stands, what it cost, what needs you, what to type.

    By itself it is about the newest night; where there was none, about the newest run.
    """
    if wanted is not None and named is not None:
        raise RelayError("a report is about a night or about a run", hint="relay report --night, or relay report RUN")
    if file == "-" and common.as_json():
        hint = "relay report --json, or with --html FILE"
        raise RelayError("`--html -` and `--json` would both write to stdout", hint=hint)
    here = common.ledger()
    night = None if wanted is not None else _night(here, named)
    run = "" if night is not None else common.named(here, wanted) if wanted is not None else pick.run(here, None)
    if file is None and not opened:
        return _told(here, night, run)
    page = _page(here, night, run).encode("utf-8", "replace")
    if file is not None:
        _write(file, page)
    if opened:
        _open(here, night.id if night is not None else run, page)
    return 0


def _night(here: Ledger, named: str | None) -> Night | None:
    """Return the night that is meant; None where none is asked for and there was none."""
    if named:
        return nights.named(here, named)
    newest = nights.newest(here)
    if wrong := nights.damaged(here, newest.id if newest is not None else ""):
        if newest is None and named is not None:
            raise RelayError(wrong, hint="relay status", exit_code=Exit.GATE)
        before = "the newest run" if newest is None else f"the night before it, {newest.id}"
        term.say(f"{term.style('warning:', 'yellow')} {wrong}; this is about {before}")
    elif newest is None and named is not None:
        raise RelayError("there was no night here yet", hint="relay nightly")
    return newest


def _page(here: Ledger, night: Night | None, run: str) -> str:
    from relay.report import page

    return page.night(here, night) if night is not None else page.run(here, run)


def _write(file: str, page: bytes) -> None:
    """Write the page where the person wants it."""
    if file == "-":
        term.raw(page)
        return
    path = common.folder() / file
    if not path.parent.is_dir():
        hint = f"mkdir -p {shlex.quote(str(path.parent))}"
        raise RelayError(f"there is no folder `{path.parent}`", hint=hint)
    files.write(path, page)
    term.event("page", path=str(path.absolute()), bytes=len(page))
    term.say(f"wrote {path}, {len(page) / 1024:.0f} KiB")


def _open(here: Ledger, name: str, page: bytes) -> None:
    """Keep the page beside those of the nights, and show it in the person's browser."""
    import webbrowser

    path: Path = nights.page(here, name)
    path.parent.mkdir(0o700, exist_ok=True)
    files.write(path, page)
    term.event("page", path=str(path), bytes=len(page))
    if not webbrowser.open(path.as_uri()):
        raise RelayError("no browser could be opened", hint=f"open {shlex.quote(str(path))}", exit_code=Exit.HUMAN)


def _told(here: Ledger, night: Night | None, run: str) -> int:
    """Tell it in lines, under a screen."""
    at = "" if common.folder() == Path() else f"-C {shlex.quote(str(common.folder()))} "
    told = morning.of_night(here, night, at) if night is not None else morning.of_run(here, run, at)
    if common.as_json():
        _events(told)
        return 0
    term.told(term.style(told.headline, "bold"))
    if told.night is not None:
        said = f"{morning.when(told.night)}: {morning.summary(told)}; {figures.local(told.ended, told.zone)}"
        term.told(said.rstrip("; "))
        for part in told.purse:
            term.data(f"  {part.what}: {part.used} of {part.given}")
    if said := lines.asof(told):
        term.told(said)
    rows, headers = lines.rows(told)
    if rows:
        term.data("")
        term.table(rows, headers)
    before = lines.before(told.waiting, told.remarks, at, told.zone)
    for block in (lines.asked(told, at), before, lines.passed_over(told)):
        if block:
            term.told("\n" + "\n".join(block))
    return 0


def _events(told: Morning) -> None:
    """Tell it as JSON lines."""
    if told.night is not None:
        term.event("night", headline=told.headline, **msgspec.to_builtins(told.night))
    for one in told.accounts:
        item = told.items.get(one.run)
        term.event(
            "run",
            run=one.run,
            title=one.title,
            outcome=one.outcome,
            forced=one.forced,
            breached=one.breached,
            yours=one.yours,
            needs=one.needs,
            question=one.question,
            next=[command.text for command in one.commands],
            score=one.score or None,
            rounds=one.rounds,
            cost_microusd=one.spent.microusd,
            cost_complete=not one.spent.unknown,
            tokens=one.spent.tokens,
            seconds=round(one.spent.seconds, 3),
            night=msgspec.to_builtins(item) if item is not None else None,
        )
    for one in told.waiting:
        term.event(
            "waiting",
            run=one.run,
            title=one.title,
            outcome=one.outcome,
            needs=one.needs,
            question=one.question,
            next=[command.text for command in one.commands],
        )
    for skipped in told.skipped:
        term.event("skipped", **msgspec.to_builtins(skipped))
    for alert in (*(one for beside in told.remarks.values() for one in beside), *told.alerts):
        fields = msgspec.to_builtins(alert)
        term.event("alert", about=fields.pop("kind"), **fields)

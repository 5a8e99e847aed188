"""`relay schedule`: let this machine start the nights, and see when, how and whether it did."""

import os
import shlex
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from relay.commands import common, options
from relay.errors import RelayError
from relay.host import clock, term

if TYPE_CHECKING:
    from relay.record.ledger import Ledger
    from relay.schedule.job import Job
    from relay.schedule.methods import Name

WAYS: Final = ("systemd", "cron", "launchd", "actions", "github")
"""Spelled out, so that the help imports none of them."""


def _way(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Take `github` for the workflow that GitHub Actions start."""
    return "actions" if value == "github" else value


def _chosen(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options by which a schedule is chosen, to install it or only to look at it."""
    missed = click.Choice(["once", "skip"])
    for decorate in (
        click.option("--missed", type=missed, help="What becomes of a night that the machine slept through."),
        click.option("--zone", metavar="ZONE", help="Read the time in this zone, such as Europe/Berlin."),
        click.option(
            "--with",
            "way",
            type=click.Choice(WAYS),
            callback=_way,
            help="What starts it (default: what is there); `github` is another word for `actions`.",
        ),
        click.option("--at", metavar="WHEN", help='"17 4 * * *", 02:30 or @daily (default: relay.toml, else 04:17).'),
    ):
        function = decorate(function)
    return function


@click.group("schedule", cls=options.Group, no_args_is_help=True)
@common.everywhere
def command() -> None:
    """Let this machine start the nights, and see when, how and whether it did."""


@command.command("install")
@_chosen
@common.everywhere
def install(at: str | None, way: "Name | None", zone: str | None, missed: str | None) -> int:
    """Write what starts `relay nightly` every night, and have the machine obey it."""
    from relay.schedule import installing, methods

    here = common.ledger()
    way, job = _planned(here, at, way, zone, missed)
    if way == "cron" and (why := methods.METHODS[way].unavailable()):
        raise RelayError(why, hint="apt-get install cron, or --with systemd")
    done = installing.install(here, way, job)
    moment = _next(way, job, 1)[0]
    term.event(
        "schedule", method=way, **_told(job), files=done.paths, kept=done.kept, todo=done.todo, next=moment.isoformat()
    )
    for path in done.paths:
        term.say(f"wrote `{path}`")
    for path in done.kept:
        term.say(f"what was edited by hand is kept as `{path}`")
    if way != "actions":
        term.say(f"keys for the night go into `{job.env_file}`, as NAME=value; those of this shell do not go along")
    for text, hint in methods.METHODS[way].advice(job):
        term.say(text)
        if hint:
            term.hint(hint)
    if done.todo:
        term.say("left to type:")
        term.hint("\n".join(done.todo))
    else:
        term.say(f"nights start by {way}, next {_said(moment)}; what they say: {methods.METHODS[way].log(job)}")
    if way != "actions":
        term.hint(f"relay {_at()}doctor --as-scheduled")
    return 0


@command.command("show")
@_chosen
@common.everywhere
def show(at: str | None, way: "Name | None", zone: str | None, missed: str | None) -> int:
    """Print exactly what `install` would write, and write nothing."""
    from relay.schedule import methods

    here, asked = common.ledger(), way
    way, job = _planned(here, at, way, zone, missed)
    method = methods.METHODS[way]
    table = {"crontab": entry} if (entry := method.entry(job)) else {}
    for path, text in {**{str(path): data.decode() for path, data in method.texts(job).items()}, **table}.items():
        term.event("file", path=path, text=text)
        if not common.as_json():
            term.data(f"==> {path} <==\n{text}")
    _explained(here, asked, way, job)
    given = (("--at", at), ("--with", asked and _named(asked)), ("--zone", zone), ("--missed", missed))
    words = (word for name, value in given if value is not None for word in (name, value))
    term.hint(f"relay {_at()}schedule install {shlex.join(words)}".rstrip())
    return 0


def _explained(here: "Ledger", asked: "Name | None", way: "Name", job: "Job") -> None:
    """Say of what was shown what starts it, why that, and what installing it comes to."""
    from relay.schedule import installed, methods

    if asked is None:
        others = " or ".join(_named(name) for name in methods.NAMES if name != way)
        term.say(f"by {way}, since {methods.chosen()[1]}; --with takes {others} instead")
    elif reason := methods.METHODS[way].unavailable():
        term.say(f"{term.style('warning:', 'yellow')} {way} is not to be had here: {reason}")
    found = installed.read(here)
    instead = f"; what {found.method} starts here now goes" if found is not None and found.method != way else ""
    starts = "" if way == "actions" else f"; the next night starts {_said(_next(way, job, 1)[0])}"
    term.say(f"`install` {methods.DOES[way]}{instead}{starts}")


@command.command("remove")
@common.everywhere
def remove() -> int:
    """Take away exactly what was installed."""
    from relay.schedule import installed, installing

    here = common.ledger()
    found = installed.read(here)
    if found is None:
        term.say("no schedule is installed here")
        return 0
    done = installing.remove(here, found)
    term.event("removed", method=found.method, files=done.paths, kept=done.kept, todo=done.todo)
    for path in done.paths:
        term.say(f"removed `{path}`")
    for path in done.kept:
        term.say(f"it was edited by hand, and is kept as `{path}`")
    if done.todo:
        term.say("left to type:")
        term.hint("\n".join(done.todo))
    else:
        term.say(f"{found.method} starts no more nights here")
    return 0


@command.command("status")
@common.everywhere
def status() -> int:
    """Say what is installed, whether it is as Relay wrote it, when it starts next, and how the last night ended."""
    from relay import nights
    from relay.schedule import installed, methods

    here = common.ledger()
    found = installed.read(here)
    if found is None:
        term.event("schedule", method=None)
        term.say("no schedule is installed here")
        term.hint(f"relay {_at()}schedule install")
        return 0
    job = found.job
    armed, gone = methods.METHODS[found.method].armed(job), installed.gone(found)
    states, moment = dict(installed.states(found)), _next(found.method, job, 1)[0]
    newest, missed = nights.newest(here), installed.missed(here, clock.now())
    last = "none yet" if newest is None else f"{newest.started}, {newest.ended_by or 'not ended'}"
    term.event(
        "schedule",
        method=found.method,
        **_told(job),
        installed=found.installed,
        armed=armed,
        files=states,
        gone=gone,
        next=moment.isoformat(),
        last=None if newest is None else newest.id,
        ended_by=None if newest is None else newest.ended_by,
        problem=missed,
    )
    if common.as_json():
        return 0
    rows = [
        ("by", f"{_named(found.method)}, {job.name}"),
        ("at", f"{job.at}  ({job.zone or 'the clock of this machine'})"),
        ("installed", found.installed),
        ("armed", _coloured(armed or "it cannot be asked from here")),
        ("starts", _coloured(f"`{gone}`, which is gone") if gone else shlex.join(job.command)),
        ("next", _said(moment)),
        ("last night", last),
        ("log", methods.METHODS[found.method].log(job)),
        *(("file", f"{path}: {_coloured(STATES[state])}") for path, state in states.items()),
    ]
    term.table(rows)
    if missed:
        term.say(missed)
    if gone or armed not in {"", "active"} or set(states.values()) != {"whole"}:
        term.hint(f"relay {_at()}schedule install")
    return 0


@command.command("next")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many.")
@_chosen
@common.everywhere
def following(count: int, at: str | None, way: "Name | None", zone: str | None, missed: str | None) -> int:
    """Print when the next nights start: as installed, or as they would by these options."""
    from relay.schedule import installed

    here = common.ledger()
    found = installed.read(here)
    if found is not None and not any((at, way, zone, missed)):
        way, job = found.method, found.job
    else:
        way, job = _planned(here, at, way or _likely(), zone, missed)
    for moment in _next(way, job, count):
        term.event("next", at=moment.isoformat())
        if not common.as_json():
            term.data(_said(moment))
    if found is None:
        term.say("nothing is installed yet, so nothing will start")
        term.hint(f"relay {_at()}schedule install")
    return 0


def _likely() -> "Name":
    """Return the way that would be taken, and any where this machine has none: when nights start can still be said."""
    from relay.schedule import methods

    try:
        return methods.default()
    except RelayError:
        return "cron"


STATES: Final = {"whole": "as Relay wrote it", "edited": "edited by hand", "gone": "gone"}


def _coloured(text: str) -> str:
    return term.style(text, "green" if text in {"active", STATES["whole"]} else "yellow")


def _planned(
    here: "Ledger", at: str | None, way: "Name | None", zone: str | None, missed: str | None
) -> "tuple[Name, Job]":
    """Put together what the options and relay.toml say, and warn of what the clock will do to it."""
    from relay.record import config
    from relay.schedule import due, methods, plan, zones

    settings = config.load(here.repo)[0]
    line = due.read(at or settings.schedule.at)
    there = zones.of(zone)
    way = way or methods.default()
    machine, now = zones.machine(), clock.now()
    if zone is not None and way in {"cron", "launchd"} and not zones.same(zone, machine, now):
        text = f"{way} knows only the machine's own zone, {zones.name(machine) or 'which has no name'}"
        raise RelayError(text, hint="leave --zone out, or take --with systemd")
    if warning := zones.warning(line, there, now):
        term.say(warning)
    shell = os.environ.get("TZ", "").lstrip(":")
    if zone is None and shell and not zones.same(shell, machine, now):
        term.say(f"this shell's TZ is {shell}; the schedule goes by the machine's clock, {zones.name(machine)}")
    wanted = missed or settings.schedule.missed
    return way, plan.plan(here, settings, at=line.text, zone=zone, missed="skip" if wanted == "skip" else "once")


def _next(way: str, job: "Job", count: int) -> list[datetime]:
    """Return the next times, in the zone that the schedule is read in."""
    from relay.schedule import due, zones

    now = clock.now().astimezone(zones.of(job.zone))
    return due.coming(due.read(job.at), now, count, skips=way == "systemd")


def _said(moment: datetime) -> str:
    return f"{moment:%a %Y-%m-%d %H:%M %Z}"


def _named(way: str) -> str:
    """Return a way by the word that a person knows."""
    return "github" if way == "actions" else way


def _told(job: "Job") -> dict[str, object]:
    return {"name": job.name, "at": job.at, "zone": job.zone, "missed": job.missed}


def _at() -> str:
    """Return the `-C` that a command needs to be typed where the person is."""
    return "" if str(common.folder()) == "." else f"-C {shlex.quote(str(common.folder()))} "

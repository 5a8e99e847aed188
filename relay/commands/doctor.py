"""`relay doctor`: whether everything is there that a run needs, by day or as a night will have it."""

from collections.abc import Iterator
from typing import Final

import click

from relay.commands import common
from relay.errors import Exit
from relay.host import term

COLOURS: Final[dict[str, term.Colour]] = {"ok": "green", "warn": "yellow", "FAIL": "red"}


@click.command("doctor")
@click.option("--as-scheduled", is_flag=True, help="Look in the environment that a scheduled night has.")
@common.everywhere
def command(*, as_scheduled: bool) -> int:
    """Look at git, the repository, relay.toml and the agents, and say what is missing."""
    failed = 0
    for level, text, hint in _at_night() if as_scheduled else _here():
        failed += level == "FAIL"
        term.event("check", level=level, text=text, hint=hint)
        if common.as_json():
            continue
        shown = term.style(level, COLOURS.get(level, "red"))
        term.told(f"{shown}{' ' * (6 - len(level))}{text}")
        if hint:
            term.told(f"      {term.style('hint:', 'cyan')} {hint}")
    if failed:
        what = "night" if as_scheduled else "run"
        term.say(f"{failed} thing{'s' * (failed != 1)} to put right before a {what} can start")
        return int(Exit.USAGE)
    return 0


def _here() -> Iterator[tuple[str, str, str]]:
    from relay.report import health

    for found in health.look(common.folder()):
        yield found.level, found.text, found.hint


def _at_night() -> Iterator[tuple[str, str, str]]:
    """Look as the installed schedule will have it; where none is, as it would be if it were installed now."""
    from relay.record import catalog, config
    from relay.schedule import due, installed, plan, rehearsal, standing

    here = common.ledger()
    settings, _, commit = config.load(here.repo)
    found = installed.read(here)
    if found is None:
        term.say("no schedule is installed; this is how it would be if it were installed from this shell")
        line = due.read(settings.schedule.at)
        wanted = plan.plan(here, settings, at=line.text, zone=None, missed=settings.schedule.missed)
    else:
        rehearsal.refuse_elsewhere(found.method)
        yield from standing.faults(found)
        wanted = found.job
    used = {phase.agent for phase in catalog.phases(here.repo, commit, settings)}
    yield from rehearsal.run(wanted, settings.agents.values(), used, found.method if found is not None else "")

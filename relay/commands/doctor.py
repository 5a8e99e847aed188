"""`relay doctor`: whether everything is there that a run needs."""

from typing import Final

import click

from relay.commands import common
from relay.errors import Exit
from relay.host import term

COLOURS: Final[dict[str, term.Colour]] = {"ok": "green", "warn": "yellow", "FAIL": "red"}


@click.command("doctor")
@common.everywhere
def command() -> int:
    """Look at git, the repository, relay.toml and the agents, and say what is missing."""
    from relay.report import health

    failed = 0
    for found in health.look(common.folder()):
        failed += found.level == "FAIL"
        term.event("check", level=found.level, text=found.text, hint=found.hint)
        if common.as_json():
            continue
        level = term.style(found.level, COLOURS[found.level])
        term.data(f"{level}{' ' * (6 - len(found.level))}{found.text}")
        if found.hint:
            term.data(f"      {term.style('hint:', 'cyan')} {found.hint}")
    if failed:
        term.say(f"{failed} thing{'s' * (failed != 1)} to put right before a run can start")
        return int(Exit.USAGE)
    return 0

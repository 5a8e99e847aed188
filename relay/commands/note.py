"""`relay note`: check a note, or make a lost one again."""

from pathlib import Path

import click

from relay.commands import common, options
from relay.errors import Exit, RelayError
from relay.host import files, term
from relay.report import pick


@click.group("note", cls=options.Group, no_args_is_help=True)
@common.everywhere
def command() -> None:
    """Check a note, or make a lost one again."""


@command.command("lint")
@click.argument("file")
@common.everywhere
def lint(file: str) -> int:
    """Say what is wrong with a note, hand-written ones too: FILE: fault."""
    from relay.record import note_lint

    path = Path(file) if Path(file).is_absolute() else common.folder() / file
    try:
        text = files.read(path.resolve()).decode()
    except FileNotFoundError:
        raise RelayError(f"there is no file `{file}`", hint="relay note lint FILE") from None
    except UnicodeDecodeError as error:
        faults = [f"it is not UTF-8, see byte {error.start}"]
    else:
        faults = note_lint.lint(text)
    for fault in faults:
        term.event("fault", path=file, what=fault)
        if not common.as_json():
            term.data(f"{file}: {fault}")
    if faults:
        return int(Exit.USAGE)
    term.say(f"{file}: {term.style('a good note', 'green')}")
    return 0


@command.command("rebuild")
@click.argument("wanted", metavar="RUN/LEG")
@common.everywhere
def rebuild(wanted: str) -> int:
    """Make a lost note again from receipts and reply; it is written only if it is the one that was sealed."""
    from relay.report import rebuild as rebuilding

    here = common.ledger()
    run, leg = pick.split(wanted)
    run = pick.run(here, run)
    if leg is None:
        raise RelayError(f"`{wanted}` names no leg", hint=f"relay note rebuild {run}/LEG")
    leg = pick.leg(here, run, leg)
    made = rebuilding.rebuild(here, run, leg)
    if not made.written:
        term.say(f"the note of `{leg}` is whole; nothing was written")
        return 0
    term.say(f"wrote `{made.path}`, the note that was sealed")
    if made.kept:
        term.say(f"what stood there is kept as `{made.kept}`")
    term.hint(f"relay resume {run}")
    return 0

"""`relay log [RUN[/LEG]]`: what an agent said while it worked."""

import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from relay.commands import common
from relay.errors import RelayError
from relay.host import clock, term
from relay.record.ledger import Ledger
from relay.report import pick, said

PAUSE: Final = 0.2
"""Seconds between two looks at a transcript that is being written."""


@click.command("log")
@click.argument("wanted", metavar="[RUN[/LEG]]", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on until the leg is sealed.")
@click.option("--raw", is_flag=True, help="Print the lines of the agent's own program, as they came.")
@common.everywhere
def command(wanted: str | None, follow: bool, raw: bool) -> int:  # noqa: FBT001 - options
    """Print what an agent said and did, of the newest leg if none is named."""
    here = common.ledger()
    run, leg = pick.split(wanted)
    run = pick.run(here, run)
    return show(here, run, pick.leg(here, run, leg) if leg is not None else None, follow=follow, raw=raw)


def show(here: Ledger, run: str, leg: str | None, *, follow: bool = False, raw: bool = False) -> int:
    """Print the transcript of a leg, and what is added to it while its runner lives."""
    leg = leg if leg is not None else said.newest(here, run)
    path = here.leg(run, leg) / "transcript.jsonl"
    if not path.exists() and not (follow and said.is_open(here, run, leg)):
        raise RelayError(f"leg `{leg}` has no transcript", hint=f"relay show {run}/{leg}")
    transcript = said.Said(path, raw=raw)
    with _reader() as wait:
        going = True
        while going:
            # Asked before the reading: whatever was written before the seal is then read.
            going = follow and said.is_open(here, run, leg)
            for line in transcript.more(last=not going):
                if common.as_json():
                    term.event("output", run=run, leg=leg, text=line)
                else:
                    term.data(line)
            going = going and not wait()
    return 0


@contextmanager
def _reader() -> Iterator[Callable[[], bool]]:
    """Give a way to wait for a moment, which tells whether whoever reads stdout has gone, as `| head` does."""
    try:
        copy = os.dup(1)  # stays the pipe even when the terminal has given up on stdout
    except OSError:
        yield _pause
        return
    poll = select.poll()
    poll.register(copy, 0)  # an error or a hang-up is reported unasked
    try:
        yield lambda: bool(poll.poll(PAUSE * 1000))
    finally:
        os.close(copy)


def _pause() -> bool:
    clock.pause(PAUSE)
    return False

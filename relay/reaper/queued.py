"""The queue and the nights: entries that point nowhere, entries that a run was made from, nights that were killed."""

import shlex
from collections.abc import Collection
from pathlib import Path

from relay import nights, queue
from relay.errors import Exit, RelayError
from relay.reaper import look
from relay.reaper.look import Run
from relay.reaper.tally import Tally


def settle(tally: Tally, runs: list[Run], listed: Collection[str]) -> None:
    """Repair what a killed night left, and raise what the next one would stumble over.

    `listed` are the specs that relay.toml queues.
    """
    _taken(tally, runs)
    _entries(tally, runs, listed)
    _nights(tally)


def _taken(tally: Tally, runs: list[Run]) -> None:
    """Take away the entries that a run was made from; it names them in its plan."""
    made = {run.plan.queued: run.id for run in runs if run.plan is not None and run.plan.queued}
    left = {path.stem for path in tally.ledger.queue.glob("[!.]*.json")} & made.keys()
    if not left:
        return
    try:
        if not tally.dry:
            queue.settle(tally.ledger)
    except RelayError as error:
        if error.exit_code != Exit.HELD:
            raise
        return
    for name in sorted(left):
        tally.repair("queue", f"took `{name}` out of the queue: {made[name]} was made from it", made[name])


def _entries(tally: Tally, runs: list[Run], listed: Collection[str]) -> None:
    """Raise the entries that point nowhere."""
    waiting = queue.entries(tally.ledger)
    known = {run.id for run in runs} | {entry.spec for entry in waiting} | set(listed)
    known |= {run.plan.source for run in runs if run.plan is not None and run.plan.source}
    for entry in waiting:
        command = f"relay queue remove {shlex.quote(entry.id)}"
        if problem := _gone(queue.where(tally.ledger, entry.spec)):
            tally.alert("queue", entry.id, f"`{entry.spec}` is queued and {problem}", command)
        elif entry.after is not None and entry.after not in known:
            what = f"`{entry.spec}` is queued after `{entry.after}`, which is neither a run nor queued"
            tally.alert("queue", entry.id, what, command)
    for path, problem in queue.unreadable(tally.ledger).items():
        command = f"rm {'-r ' * path.is_dir()}{shlex.quote(str(path))}"
        tally.alert("queue", str(path), f"an entry of the queue cannot be read: {problem}", command)


def _gone(path: Path) -> str:
    """Say why no spec can be read there; nothing where one may."""
    try:
        return "" if path.is_file() else "is not there"
    except OSError as error:  # a folder that is another user's, a name that is too long
        return f"cannot be looked at: {error.strerror}"


def _nights(tally: Tally) -> None:
    """Write into the record of a night that was killed that it was, unless a night is in progress."""
    going = [night for night in nights.every(tally.ledger) if night.ended is None]
    if not going or look.locked(tally.ledger.nights / nights.LOCK):  # in a container too, as `hold` would find
        return
    try:
        if tally.dry:
            killed = tuple(going)
        else:
            with nights.hold(tally.ledger):
                killed = nights.settle(tally.ledger)
    except RelayError as error:
        if error.exit_code != Exit.HELD:
            raise
        return
    for night in killed:
        tally.repair("night", f"the night {night.id} was killed, and its record says so now")

"""The reaper: finds what nobody owns any more, by comparing the ledger, git and the machine; repairs it or raises it.

Nothing is removed that is not kept elsewhere, nothing is touched that a live process holds, and each thing is raised
once, with the command that settles it. What a run needs of a person by its plan is not the reaper's to say.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import ParamSpec

from relay.errors import Exit, RelayError
from relay.host import lock
from relay.queue import listed
from relay.reaper import disk, leftovers, legs, look, processes, queued, raised
from relay.reaper.tally import KINDS, Repair, Tally
from relay.record import config
from relay.record.ledger import Ledger
from relay.terms import Alert, Reap, Struct

__all__ = ["KINDS", "Pass", "Repair", "limit", "pass_over", "reap", "settings"]

P = ParamSpec("P")

limit = disk.limit


class Pass(Struct, frozen=True, kw_only=True):
    """What one pass came to: what was repaired (in a dry run: would be), and which alerts are new.

    `alone` is false where a loop was live: then worktrees, refs and unsealed legs were left to a later pass.
    """

    repaired: tuple[Repair, ...] = ()
    raised: tuple[Alert, ...] = ()
    alone: bool = True


def reap(ledger: Ledger, *, dry_run: bool = False) -> tuple[Alert, ...]:
    """Pass once over everything, and return the alerts that are new."""
    return pass_over(ledger, dry_run=dry_run).raised


def settings(ledger: Ledger) -> tuple[Reap, tuple[str, ...]]:
    """Return `[reap]` of relay.toml, and the specs that it queues.

    A relay.toml that is refused does not keep the reaper from its work: then these are the defaults.
    """
    try:
        found, _, commit = config.load(ledger.repo)
        return found.reap, tuple(listed.matching(ledger.repo, commit, found.queue))
    except RelayError:
        return Reap(), ()


def pass_over(ledger: Ledger, *, dry_run: bool = False) -> Pass:
    """Pass once over everything. Beside a live loop only that is done which its leg's fingerprints do not see."""
    wanted, listed = settings(ledger)
    stale = leftovers.records(ledger)
    with _alone(ledger, dry=dry_run) as alone:
        tally = Tally(ledger, dry=dry_run, alone=alone, stale=stale)
        runs = look.runs(ledger)
        for repairing in (processes.settle, legs.settle, leftovers.settle):
            _step(tally, repairing, tally, runs)
        runs = look.runs(ledger) if tally.repaired and not dry_run else runs
        _step(tally, raised.look, tally, runs, wanted)
        _step(tally, queued.settle, tally, runs, listed)
        _step(tally, disk.settle, tally, runs, wanted.max_disk)
        new = tally.settle()
    return Pass(repaired=tuple(tally.repaired), raised=new, alone=alone)


def _step(tally: Tally, step: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """Take one step; that it fails is raised, hides none of the others, and clears nothing that was raised before."""
    try:
        step(*args, **kwargs)
    except (RelayError, OSError) as error:
        tally.unsure("")
        name = step.__module__.rpartition(".")[2]
        why = error.message if isinstance(error, RelayError) else f"`{error.filename}`: {error.strerror}"
        tally.alert("reaper", name, f"the reaper could not look at everything: {why}", "relay doctor")


@contextmanager
def _alone(ledger: Ledger, *, dry: bool) -> Iterator[bool]:
    """Keep loops from starting meanwhile; say whether that was possible. A dry run takes no lock, for that writes."""
    if dry or not ledger.root.is_dir():
        yield not look.locked(ledger.lock)
        return
    with ExitStack() as held:
        try:
            held.enter_context(lock.hold(ledger.lock, "relay reap"))
            alone = True
        except RelayError as error:
            if error.exit_code != Exit.HELD:
                raise
            alone = False
        yield alone

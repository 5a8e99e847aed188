"""Legs that were begun and that nobody owns: sealed by salvage, under the run's lock; then the places they left."""

import shlex
from typing import Final

from relay import salvage
from relay.errors import Exit, RelayError
from relay.host import lock
from relay.reaper import homes, look
from relay.reaper.look import Home, Run
from relay.reaper.tally import Tally
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.salvage import places
from relay.terms import Plan


def settle(tally: Tally, runs: list[Run]) -> None:
    """Seal what was begun and is nobody's, and look at every place of every run.

    Beside a live loop nothing of this is done: its leg's fingerprints would see it.
    """
    homed = look.homes(tally.ledger)
    known = {run.id for run in runs}
    copied = next((run.copied for run in runs if run.copied), "")
    if copied:
        what = f"this ledger came with a copy of `{copied}`: its worktrees and agents are that one's"
        tally.alert("copied", copied, what, f"rm -r {shlex.quote(str(tally.ledger.root))}")
    if not tally.alone or copied:
        tally.unsure("worktree")
        tally.unsure("run")
        return
    for run in runs:
        if run.plan is None:
            tally.alert("run", run.id, f"{run.id} cannot be read: {run.problem}", f"relay verify {run.id}", run.id)
            _unsure(tally, run, homed.get(run.id, []))
        else:
            _run(tally, run, homed.get(run.id, []))
    for name, found in homed.items():
        if name not in known:
            homes.strays(tally, found)


def _run(tally: Tally, run: Run, found: list[Home]) -> None:
    """Settle one run, unless somebody holds it."""
    if not (run.open or found or _halves(tally.ledger, run)):
        return
    if tally.dry:
        _told(tally, run, found)
        return
    try:
        with lock.hold(tally.ledger.run_lock(run.id), "reaping", run.id):
            _sealed(tally, run, found)
            homes.settle(tally, look.again(tally.ledger, run), look.homes(tally.ledger).get(run.id, []))
    except RelayError as error:
        _unsure(tally, run, found)
        _stuck(tally, run, error)


def _stuck(tally: Tally, run: Run, error: RelayError) -> None:
    """Raise that a run cannot be settled, unless somebody else just holds it."""
    if error.exit_code == Exit.HELD:
        tally.unsure("run", run.id)
    else:
        what = f"{run.id} cannot be settled: {error.message}"
        tally.alert("run", run.id, what, f"relay resume {run.id}", run.id)


def _unsure(tally: Tally, run: Run, found: list[Home]) -> None:
    """Note that a run's places could not be looked at now, wherever they are."""
    for path in (look.place(tally.ledger) / run.id, *(home.path for home in found)):
        tally.unsure("worktree", str(path))


def _told(tally: Tally, run: Run, found: list[Home]) -> None:
    """Say what would be done, and change nothing."""
    if look.locked(tally.ledger.run_lock(run.id)):
        _unsure(tally, run, found)
        return
    for start in () if run.moved else run.open:
        if look.locked(tally.ledger.leg_lock(run.id, start.leg)):
            continue
        try:
            places.refuse_unseen(start)
        except RelayError as error:
            _stuck(tally, run, error)
        else:
            tally.repair("leg", f"{run.id}/{start.leg} was begun and is nobody's: it is sealed as it stands", run.id)
    homes.settle(tally, run, found)


def aside(ledger: Ledger, plan: Plan) -> str:
    """Return what puts the records of a run that can go on nowhere aside, and queues its spec anew; nothing is lost."""
    folder, top = ledger.root / ASIDE, ledger.repo.main_top or ledger.repo.common
    words = [["mkdir", "-p", str(folder)], ["mv", str(ledger.folder(plan.run)), str(folder)]]
    if plan.source is not None and (top / plan.source).is_file():
        words.append(["relay", "-C", str(top), "queue", "add", str(top / plan.source)])
    return " && ".join(map(shlex.join, words))


def _sealed(tally: Tally, run: Run, found: list[Home]) -> None:
    """Let salvage seal what nobody owns, and say what it sealed and removed."""
    if run.plan is None:
        return
    if run.moved:  # what was begun there names folders that are elsewhere now
        for start in run.open:
            what = f"{run.id}/{start.leg} was begun in `{run.moved}`, before the repository was moved"
            tally.alert("run", run.id, what, aside(tally.ledger, run.plan), run.id)
        return
    halves = _halves(tally.ledger, run)
    for sealed in salvage.seal_open(tally.ledger, run.plan):
        ended = f"as `{sealed.ended_by}`" if sealed.kind != "act" else "by what came of it"
        tally.repair("leg", f"{run.id}/{sealed.leg} was begun and nobody's: sealed {ended}", run.id)
    left = {home.path for home in look.homes(tally.ledger).get(run.id, [])}
    for home in found:
        if home.path not in left and home.entry is not None:
            tally.repair("worktree", f"removed `{home.path}`: its leg is sealed", run.id)
    for leg in sorted(halves - _halves(tally.ledger, run)):
        tally.repair("leg", f"{run.id}/{leg} never began: its empty folder is removed", run.id)


def _halves(ledger: Ledger, run: Run) -> set[str]:
    """Return the folders of legs that hold neither a start nor a receipt."""
    names = (leg for _, leg in ledgers.numbered(ledger, run.id))
    return {leg for leg in names if not any((ledger.leg(run.id, leg) / f"{what}.json").exists() for what in _MARKS)}


ASIDE: Final = "moved"
"""The folder of the ledger where the records of runs are kept that were begun before the repository was moved."""
_MARKS = ("start", "receipt")

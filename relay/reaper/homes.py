"""The places of legs: worktrees and what lies beside them. What nobody owns goes where all of it is kept elsewhere.

Each is looked at under the locks of its run and its leg. What is not kept is raised, with the command that ends it.
"""

import shlex
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay import confine
from relay.errors import Exit, RelayError
from relay.host import files, git, jail, lock, scan, worktree
from relay.host.lease import CACHE, Lease
from relay.host.scratch import HOUR
from relay.reaper import kept, look
from relay.reaper.look import Home, Run
from relay.reaper.tally import Tally
from relay.record.ledger import Ledger
from relay.rules import history, plan
from relay.terms import Start

OVER: Final = frozenset({"shipped", "not-accepted"})
"""Outcomes after which nobody goes back to what stands in the worktree of a leg."""


def spared(run: Run, home: Home) -> bool:
    """Tell whether a person may still need a place: an offer that waits, or the newest leg of a run that goes on."""
    if run.outcome in OVER:
        return False
    pending, newest = history.offer(run.chain), history.last_leg(run.chain)
    needed = {one.leg for one in (pending, newest) if one is not None}
    at = {Path(start.worktree).name for start in run.starts if start.leg in needed and start.worktree}
    return home.leg in needed | at


def settle(tally: Tally, run: Run, found: Iterable[Home]) -> None:
    """Look at what is left of a run's places; its lock is held, unless this is a dry run.

    What lies beside a leg's own place is looked at after it, since it goes with it.
    """
    stay: set[str] = set()
    for home in sorted(found, key=lambda home: "." in home.path.name):
        if home.leg in {start.leg for start in run.open} or spared(run, home) or home.leg in stay:
            continue
        if home.entry is None and scan.kind(str(home.path)) == "nothing":  # it went with what it lay beside
            continue
        path = tally.ledger.leg_lock(run.id, home.leg)
        gone = False
        if look.locked(path):
            tally.unsure("worktree", str(home.path))
        elif tally.dry or not tally.ledger.leg(run.id, home.leg).is_dir():
            gone = _settle(tally, home, run)
        else:
            try:
                with lock.hold(path, "reaping", run.id):
                    gone = _settle(tally, home, run)
            except RelayError as error:
                if error.exit_code != Exit.HELD:
                    raise
                tally.unsure("worktree", str(home.path))
        if not gone and home.path.name == home.leg:
            stay.add(home.leg)


def strays(tally: Tally, found: Iterable[Home]) -> None:
    """Look at the places of a run that the ledger does not know.

    One that is empty may be that of a repository which stood here, or stands here in another container: its leg awaits
    its reply there. No leg lives for a day.
    """
    for home in found:
        if home.entry is None and _fresh(home.path):
            tally.unsure("worktree", str(home.path))
        else:
            _settle(tally, home, None)


def _fresh(path: Path) -> bool:
    """Tell whether it is an empty folder that was made, or emptied, within a day."""
    try:
        return path.lstat().st_mtime > time.time() - 24 * HOUR and not any(path.iterdir())
    except OSError:
        return False


def _settle(tally: Tally, home: Home, run: Run | None) -> bool:
    """Remove one place that nobody owns, or raise it; tell whether it goes."""
    if (pid := kept.used_by(home.path)) is not None:
        what = f"`{home.path}` is nobody's, and process {pid} works in it"
        tally.alert("worktree", str(home.path), what, "relay reap", home.run)
        return False
    if run is not None and home.path.name.startswith(f".{home.leg}.scratch-"):
        return _remove(tally, home, "what a judge's commands wrote, which was to vanish")
    if run is not None and home.entry is None and home.path.name.endswith(CACHE):
        return _remove(tally, home, "what set-up fetched goes with its worktree")
    if run is not None and home.entry is None and home.path.name == f"{home.leg}.io":
        return _beside(tally, home, run)
    why, command = fate(tally.ledger, home, run)
    if not why:
        return _remove(tally, home, "everything in it is kept elsewhere")
    tally.alert("worktree", str(home.path), f"`{home.path}` is nobody's, and {why}", command, home.run)
    return False


def _beside(tally: Tally, home: Home, run: Run) -> bool:
    """Remove the folder where a leg's reply was awaited, unless a reply lies there that the ledger does not have."""
    late = (home.path / "reply.json").exists() and not (tally.ledger.leg(run.id, home.leg) / "reply.json").exists()
    if late:
        what = f"`{home.path}` holds a reply that came too late to count"
        tally.alert("worktree", str(home.path), what, f"rm -r {shlex.quote(str(home.path))}", run.id)
        return False
    return _remove(tally, home, "the leg whose reply was awaited there is sealed")


def fate(ledger: Ledger, home: Home, run: Run | None) -> tuple[str, str]:
    """Say why a place may not go, and what a person types who has looked at it; nothing where it may."""
    name, there = shlex.quote(str(home.path)), scan.kind(str(home.path))
    force = f"git worktree remove --force --force {name}"
    if home.entry is None:
        if there != "a folder":
            return f"it is {there}", f"rm {name}"
        git_dir = kept.git_dir(ledger.repo, home.path)
        if reason := kept.locked(git_dir):
            return reason, f"git worktree unlock {name}"
        lease = Lease(path=home.path, git_dir=git_dir, pointer_sha256="")
        return _missing(ledger, home, run, lease) if any(home.path.iterdir()) else "", f"rm -r {name}"
    if there == "nothing":
        held = kept.entry_holds(ledger.repo, home.entry.git_dir)
        return f"it is gone, but {held}" if held else "", force
    found = kept.lease(home.path, home.entry.git_dir)
    if found is None:
        return _elsewhere(home.path, home.entry.git_dir)
    clean = run is not None and "for=" in home.entry.reason  # where Relay ran commands on an exact commit
    return "" if clean else _missing(ledger, home, run, found), force


def _elsewhere(path: Path, git_dir: Path) -> tuple[str, str]:
    """Say whose a worktree is that does not lead back here; to repair what is another repository's would take it."""
    if other := kept.owner(path):
        what = f"it is a worktree of `{other}`, of which this repository is a copy"
        return what, f"rm -r {shlex.quote(str(git_dir))}"
    command = f"git worktree repair {shlex.quote(str(path))}"
    return "its `.git` does not lead back here: the repository was moved", command


def _missing(ledger: Ledger, home: Home, run: Run | None, lease: Lease) -> str:
    """Compare a worktree with what its run's refs keep: first what its own legs made."""
    refs = git.refs(ledger.repo, f"refs/relay/{home.run}")
    starts: dict[str, Start] = {}
    if run is not None:
        starts = {start.leg: start for start in run.starts if start.worktree == str(home.path)}
    legs = starts.keys() | {home.leg}
    own = [oid for name, oid in refs.items() if name.split("/")[3].partition(".")[0] in legs]
    head = worktree.head(ledger.repo, lease) if lease.git_dir.is_dir() else None
    given = [start.start for start in starts.values() if kept.on_a_ref(ledger.repo, start.start)]
    baseline = next((start.baseline for start in starts.values() if start.baseline), {})
    rung = confine.rung(run.plan)[0] if run is not None and run.plan is not None else jail.choose("auto")[0]
    commits = dict.fromkeys([*own, *given, *([head] if head else [])])
    return kept.missing(ledger.repo, lease, commits, baseline, rung)


def _remove(tally: Tally, home: Home, why: str) -> bool:
    """Remove a place, and say that: the folder, git's entry where there is one, and the run's folder if it is empty."""
    was = scan.kind(str(home.path)) != "nothing"
    if not tally.dry:
        if home.entry is not None:
            worktree.release(tally.ledger.repo, Lease(path=home.path, git_dir=home.entry.git_dir, pointer_sha256=""))
        else:
            files.remove_tree(home.path)
        if home.path.parents[1] == look.place(tally.ledger):
            with suppress(OSError):
                home.path.parent.rmdir()
    what = f"removed `{home.path}`: {why}" if was else f"forgot git's entry of `{home.path}`, which was gone"
    tally.repair("worktree", what, home.run)
    return True


def evict(tally: Tally, run: Run, home: Home) -> bool:
    """Remove a place that was spared, to make room, where everything in it is kept elsewhere; tell whether it went."""
    if home.leg in {start.leg for start in run.open} or run.plan is None:
        return False
    pending = history.offer(run.chain)
    if pending is not None and home.leg == pending.leg:
        return False
    if kept.used_by(home.path) is not None or fate(tally.ledger, home, run)[0]:
        return False
    return _remove(tally, home, "it made room, and everything in it is kept elsewhere")


def rank(run: Run, home: Home) -> tuple[bool, float]:
    """Order what may make room: accepted and ended runs first, then by age."""
    over = isinstance(run.step, plan.Accepted | plan.End)
    try:
        return not over, home.path.lstat().st_mtime
    except OSError:
        return not over, 0.0

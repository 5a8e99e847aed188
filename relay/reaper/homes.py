"""The places of legs: worktrees and what lies beside them. What nobody owns goes where all of it is kept elsewhere.

Each is looked at under the locks of its run and its leg. What is not kept is raised, with the command that ends it.
"""

import shlex
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay import caches, confine, loss
from relay.errors import Exit, RelayError
from relay.host import files, git, jail, lock, scan, worktree
from relay.host.lease import Lease
from relay.host.scratch import HOUR
from relay.reaper import look
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
        needed = home.leg in {start.leg for start in run.open} or spared(run, home) or home.leg in stay
        if needed and not home.going:
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
    about = home.path
    if home.lost or home.moved(tally.ledger):
        what, command = _gone(home)
    elif home.entry is not None and (away := loss.out_of_sight(home.path)):
        about = home.path.parent  # told once for all that lay there, and anew when it is back
        what, command = f"`{home.path}` is gone, and {away}", f"ls -ld {shlex.quote(str(about))}"
        what += f"; where it is lost for good, type git worktree remove -f -f {shlex.quote(str(home.path))}"
    elif (mount := files.mounted_below(home.path)) is not None:  # git, told to remove it by force, would empty that
        what = f"`{home.path}` is nobody's, and something is mounted at `{mount}`"
        command = f"umount {shlex.quote(str(mount))}"
    elif not home.going and (users := loss.busy(home.path)):
        what, command = f"`{home.path}` is nobody's, and {users}", "relay reap"
    elif spent := _spent(home, run):
        return _remove(tally, home, spent)
    elif run is not None and home.entry is None and home.path.name == f"{home.leg}.io":
        return _beside(tally, home, run)
    else:
        why, command = fate(tally.ledger, home, run)
        if not why:
            return _remove(tally, home, "everything in it is kept elsewhere")
        what = f"`{home.path}` is nobody's, and {why}"
    tally.alert("worktree", str(about), what, command, home.run)
    return False


def _spent(home: Home, run: Run | None) -> str:
    """Say why a place goes whatever is in it; nothing where that is to be looked at."""
    if home.going:
        return "its removal was cut short"
    if run is not None and home.path.name.startswith(f".{home.leg}.") and ".scratch-" in home.path.name:
        return "what a judge's commands wrote, which was to vanish"
    if run is not None and home.entry is None and caches.ours(home.path):
        return "what set-up fetched goes with its worktree"
    return ""


def _gone(home: Home) -> tuple[str, str]:
    """Say what became of a worktree that is not where Relay put it, and what a person types for whom that is well."""
    name, leg = shlex.quote(str(home.path)), f"{home.run}/{home.leg}"
    if home.lost:
        what = f"git's entry `{home.path}` does not say any more where the worktree of {leg} is"
        return f"{what}: where there is one, type git worktree repair FOLDER", f"rm -r {name}"
    if scan.kind(str(home.path)) == "nothing":
        return f"the worktree of {leg} was moved to `{home.path}` and is gone", f"git worktree remove -f -f {name}"
    return f"the worktree of {leg} was moved to `{home.path}`: it is yours to keep", f"git worktree unlock {name}"


def _beside(tally: Tally, home: Home, run: Run) -> bool:
    """Remove the folder where a leg's reply was awaited, unless a reply lies there that the ledger does not have."""
    late = (home.path / "reply.json").exists() and not (tally.ledger.leg(run.id, home.leg) / "reply.json").exists()
    offered = any(one.leg == home.leg and one.act == "offer" for one in run.chain)
    theirs = offered and scan.kind(str(home.path)) == "a folder" and any(home.path.iterdir())
    if late or theirs:
        what = f"`{home.path}` holds " + ("a reply that came too late to count" if late else "what somebody put there")
        tally.alert("worktree", str(home.path), what, f"rm -r {shlex.quote(str(home.path))}", run.id)
        return False
    return _remove(tally, home, "the leg whose reply was awaited there is sealed")


def fate(ledger: Ledger, home: Home, run: Run | None) -> tuple[str, str]:
    """Say why a place may not go, and what a person types who has looked at it; nothing where it may."""
    name, there = shlex.quote(str(home.path)), scan.kind(str(home.path))
    if home.entry is None:
        return _unknown(ledger, home, run) if there == "a folder" else (f"it is {there}", f"rm {name}")
    force = f"git worktree remove --force --force {name}"
    if there == "nothing":
        cut = worktree.going(home.path)  # that it may go was found before
        held = "" if cut else loss.entry_holds(ledger.repo, home.entry.git_dir)
        return f"it is gone, but {held}" if held else "", force
    found = loss.lease(home.path, home.entry.git_dir)
    if found is None and scan.kind(f"{home.path}/.git") == "nothing":  # what is left of one, and its entry knows it
        found, force = Lease(path=home.path, git_dir=home.entry.git_dir, pointer_sha256=""), f"rm -r {name}"
    if found is None:
        return _elsewhere(home.path, home.entry.git_dir)
    if run is not None and "for" in home.entry.said:  # where Relay ran commands on an exact commit
        return loss.worked_in(ledger.repo, found, _rung(run)) if home.entry.complete else "", force
    return _missing(ledger, home, run, found), force


def _unknown(ledger: Ledger, home: Home, run: Run | None) -> tuple[str, str]:
    """Say, as `fate` does, why a folder may not go that no entry of Relay's names."""
    name, git_dir = shlex.quote(str(home.path)), loss.git_dir(ledger.repo, home.path)
    if reason := loss.locked(git_dir):
        return reason, f"git worktree unlock {name}"
    lease = Lease(path=home.path, git_dir=git_dir, pointer_sha256="")
    return _missing(ledger, home, run, lease) if any(home.path.iterdir()) else "", f"rm -r {name}"


def _elsewhere(path: Path, git_dir: Path) -> tuple[str, str]:
    """Say whose a worktree is that does not lead back here; to repair what is another repository's would take it."""
    if other := loss.owner(path):
        what = f"it is a worktree of `{other}`, of which this repository is a copy"
        return what, f"rm -r {shlex.quote(str(git_dir))}"
    name, there = shlex.quote(str(path)), scan.kind(f"{path}/.git")
    if there != "a file":
        return f"its `.git` is {there}, not the file that git made", f"rm -r {name}"
    return "its `.git` does not lead back here: the repository was moved", f"git worktree repair {name}"


def _missing(ledger: Ledger, home: Home, run: Run | None, lease: Lease) -> str:
    """Compare a worktree with what its run's refs keep: first what its own legs made."""
    refs = git.refs(ledger.repo, f"refs/relay/{home.run}")
    starts: dict[str, Start] = {}
    if run is not None:
        starts = {start.leg: start for start in run.starts if start.worktree == str(home.path)}
    legs = starts.keys() | {home.leg}
    own = [oid for name, oid in refs.items() if name.split("/")[3].partition(".")[0] in legs]
    head = worktree.head(ledger.repo, lease) if lease.git_dir.is_dir() else None
    given = [start.start for start in starts.values() if loss.on_a_ref(ledger.repo, start.start)]
    baseline = next((start.baseline for start in starts.values() if start.baseline), {})
    commits = dict.fromkeys([*own, *given, *([head] if head else [])])
    return loss.missing(ledger.repo, lease, commits, baseline, _rung(run))


def _rung(run: Run | None) -> jail.Rung:
    return confine.rung(run.plan)[0] if run is not None and run.plan is not None else jail.choose("auto")[0]


def _remove(tally: Tally, home: Home, why: str) -> bool:
    """Remove a place, and say that: the folder, git's entry where there is one, and the run's folder if it is empty."""
    was, cut = scan.kind(str(home.path)) != "nothing", bool(worktree.going(home.path))
    try:
        if not tally.dry:
            if home.entry is not None:
                lease = Lease(path=home.path, git_dir=home.entry.git_dir, pointer_sha256="")
                worktree.release(tally.ledger.repo, lease)
            elif home.going:
                files.remove_tree(home.path)
            else:
                worktree.clear(tally.ledger.repo, home.path)
    except RelayError as error:
        left = next(iter(worktree.going(home.path)), home.path)
        force = "sudo rm -r" if left != home.path or home.going else "ls -la"
        command = f"{force} {shlex.quote(str(left))}"
        tally.alert("worktree", str(left), f"`{left}` is nobody's, but {error.message}", command, home.run)
        return False
    around = home.path.parent
    known = any(entry.path.parent == around for entry in worktree.own(tally.ledger.repo))
    if not (tally.dry or known) and around.parent == look.place(tally.ledger):  # else the others seem out of sight
        with suppress(OSError):
            around.rmdir()
    what = f"removed `{home.path}`: {why}" if was else f"forgot git's entry of `{home.path}`, which was gone"
    if cut and not was:
        what = f"removed what was left of `{home.path}`: its removal was cut short"
    tally.repair("worktree", what, home.run)
    return True


def evict(tally: Tally, run: Run, home: Home) -> bool:
    """Remove a place that was spared, to make room, where everything in it is kept elsewhere; tell whether it went."""
    if home.leg in {start.leg for start in run.open} or run.plan is None or home.moved(tally.ledger):
        return False
    pending = history.offer(run.chain)
    if pending is not None and home.leg == pending.leg:
        return False
    if loss.used_by(home.path) is not None or fate(tally.ledger, home, run)[0]:
        return False
    return _remove(tally, home, "it made room, and everything in it is kept elsewhere")


def rank(run: Run, home: Home) -> tuple[bool, float]:
    """Order what may make room: accepted and ended runs first, then by age."""
    over = isinstance(run.step, plan.Accepted | plan.End)
    try:
        return not over, home.path.lstat().st_mtime
    except OSError:
        return not over, 0.0

"""The places of legs that nobody owns any more: each goes where nothing in it is lost, and nobody has a hand on it."""

import math
import shlex
from contextlib import suppress
from pathlib import Path

import msgspec

from relay import caches, clean, confine, loss, settle
from relay.errors import Exit, RelayError
from relay.host import files, git, inventory, lock, scan, touched, worktree
from relay.host.lease import CACHE, Lease
from relay.record import ledger as ledgers
from relay.record import receipt as receipts
from relay.record.ledger import Ledger
from relay.terms import Plan, Receipt, Start


def refuse_unseen(start: Start) -> None:
    """Refuse to seal a leg whose worktree is out of sight: its work may be there, and would be done again."""
    if start.pointer_sha256 and start.worktree and (said := loss.out_of_sight(Path(start.worktree))):
        around = shlex.quote(str(Path(start.worktree).parent))
        raise RelayError(
            f"the worktree of leg `{start.leg}` is gone, and {said}",
            hint=f"bring it back; where it is lost for good: mkdir -p {around} && relay resume {start.run}",
            exit_code=Exit.HUMAN,
        )


def lease(start: Start) -> Lease | None:
    """Return the worktree of a leg whose agent may have started; before that there is nothing to commit from."""
    if not start.pointer_sha256 or not start.worktree or not Path(start.worktree).is_dir():
        return None
    return Lease(path=Path(start.worktree), git_dir=Path(start.git_dir or ""), pointer_sha256=start.pointer_sha256)


def _stays(ledger: Ledger, plan: Plan, start: Start, found: Lease, sealed: Receipt | None) -> str:
    """Say why the own worktree of a leg may not go; nothing where it may."""
    repo, commits = ledger.repo, [sealed.head] if sealed else []
    if scan.kind(str(found.path)) == "nothing":
        cut = not start.pointer_sha256 or worktree.going(found.path)  # that it may go was found before
        return "" if cut else loss.entry_holds(repo, found.git_dir, commits, start.baseline)
    if held := loss.held(repo, found):
        return held
    made = plan.worktree
    unknown = made.setup or made.submodules or made.lfs or not (found.git_dir / inventory.MARKS).exists()
    rung = confine.rung(plan)[0]
    if not start.pointer_sha256 and unknown:  # no agent came so far, and what its set-up made was not yet looked at
        return loss.worked_in(repo, found, rung) if (found.git_dir / touched.PRISTINE).exists() else ""
    kept = loss.carried(found.git_dir) and git.resolve(repo, f"refs/relay/{start.run}/{start.leg}")
    if kept or start.kind == "judge":
        return loss.worked_in(repo, found, rung)  # what commands left there is no work
    commits += [one for one in (start.start, loss.head(repo, found.git_dir)) if one and loss.on_a_ref(repo, one)]
    return loss.missing(repo, found, dict.fromkeys(commits), start.baseline, rung)


def discard(ledger: Ledger, plan: Plan, start: Start, sealed: Receipt | None = None, *, keep: bool = False) -> None:
    """Remove the leg's worktrees where nobody has a hand on them: its own, and the clean checkouts beside it.

    Its own stays where something in it would be lost, and where `keep` says so; a checkout, where somebody worked in
    it. What Relay did not make there is not looked at, and what cannot be removed stays: the reaper raises both.
    """
    repo, own = ledger.repo, ledger.worktree(start.run, start.leg)
    home = Path(start.worktree) if start.worktree else own  # a leg that takes an offer works in the offer's
    entries = {entry.path: entry for entry in worktree.own(repo)}
    at = Lease(path=home, git_dir=loss.git_dir(repo, home), pointer_sha256="")
    if home in entries or start.git_dir:
        known = entries[home].git_dir if home in entries else Path(start.git_dir or "")
        at = msgspec.structs.replace(at, git_dir=known)
    loss.beat.end(at.git_dir)
    theirs = loss.beat.last(at.git_dir) if home != own or start.act == "offer" else math.inf
    with suppress(RelayError):
        if not (keep or _stays(ledger, plan, start, at, sealed)):
            worktree.release(repo, at)
            settle.put_away(home.parent / f"{home.name}.io", theirs)
    for path, entry in sorted(entries.items()):
        beside = path.parent == own.parent and path.name.startswith(f"{own.name}.") and "for" in entry.said
        with suppress(RelayError):
            if beside and not clean.stays(plan, repo, entry):
                worktree.release(repo, Lease(path=path, git_dir=entry.git_dir, pointer_sha256=""))
    for path in own.parent.glob(f"{own.name}.*"):
        if caches.ours(path) and not path.with_name(path.name.removesuffix(CACHE)).exists():
            with suppress(RelayError):
                files.remove_tree(path)


def forget(ledger: Ledger, plan: Plan, start: Start) -> None:
    """Take back an offer that was never sealed: nobody was told of it."""
    discard(ledger, plan, start)
    files.remove_tree(ledger.leg(start.run, start.leg))


def tidy(ledger: Ledger, plan: Plan) -> None:
    """Finish the removal of a sealed leg's worktrees: its runner may have been killed before it came to that."""
    parent = ledger.worktree(plan.run, "")
    left = {path.name for path in parent.glob("*")}
    left |= {entry.path.name for entry in worktree.own(ledger.repo) if entry.path.parent == parent}
    for sealed in ledgers.receipts(ledger, plan.run) if left else ():
        begun = ledger.leg(plan.run, sealed.leg) / "start.json"
        if sealed.kind == "act" or not begun.exists():
            continue
        start = receipts.decode(files.read(begun), Start, str(begun))
        names = {sealed.leg, Path(start.worktree or "").name}
        if not any(name.partition(".")[0] in names for name in left):
            continue
        try:
            with lock.hold(ledger.leg_lock(plan.run, sealed.leg), "tidying", plan.run):
                if settle.done_with(sealed) or sealed.ended_by == "interrupted":
                    discard(ledger, plan, start, sealed)
        except RelayError as error:
            if error.exit_code != Exit.HELD:  # its runner is about to do it
                raise


def sweep(ledger: Ledger, run: str) -> None:
    """Remove leg folders that hold neither a start nor a receipt: the number was never taken."""
    for _, leg in ledgers.numbered(ledger, run):
        folder = ledger.leg(run, leg)
        if not (folder / "start.json").exists() and not (folder / "receipt.json").exists():
            files.remove_tree(folder)

"""Legs that nobody owns any more: each start without a receipt is sealed before anything else happens.

What a killed worker left in its worktree is kept as `LEG.cut`, and the next leg starts from it; a killed judge leaves
nothing. A worktree that never became whole is recognised, and never committed from.
"""

from pathlib import Path

from relay import __version__, settle, ship
from relay.errors import Exit, RelayError
from relay.host import clock, files, git, lock, proc, snapshot, worktree
from relay.host.worktree import Lease
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Plan, Receipt, Start


def seal_open(ledger: Ledger, plan: Plan) -> list[Receipt]:
    """Seal every leg that was begun and that nobody owns; the caller holds the run's lock.

    Raises `RelayError`: exit 75 where a leg's owner is alive, exit 6 where the ledger belongs to another repository.
    """
    sealed = []
    for start in ledgers.unsealed(ledger, plan.run):
        if start.common_dir != str(ledger.repo.common):
            raise RelayError(
                f"the ledger was copied or moved: leg `{start.leg}` belongs to the repository `{start.common_dir}`",
                hint=f"resume it there, or remove `{ledger.folder(plan.run)}` here and start anew",
                exit_code=Exit.GATE,
            )
        with lock.hold(ledger.leg_lock(plan.run, start.leg), "salvage", plan.run):
            _end_agent(start)
            if start.act == "offer":
                _forget(ledger, start)
            elif start.act == "ship":
                sealed.append(ship.finish(ledger, plan, start))
            else:
                sealed.append(_cut(ledger, plan, start))
    _sweep(ledger, plan.run)
    return sealed


def _end_agent(start: Start) -> None:
    """End the agent that outlived its runner: the process that was written down, and all that carry the leg's nonce."""
    found = set(proc.survivors(start.nonce))
    if start.agent is not None and proc.alive(start.agent):
        found.add(start.agent.pid)
    proc.end(found)


def _cut(ledger: Ledger, plan: Plan, start: Start) -> Receipt:
    """Seal a leg as interrupted, from facts alone."""
    chain = ledgers.receipts(ledger, plan.run)
    head, unique = _what_stands(ledger, plan, start) if start.kind == "work" else (start.start, False)
    phase = plan.phase(start.phase or "")
    agent = plan.agent(phase.agent)
    repo = ledger.repo
    prompt = ledger.leg(plan.run, start.leg) / "prompt.md"
    now = clock.now()
    receipt = Receipt(
        schema=1,
        run=plan.run,
        leg=start.leg,
        kind=start.kind,
        prev="",
        relay_version=__version__,
        started=start.started,
        ended=clock.stamp(now),
        seconds=0.0,
        round=start.round,
        start=start.start,
        base=start.base,
        head=head,
        tree=git.tree(repo, head),
        start_tree=git.tree(repo, start.start),
        phase=start.phase,
        by="relay",
        agent=agent.name,
        backend=agent.backend,
        vendor=agent.vendor,
        model=agent.model,
        jail=settle.JAIL,
        changed=git.numstat(repo, start.start, head) if head != start.start else (),
        verdict="inconclusive" if start.kind == "judge" else None,
        ended_by="interrupted",
        problem="the runner ended before the leg did",
        prompt_sha256=files.sha256(files.read(prompt)) if prompt.exists() else None,
    )
    sealed = settle.sealed_with_note(ledger, plan, chain, receipt, None, {})
    _discard(ledger, start, keep=unique)
    return sealed


def _what_stands(ledger: Ledger, plan: Plan, start: Start) -> tuple[str, bool]:
    """Keep what a killed worker left: the commit that was already made, or a snapshot of a worktree that was whole.

    Returns the commit, and whether the worktree holds anything that the commit lacks.
    """
    repo, name = ledger.repo, f"refs/relay/{plan.run}/{start.leg}"
    lease = _lease(start)
    if lease is None:
        return start.start, False
    for ref in (name, f"{name}.cut", f"{name}.void"):
        commit = git.resolve(repo, ref)
        if commit is not None:
            git.put_ref(repo, f"{name}.cut", commit)
            return commit, True
    if worktree.intact(repo, lease):
        return start.start, True
    message = f"relay: {start.leg} of {plan.run}, cut short\n\nRelay-Run: {plan.run}\nRelay-Leg: {start.leg}\n"
    taken = snapshot.take(repo, lease, start.start, message, start.baseline, git.identity(repo))
    git.put_ref(repo, f"{name}.cut", taken.commit)
    return taken.commit, bool(taken.refused) or bool(worktree.leftovers(repo, lease))


def _lease(start: Start) -> Lease | None:
    """Return the worktree of a leg whose agent may have started; before that there is nothing to commit from."""
    if not start.pointer_sha256 or not start.worktree or not Path(start.worktree).is_dir():
        return None
    return Lease(path=Path(start.worktree), git_dir=Path(start.git_dir or ""), pointer_sha256=start.pointer_sha256)


def _discard(ledger: Ledger, start: Start, *, keep: bool) -> None:
    """Remove the leg's worktrees: its own where it holds nothing unique, and the clean checkouts beside it."""
    home = ledger.worktree(start.run, start.leg)
    for entry in worktree.own(ledger.repo):
        if entry.path == home and keep:
            continue
        if entry.path == home or entry.path.name.startswith(f"{start.leg}."):
            worktree.release(ledger.repo, Lease(path=entry.path, git_dir=entry.git_dir, pointer_sha256=""))
    if not keep:
        files.remove_tree(home)
    for path in home.parent.glob(f"{start.leg}.*"):
        if not (keep and path.suffix == ".io"):
            files.remove_tree(path)


def _forget(ledger: Ledger, start: Start) -> None:
    """Take back an offer that was never sealed: nobody was told of it."""
    _discard(ledger, start, keep=False)
    files.remove_tree(ledger.leg(start.run, start.leg))


def _sweep(ledger: Ledger, run: str) -> None:
    """Remove leg folders that hold neither a start nor a receipt: the number was never taken."""
    for _, leg in ledgers.numbered(ledger, run):
        folder = ledger.leg(run, leg)
        if not (folder / "start.json").exists() and not (folder / "receipt.json").exists():
            files.remove_tree(folder)

"""Legs that nobody owns any more: each start without a receipt is sealed before anything else happens.

What a killed worker left in its worktree is kept as `LEG.cut`, and the next leg starts from it; a killed judge leaves
nothing. A worktree that never became whole is recognised, and never committed from. None goes that holds anything which
is kept nowhere else, or that somebody uses.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from relay import __version__, confine, loss, ship, watch
from relay.errors import Exit, RelayError
from relay.host import clock, files, git, lock, proc, redact, snapshot, worktree
from relay.record import ledger as ledgers
from relay.record import receipt as receipts
from relay.record import sealing, transcript
from relay.record.ledger import Ledger
from relay.rules import boundary, history
from relay.salvage import places
from relay.terms import Plan, Receipt, Start
from relay.ways import deploy

PATIENCE: Final = 30.0
"""Seconds that a git has to finish whose runner was killed; checking a large tree out takes less."""

PLANTED: Final = ("hooks", "config", "info/", "objects/", "worktree/", "ledger/", "refs/relay/", "modules/", "locks/")
"""What nobody changes by the way: a change there, around a leg that was killed, counts as the agent's."""

SETTINGS: Final = re.compile(r"(config|config\.worktree|modules/.+/config) changed")
"""What git writes by the way too, as `push -u` does: it counts where something in it had to be put back."""


def seal_open(ledger: Ledger, plan: Plan) -> list[Receipt]:
    """Seal every leg that was begun and that nobody owns; the caller holds the run's lock.

    Raises `RelayError`: exit 75 where a leg's owner is alive, exit 6 where the ledger belongs to another repository,
    exit 4 where the folder around a worktree is gone too.
    """
    sealed = []
    _refuse_copy(ledger, plan.run)
    for start in ledgers.unsealed(ledger, plan.run):
        with lock.hold(ledger.leg_lock(plan.run, start.leg), "salvage", plan.run):
            _end_agent(start)
            places.refuse_unseen(start)
            if start.act == "offer":
                places.forget(ledger, plan, start)
            elif start.act == "ship":
                places.discard(ledger, plan, start)
                sealed.append(ship.finish(ledger, plan, start))
            else:
                sealed.append(_cut(ledger, plan, start))
    places.sweep(ledger, plan.run)
    places.tidy(ledger, plan)
    return sealed


def _refuse_copy(ledger: Ledger, run: str) -> None:
    """Refuse a ledger that came here with a copied or moved repository: its worktrees are the other one's."""
    start = ledgers.newest_start(ledger, run)
    if start is not None and start.common_dir != str(ledger.repo.common):
        raise RelayError(
            f"the ledger was copied or moved: leg `{start.leg}` belongs to the repository `{start.common_dir}`",
            hint=f"resume it there, or remove `{ledger.folder(run)}` here and start anew",
            exit_code=Exit.GATE,
        )


def _end_agent(start: Start) -> None:
    """End the agent that outlived its runner, by number and by nonce, and the checks and set-up that did.

    A git that outlived it is let finish: it may be moving the person's own checkout; so is a deployment. `RelayError`
    (exit 75) when it does not.
    """
    over = clock.monotonic() + PATIENCE
    while writing := proc.orphans(start.relay, "RELAY_GIT") or proc.orphans(start.relay, deploy.MARK):
        if clock.monotonic() > over:
            what = "the deployment" if proc.orphans(start.relay, deploy.MARK) else "git"
            raise RelayError(
                f"{what}, process {writing[0]}, outlived the runner of leg `{start.leg}` and still works",
                hint=f"wait for it, then: relay resume {start.run}",
                exit_code=Exit.HELD,
            )
        clock.pause(0.05)
    found = {*proc.survivors(start.nonce), *proc.orphans(start.relay, "RELAY_RUNNER")}
    if start.agent is not None and proc.alive(start.agent):
        found.add(start.agent.pid)
    proc.end(found)


def _cut(ledger: Ledger, plan: Plan, start: Start) -> Receipt:
    """Seal a leg as interrupted, from facts alone; one whose runner had found a breach is sealed as that."""
    chain = ledgers.receipts(ledger, plan.run)
    name = f"refs/relay/{plan.run}/{start.leg}.void"
    since, void = _since(ledger, plan, start), git.resolve(ledger.repo, name)
    planted = _planted(plan, since)
    if (lease := places.lease(start)) is not None:
        loss.put_aside(ledger.repo, lease.git_dir, f"refs/relay/{plan.run}/{start.leg}", start.start)
    restored = watch.restore(ledger, plan, start) if planted or void is not None else ""
    breached = void is not None or bool(restored) or not all(map(SETTINGS.fullmatch, planted))
    phase = plan.phase(start.phase or "")
    head = void or (_what_stands(ledger, plan, start) if phase.boundary == "implement" else start.start)
    if breached and start.kind == "work":
        git.put_ref(ledger.repo, name, head)
    agent = plan.agent(phase.agent)
    said = _said(ledger, start)
    if said is not None:
        said = redact.own().document(said)
    repo = ledger.repo
    usage, cost = transcript.used(ledger.leg(plan.run, start.leg) / "transcript.jsonl")
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
        seconds=_worked(ledger, start),
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
        jail=confine.rung(plan)[0].name,
        usage=usage,
        cost_microusd=cost,
        changed=git.numstat(repo, start.start, head) if head != start.start else (),
        verdict="inconclusive" if start.kind == "judge" else None,
        breaches=(since or ("found by a runner that ended before it could say which",)) if breached else (),
        drift=() if breached else since,
        ended_by="breach" if breached else "interrupted",
        problem=restored or None if breached else "the runner ended before the leg did",
        prompt_sha256=files.sha256(files.read(prompt)) if prompt.exists() else None,
        reply_sha256=files.sha256(said) if said is not None else None,
    )
    beside = {"reply.json": said} if said is not None else {}
    sealed = sealing.with_note(ledger, plan, chain, receipt, None, beside)
    places.discard(ledger, plan, start, sealed, keep=breached)
    return sealed


def _since(ledger: Ledger, plan: Plan, start: Start) -> tuple[str, ...]:
    """Name what changed around a leg since its agent started; by whom nobody can say any more."""
    lease = places.lease(start)
    if lease is None or not start.fingerprint:
        return ()
    before = {name: value for name, value in start.fingerprint.items() if not name.startswith(boundary.OWN)}
    after = watch.take(ledger, plan, lease, tree=False)
    made = f"refs/relay/{plan.run}/{start.leg}"  # by Relay itself, before it was killed
    after = {name: value for name, value in after.items() if not name.startswith(made)}
    changed = boundary.compare(before, after, boundary="implement", jail="off").breaches
    return tuple(name for name in changed if not name.startswith(f"worktrees/{start.leg}."))  # Relay's own checkouts


def _planted(plan: Plan, since: Sequence[str]) -> list[str]:
    """Return what is nothing that a person does between a crash and a resume, where no jail held.

    People commit and edit; hooks, settings, a leg's entry and what was sealed do not change by themselves.
    """
    return [name for name in since if name.startswith(PLANTED) and not confine.rung(plan)[0].holds]


def _what_stands(ledger: Ledger, plan: Plan, start: Start) -> str:
    """Keep what a killed worker left: the commit that was already made, or a snapshot of a worktree that was whole."""
    repo, name = ledger.repo, f"refs/relay/{plan.run}/{start.leg}"
    for ref in (name, f"{name}.cut"):
        commit = git.resolve(repo, ref)
        if commit is not None:
            git.put_ref(repo, f"{name}.cut", commit)
            return commit
    lease = places.lease(start)
    if lease is None or worktree.intact(repo, lease):
        return start.start
    message = f"relay: {start.leg} of {plan.run}, cut short\n\nRelay-Run: {plan.run}\nRelay-Leg: {start.leg}\n"
    rung = confine.rung(plan)[0]
    taken = snapshot.take(repo, lease, start.start, message, start.baseline, git.identity(repo), rung)
    git.put_ref(repo, f"{name}.cut", taken.commit)
    return taken.commit


def keep_offer(ledger: Ledger, plan: Plan, chain: Sequence[Receipt]) -> str:
    """Keep what stands in the worktree of an offer that is being passed over; returns the ref, if there was one."""
    offer = history.offer(chain)
    if offer is None:
        return ""
    path = ledger.leg(plan.run, offer.leg) / "start.json"
    start = receipts.decode(files.read(path), Start, str(path))
    places.refuse_unseen(start)
    return f"refs/relay/{plan.run}/{offer.leg}.cut" if _what_stands(ledger, plan, start) != start.start else ""


def _worked(ledger: Ledger, start: Start) -> float:
    """Return how long the agent is known to have worked, in seconds: up to the last that it said."""
    try:
        last = (ledger.leg(start.run, start.leg) / "transcript.jsonl").stat().st_mtime
    except OSError:
        return 0.0
    return round(max(0.0, last - clock.parse(start.started).timestamp()), 3)


def _said(ledger: Ledger, start: Start) -> bytes | None:
    """Return what the agent replied, if it came to that: it does not count, but it was paid for, and is kept."""
    home = Path(start.worktree or "")
    for path in (ledger.leg(start.run, start.leg) / "reply.json", home.parent / f"{home.name}.io" / "reply.json"):
        try:
            return files.handed(path)
        except (OSError, RelayError):
            continue
    return None

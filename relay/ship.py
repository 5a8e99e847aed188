"""Approve means ship: exactly the accepted tree goes out, once, and the receipt says what became of it."""

from collections.abc import Sequence

import msgspec

from relay import acts, weigh
from relay.errors import Exit, RelayError
from relay.host import checks, clock, git, landing, proc, provision
from relay.record import evidence, receipt
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import gate, history
from relay.terms import Check, Pins, Plan, Receipt, Start, WorkReply

VERIFY_SECONDS = 1800
"""How long one `ship.verify` command may take."""


def approve(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], into: str | None, by: str | None = None) -> Receipt:
    """Seal the approval of an accepted run: it pins head, base, tree and the acceptance. Holds no lock of its own.

    `RelayError` (exit 6) when what the commit is to say can no longer be read.
    """
    message(ledger, plan, chain)
    gate.check([evidence.look(ledger, plan.run, leg.leg, chain) for leg in _counted(chain)], plan.run)
    head = history.head(plan, chain)
    target = _target(ledger, plan, into)
    pins = Pins(
        head=head,
        base=history.base(plan, chain),
        tree=git.tree(ledger.repo, head),
        receipt=receipt.sha256(history.last_leg(chain) or chain[-1]),
    )
    return acts.seal(ledger, plan, chain, "approve", pins=pins, effect={"into": target}, by=by)


def _counted(chain: Sequence[Receipt]) -> list[Receipt]:
    """Return the newest leg of each phase that replied: what the acceptance rests on."""
    newest = {leg.phase: leg for leg in chain if leg.kind != "act" and leg.ended_by == "reply"}
    return list(newest.values())


def _target(ledger: Ledger, plan: Plan, into: str | None) -> str:
    """Name the branch that the change goes into, by its full name."""
    wanted = into or plan.base_ref
    if not wanted:
        raise RelayError(
            f"run `{plan.run}` began on a detached HEAD, so no branch is named",
            hint=f"relay approve {plan.run} --into BRANCH",
        )
    ref = wanted if wanted.startswith("refs/heads/") else f"refs/heads/{wanted}"
    if git.resolve(ledger.repo, ref) is None:
        raise RelayError(f"there is no branch `{wanted}` to ship into", hint=f"relay approve {plan.run} --into BRANCH")
    return ref


def ship(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], approval_id: str) -> Receipt:
    """Carry out an approval; returns the sealed `ship`, or the `rebase` that a moved base makes necessary.

    The caller holds the run's lock. The commit is made and kept under a ref before anything moves; the intent is
    written before the effect, so that a later Relay can look whether it happened.
    """
    approval = next(sealed for sealed in chain if sealed.leg == approval_id)
    pins, target = _pins(approval), (approval.effect or {})["into"]
    repo = ledger.repo
    branch = git.resolve(repo, f"refs/heads/relay/{plan.run}")
    if branch not in {None, pins.head}:
        why = f"branch `relay/{plan.run}` has moved since it was accepted"
        return _seal(ledger, plan, chain, None, {"outcome": "failed", "why": why, "into": target})
    landed = _landed(ledger, chain, target)
    if landed:
        return _confirmed(ledger, plan, chain, None, landed, target)
    now = git.resolve(repo, target) or ""
    tree, moved = pins.tree, now != pins.base
    if moved:
        merged, overlap = _merged(ledger, plan, pins, now)
        if merged is None:
            return _rebase(ledger, plan, chain, pins, now, overlap)
        tree = merged
    leg = ledgers.next_leg_id(ledger, plan.run, "ship")
    commit = _commit(ledger, plan, chain, pins, tree, now)
    if moved and not _still_holds(ledger, plan, chain, commit, leg=leg, now=now):
        return _rebase(ledger, plan, chain, pins, now, ())
    git.put_ref(repo, f"refs/relay/{plan.run}/{leg}", commit)
    start = Start(
        schema=1,
        run=plan.run,
        leg=leg,
        act="ship",
        kind="act",
        start=pins.head,
        base=now,
        common_dir=str(repo.common),
        nonce=target,
        started=clock.stamp(),
        relay=proc.this(),
        pins=msgspec.structs.replace(pins, head=commit, base=now, tree=tree),
    )
    ledgers.begin(ledger, start)
    problem = landing.land(repo, target, commit, now)
    if problem:
        return _seal(ledger, plan, chain, start, {"outcome": "failed", "why": problem, "into": target})
    return _confirmed(ledger, plan, chain, start, commit, target)


def finish(ledger: Ledger, plan: Plan, start: Start) -> Receipt:
    """Seal a shipment that was cut short, after looking whether it went out."""
    chain = ledgers.receipts(ledger, plan.run)
    commit, target = _pins(start).head, start.nonce
    now = git.resolve(ledger.repo, target)
    if now is not None and git.ancestor(ledger.repo, commit, now):
        return _confirmed(ledger, plan, chain, start, commit, target)
    effect = {"outcome": "failed", "why": "it was cut short, and nothing went out", "into": target}
    return _seal(ledger, plan, chain, start, effect)


def _pins(about: Receipt | Start) -> Pins:
    """Return what an act is pinned to; one without pins was not written by Relay."""
    if about.pins is None:
        raise RelayError(f"act `{about.leg}` pins nothing", exit_code=Exit.GATE)
    return about.pins


def _landed(ledger: Ledger, chain: Sequence[Receipt], target: str) -> str | None:
    """Return the commit that this very change went out as, if the branch still holds it.

    Only receipts say so, and only those since the task itself last changed: a ref could be anybody's.
    """
    now = git.resolve(ledger.repo, target)
    for sealed in reversed(chain):
        effect = sealed.effect or {}
        if sealed.act in {"reject", "rebase"} or now is None:
            return None
        if sealed.act == "ship" and effect.get("into") == target and "commit" in effect:
            return effect["commit"] if git.ancestor(ledger.repo, effect["commit"], now) else None
    return None


def _merged(ledger: Ledger, plan: Plan, pins: Pins, now: str) -> tuple[str | None, tuple[str, ...]]:
    """Merge the change with a base that moved: the tree, if the patch applies and no file was touched by both sides."""
    repo = ledger.repo
    ours = {change.path for change in git.numstat(repo, pins.base, pins.head)}
    theirs = {change.path for change in git.numstat(repo, pins.base, now)}
    tree, conflicts = _merge(ledger, plan, pins, now)
    overlap = tuple(sorted((ours & theirs) | {git.label(path) for path in conflicts}))
    return (None, overlap) if overlap else (tree, ())


def _merge(ledger: Ledger, plan: Plan, pins: Pins, now: str) -> tuple[str, tuple[str, ...]]:
    """Merge what was accepted with a branch: the tree, and the paths that conflict, which have git's markers in them.

    A branch that does not hold the run's base (it was rewound, or `--into` names another one) gets the change alone
    and nothing that lies between, as by a cherry-pick. A merge commit says that all of it came along, so there it does.
    """
    repo, ours, theirs = ledger.repo, now, pins.head
    if plan.ship.method != "merge-commit" and not git.ancestor(repo, pins.base, now):
        root = git.commit_tree(repo, git.tree(repo, pins.base), [], "the base\n", git.NOBODY)
        sides = (git.tree(repo, now), git.tree(repo, pins.head))
        ours, theirs = (git.commit_tree(repo, tree, [root], "a side\n", git.NOBODY) for tree in sides)
    tree, conflicts = git.merge_tree(repo, ours, theirs, marked=True)
    return tree or "", conflicts


def _still_holds(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], commit: str, *, leg: str, now: str) -> bool:
    """Run acceptance's commands again on the tree merged with `now`: nobody accepted that one."""
    minutes = plan.phases[-1].minutes
    with weigh.checkout(ledger, plan, leg, commit, "merged") as at:
        results, _ = weigh.criteria(plan, at, minutes * 60)
        checked, _ = weigh.checks_in(plan, at, minutes * 60)
    commanded = [result for result in results if result.by == "relay"]
    checked = weigh.against_base(ledger, plan, chain, checked, leg=leg, base=now, seconds=minutes * 60)
    return all(result.met for result in commanded) and not any(check.newly_red for check in checked)


def _rebase(
    ledger: Ledger, plan: Plan, chain: Sequence[Receipt], pins: Pins, now: str, overlap: Sequence[str]
) -> Receipt:
    """Put the change onto the base that moved, and send it back: to the judges, or to the worker where it conflicts."""
    repo = ledger.repo
    leg = ledgers.next_leg_id(ledger, plan.run, "rebase")
    tree, conflicts = _merge(ledger, plan, pins, now)
    message = f"relay: {plan.run} on a base that moved\n\nRelay-Run: {plan.run}\nRelay-Leg: {leg}\n"
    onto = git.commit_tree(repo, tree, [now], message, git.identity(repo))
    git.put_ref(repo, f"refs/relay/{plan.run}/{leg}", onto)
    paths = ", ".join(f"`{path}`" for path in overlap[:10])
    why = f"both sides changed {paths}" if overlap else "what held there no longer holds with it"
    effect = {"onto": now, "overlap": "\n".join(overlap)}
    if conflicts:
        why = f"the change conflicts with it in {paths}"
        effect["conflict"] = "\n".join(git.label(path) for path in conflicts)
    effect["why"] = f"the base moved, and {why}"
    moved = Pins(head=onto, base=now, tree=git.tree(repo, onto), receipt=pins.receipt)
    return acts.seal(
        ledger, plan, chain, "rebase", leg=leg, pins=moved, effect=effect, by="relay", round_=chain[-1].round
    )


def _commit(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], pins: Pins, tree: str, now: str) -> str:
    """Make the one commit that goes out, or take the run's own where that is the method, or none where all is there."""
    method, repo = plan.ship.method, ledger.repo
    if method != "merge-commit" and tree == git.tree(repo, now):
        return now
    if method == "fast-forward" and now == pins.base:
        return pins.head
    parents = [now, pins.head] if method == "merge-commit" else [now]
    return git.commit_tree(repo, tree, parents, message(ledger, plan, chain), git.identity(repo))


def message(ledger: Ledger, plan: Plan, chain: Sequence[Receipt]) -> str:
    """Write the commit's message from the spec and the last reply of a worker, with who reviewed and who accepted."""
    work = next((leg for leg in reversed(chain) if leg.kind == "work" and leg.ended_by == "reply"), None)
    answer = evidence.reply_of(ledger, work) if work is not None else None
    summary = answer.summary.strip() if isinstance(answer, WorkReply) else ""
    judges = [leg for leg in chain if leg.kind == "judge" and leg.verdict == "approve"]
    trailers = [f"Relay-Run: {plan.run}", *["Relay-Outcome: accepted (unchecked)"] * plan.unchecked]
    last = plan.phases[-1].name
    for judge in {leg.phase: leg for leg in judges}.values():
        word = "Accepted-by" if judge.phase == last else "Reviewed-by"
        trailers.append(f"{word}: {judge.agent} ({judge.model or judge.backend})")
    parts = [plan.title, summary, "\n".join(trailers)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _confirmed(
    ledger: Ledger, plan: Plan, chain: Sequence[Receipt], start: Start | None, commit: str, target: str
) -> Receipt:
    """Run `ship.verify` on what went out: deployed and confirmed are two things."""
    found: list[Check] = []
    if plan.ship.verify:
        leg = start.leg if start is not None else ledgers.next_leg_id(ledger, plan.run, "ship")
        with weigh.checkout(ledger, plan, leg, commit, "shipped") as at:
            found = [
                checks.run(
                    command, at.folder, by="ship.verify", env=provision.named(plan.worktree), seconds=VERIFY_SECONDS
                )[0]
                for command in plan.ship.verify
            ]
    red = [check for check in found if check.exit != 0]
    effect = {"outcome": "shipped", "commit": commit, "into": target}
    if start is not None and start.base == commit:
        effect["why"] = "the branch held this tree already, so no commit was made"
    if red:
        why = f"it went out as `{commit[:12]}`, but `{red[0].command}` exited {red[0].exit}"
        effect = {**effect, "outcome": "unconfirmed", "why": why}
    return _seal(ledger, plan, chain, start, effect, tuple(found))


def _seal(
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    start: Start | None,
    effect: dict[str, str],
    found: tuple[Check, ...] = (),
) -> Receipt:
    """Seal what became of a shipment."""
    return acts.seal(
        ledger,
        plan,
        chain,
        "ship",
        leg=start.leg if start is not None else None,
        pins=start.pins if start is not None else None,
        effect=effect,
        by="relay",
        started=start.started if start is not None else None,
        checks=found,
    )

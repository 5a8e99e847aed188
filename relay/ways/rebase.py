"""A base that moved since the acceptance: merged aside and looked at again, or sent back onto the new base."""

from collections.abc import Sequence

from relay import acts, weigh
from relay.host import git
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Pins, Plan, Receipt


def merged(ledger: Ledger, plan: Plan, pins: Pins, now: str) -> tuple[str | None, tuple[str, ...]]:
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


def still_holds(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], commit: str, *, leg: str, now: str) -> bool:
    """Run acceptance's commands again on the tree merged with `now`: nobody accepted that one.

    What was red already at the leg that `chain` ends with, which a person then approved by name, excuses itself.
    """
    minutes = plan.phases[-1].minutes
    with weigh.checkout(ledger, plan, leg, commit, "merged") as at:
        results, _ = weigh.criteria(plan, at, minutes * 60)
        checked, _ = weigh.checks_in(plan, at, minutes * 60)
    known = chain[-1] if chain and chain[-1].kind != "act" else None
    unmet = {result.id for result in known.criteria if not result.met} if known else set()
    red = {check.command for check in known.checks if check.exit != 0} if known else set()
    commanded = [result for result in results if result.by == "relay"]
    checked = weigh.against_base(ledger, plan, chain, checked, leg=leg, base=now, seconds=minutes * 60)
    return all(result.met or result.id in unmet for result in commanded) and not any(
        check.newly_red and check.command not in red for check in checked
    )


def seal(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], pins: Pins, now: str, overlap: Sequence[str]) -> Receipt:
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

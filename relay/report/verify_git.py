"""Whether git holds what the receipts say: the commits, their trees, and the refs that keep them."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import git
from relay.record.ledger import Ledger
from relay.terms import Plan, Receipt, Start

OID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

Say = Callable[[Path, str], None]


def check(
    ledger: Ledger,
    run: str,
    plan: Plan | None,
    sealed: Sequence[Receipt],
    starts: Mapping[str, Start],
    known: Collection[str],
    say: Say,
) -> None:
    """Check commits, trees and refs; `known` are the legs and acts that may have refs."""
    claims = [claim for one in sealed for claim in _claims(ledger, one)]
    if plan is not None:
        claims.append((ledger.folder(run) / "plan.toml", "base", plan.base, None))
    try:
        objects = _objects(ledger, {oid for _, _, oid, _ in claims if OID.fullmatch(oid)})
        refs = git.refs(ledger.repo, f"refs/relay/{run}")
    except RelayError as error:
        say(ledger.repo.common, error.message)
        return
    for path, what, commit, tree in claims:
        if commit not in objects:
            say(path, f"the commit `{commit[:12]}` that it names as {what} is not in the repository")
        elif tree is not None and objects[commit] != tree:
            say(path, f"the tree of its {what} is `{objects[commit][:12]}`, not `{tree[:12]}`")
    looks = {phase.name for phase in plan.phases if phase.boundary == "verify-only"} if plan is not None else set()
    for one in sealed:
        kept = one.kind != "judge" and one.phase not in looks
        _refs(ledger, one, starts.get(one.leg), refs, say, kept=kept)
    prefix = f"refs/relay/{run}/"
    for ref in refs:
        leg = ref.removeprefix(prefix).partition(".")[0]
        if leg not in known:
            say(ledger.leg(run, leg) / "receipt.json", f"the receipt is missing, and `{ref}` is there")


def _claims(ledger: Ledger, sealed: Receipt) -> list[tuple[Path, str, str, str | None]]:
    """List what a receipt says of commits: its own path, what it calls the commit, the commit, and its tree."""
    path = ledger.leg(sealed.run, sealed.leg) / "receipt.json"
    found: list[tuple[Path, str, str, str | None]] = [
        (path, "start", sealed.start, sealed.start_tree),
        (path, "base", sealed.base, None),
        (path, "head", sealed.head, sealed.tree),
    ]
    if sealed.pins is not None:
        found.append((path, "pinned head", sealed.pins.head, sealed.pins.tree))
        found.append((path, "pinned base", sealed.pins.base, None))
    shipped = (sealed.effect or {}).get("commit")
    return [*found, (path, "what was shipped", shipped, None)] if shipped else found


def _objects(ledger: Ledger, commits: Collection[str]) -> dict[str, str]:
    """Return the tree of every commit that the repository has, by one call of git; a torn one counts as absent."""
    wanted = sorted(commits)
    try:
        lines = _batch(ledger, wanted)
    except RelayError:  # git gives up at an object that is damaged: ask for each alone
        lines = []
        for commit in wanted:
            try:
                lines += _batch(ledger, [commit])
            except RelayError:
                lines += [[""], [""]]
    found = {}
    for commit, kind, tree in zip(wanted, lines[::2], lines[1::2], strict=True):
        if kind[1:2] == ["commit"] and tree[1:2] == ["tree"]:
            found[commit] = tree[0]
    return found


def _batch(ledger: Ledger, commits: Sequence[str]) -> list[list[str]]:
    """Ask git for each commit and its tree: two lines a commit, as words."""
    asked = "".join(f"{commit}\n{commit}^{{tree}}\n" for commit in commits)
    said = git.run(ledger.repo, "cat-file", "--batch-check", stdin=asked.encode()).decode("utf-8", "replace")
    return [line.split(" ") for line in said.splitlines()]


def _refs(
    ledger: Ledger, sealed: Receipt, start: Start | None, refs: Mapping[str, str], say: Say, *, kept: bool
) -> None:
    """Check the ref that keeps a leg's commit: there where the leg made one, and at that commit if it is there.

    `kept` says that such a leg changes files; one that only verifies leaves a commit only where it breached.
    """
    name = f"refs/relay/{sealed.run}/{sealed.leg}"
    if sealed.kind == "act":
        made = sealed.act == "rebase" or (sealed.act == "ship" and sealed.pins is not None)
    else:
        name += {"reply": "", "handover": "", "breach": ".void"}.get(sealed.ended_by or "", ".cut")
        made = sealed.head != sealed.start
        if not (kept or made or sealed.ended_by == "breach"):
            return
    path = ledger.leg(sealed.run, sealed.leg) / "receipt.json"
    at = refs.get(name)
    if at is None and (made or (start is not None and _kept(sealed, start))):
        say(path, f"`{name}`, which keeps its commit, is missing")
    elif at is not None and at != sealed.head:
        say(path, f"`{name}` is at `{at[:12]}`, not at its head `{sealed.head[:12]}`")


def _kept(sealed: Receipt, start: Start) -> bool:
    """Tell whether Relay made a ref even though the leg left everything as it was: it does where an agent replied."""
    return bool(start.pointer_sha256) and sealed.ended_by in {"reply", "handover"}

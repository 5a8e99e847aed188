"""What breaches left around a repository: Relay puts back what would act later, the rest is told until a person did.

Looked at anew each time, since only how it stands now says whether anybody has cleared it away.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from relay import confine
from relay.errors import RelayError
from relay.host import files
from relay.host.lease import Lease
from relay.host.tripwire import fingerprint
from relay.record import receipt as receipts
from relay.record.ledger import Ledger
from relay.rules import boundary, history
from relay.terms import Plan, Receipt, Start, Struct

SOME: Final = 3
"""Traces that are told of a run; the others are counted."""
_HEADS: Final = "refs/heads/"
_OUTSIDE: Final = ("refs/", "checkout", "worktrees/", "stash", "config", "hooks", "info/", "home/", "HEAD")
"""What of a fingerprint is not the leg's own, and can be looked at again once that is gone."""


class Left(Struct, frozen=True, kw_only=True):
    """One thing that is not as it was before a leg which crossed its boundary; `command` undoes that, where one can."""

    leg: str
    what: str
    command: str = ""


def look(ledger: Ledger, plan: Plan, chain: Sequence[Receipt]) -> tuple[Left, ...]:
    """Return what breaches of a run changed and nobody set right. Without a breach, nothing is looked at.

    A leg of which no start can be read says nothing here; `relay verify` names it.
    """
    found: dict[str, Left] = {}
    now: dict[str, str] | None = None
    last = history.last_leg(chain)
    for sealed in chain:
        named = [name for breach in sealed.breaches if (name := _named(breach)).startswith(_OUTSIDE)]
        try:
            start = _start(ledger, sealed) if named else None
            if start is None:
                continue
            now = _now(ledger, plan, start) if now is None else now
        except (RelayError, OSError):
            continue
        for name in named:
            before = start.fingerprint.get(name)
            moved = name.startswith("refs/") and before is not None  # by whom, nobody can say once the run went on
            if before != now.get(name) and (sealed == last or not moved):
                found.setdefault(name, _left(ledger, sealed.leg, name, before, now.get(name)))
    return tuple(found.values())


def lines(left: Sequence[Left]) -> list[str]:
    """Say what is left, each with the command that undoes it."""
    told = []
    for one in left[:SOME]:
        told += [one.what] + [f"  {one.command}"] * bool(one.command)
    more = len(left) - SOME
    return told + [f"and {more} more that the breach changed"] * (more > 0)


def _named(breach: str) -> str:
    """Return the name of what a breach changed, as `boundary.compare` wrote it."""
    return breach.removesuffix(" appeared").removesuffix(" is gone").removesuffix(" changed")


def _start(ledger: Ledger, sealed: Receipt) -> Start:
    path = ledger.leg(sealed.run, sealed.leg) / "start.json"
    return receipts.decode(files.read(path), Start, str(path))


def _now(ledger: Ledger, plan: Plan, start: Start) -> dict[str, str]:
    """Look at the repository as the leg's own fingerprint did."""
    gone = Lease(path=Path(start.worktree or ""), git_dir=Path(start.git_dir or ""), pointer_sha256="")
    return fingerprint.take(ledger.repo, gone, tree=False, rung=confine.rung(plan)[0])


def _left(ledger: Ledger, leg: str, name: str, before: str | None, now: str | None) -> Left:
    """Name one thing as a person would; no command for a name that could not be written as it is."""
    place, _, path = name.partition("checkout/")
    if path:
        where = f"the checkout `{place.removeprefix('worktrees/').rstrip('/')}`" if place else "your checkout"
        thing, command = f"`{path}` in {where}", "" if place else _restored(ledger, path, before, now)
    else:
        branch = name.startswith(_HEADS)
        thing = f"branch `{name.removeprefix(_HEADS)}`" if branch else f"`{name}`"
        command = _ref(ledger, name, before) if name.startswith("refs/") else ""
    changed = now is not None and (before is not None or now.startswith(boundary.TRACKED))
    said = f"is not as it was before {leg}" if changed or now is None else f"is there, and was not before {leg}"
    return Left(leg=leg, what=f"{thing} {said}", command=command if "\\" not in name else "")


def _restored(ledger: Ledger, path: str, before: str | None, now: str | None) -> str:
    """Say how a path of the person's checkout is set right; nothing where what stood there is nowhere else."""
    top = ledger.repo.main_top or ledger.repo.top
    if top is None or before is not None or now is None:
        return ""
    if now.startswith(boundary.TRACKED):
        return f"git -C {shlex.quote(str(top))} restore --staged --worktree -- {shlex.quote(path)}"
    return f"rm {'-r ' * path.endswith('/')}{shlex.quote(str(top / path))}"


def _ref(ledger: Ledger, name: str, before: str | None) -> str:
    """Say how a ref is set right. Git refuses to force a branch that is checked out, and so it should."""
    git = f"git -C {shlex.quote(str(ledger.repo.main_top or ledger.repo.common))}"
    if name.startswith(_HEADS):
        branch = shlex.quote(name.removeprefix(_HEADS))
        return f"{git} branch -D {branch}" if before is None else f"{git} branch -f {branch} {before}"
    what = shlex.quote(name)
    return f"{git} update-ref -d {what}" if before is None else f"{git} update-ref {what} {before}"

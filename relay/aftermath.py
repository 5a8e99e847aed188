"""What breaches left around a repository: Relay puts back what would act later, the rest is told until a person did.

Looked at anew each time, since only how it stands now says whether anybody has cleared it away. By then a person may
have worked on the very same things, and no command that Relay prints could know that: so each one only looks.
"""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from relay import alerts, confine
from relay.errors import RelayError
from relay.host import files, redact
from relay.host.lease import Lease
from relay.host.tripwire import fingerprint
from relay.record import receipt as receipts
from relay.record.ledger import Ledger
from relay.rules import history
from relay.terms import Plan, Receipt, Start, Struct

SOME: Final = 3
"""Traces that are told of a run; the others are counted."""
_HEADS: Final = "refs/heads/"
_HERE: Final = "checkout/"
_LINKED: Final = re.compile("worktrees/([^/]+)/checkout/(.+)", re.DOTALL)
_CHANGE: Final = re.compile(" (appeared|changed|is gone)$")
_OUTSIDE: Final = ("refs/", _HERE, "stash", "config", "hooks", "info/", "home/", "HEAD")
"""What of a fingerprint is not the leg's own, and can be looked at again once that is gone."""


class Left(Struct, frozen=True, kw_only=True):
    """One thing that is not as it was before a leg which crossed its boundary; `command` shows it, where one can.

    `name` is that of the fingerprint.
    """

    name: str
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
        named = [name for breach in sealed.breaches if _outside(ledger, name := _CHANGE.sub("", breach))]
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
    """Say what is left, each with the command that shows it."""
    told = [f"{one.what}: `{one.command}`" if one.command else one.what for one in left[:SOME]]
    more = len(left) - SOME
    return told + [f"and {more} more that the breach changed"] * (more > 0)


def _outside(ledger: Ledger, name: str) -> bool:
    """Tell whether a name means the same to whoever looks: in a bare repository, `checkout` is that of the caller."""
    here = ledger.repo.main_top is not None or not name.startswith(_HERE)
    return (name.startswith(_OUTSIDE) and here) or _LINKED.fullmatch(name) is not None


def _start(ledger: Ledger, sealed: Receipt) -> Start:
    path = ledger.leg(sealed.run, sealed.leg) / "start.json"
    return receipts.decode(files.read(path), Start, str(path))


def _now(ledger: Ledger, plan: Plan, start: Start) -> dict[str, str]:
    """Look at the repository as the leg's own fingerprint did."""
    gone = Lease(path=Path(start.worktree or ""), git_dir=Path(start.git_dir or ""), pointer_sha256="")
    return fingerprint.take(ledger.repo, gone, tree=False, rung=confine.rung(plan)[0])


def _left(ledger: Ledger, leg: str, name: str, before: str | None, now: str | None) -> Left:
    """Name one thing as a person would."""
    linked = _LINKED.fullmatch(name)
    if linked is not None:
        thing = f"`{linked[2]}` in the checkout `{linked[1]}`"
    elif name.startswith(_HERE):
        thing = f"`{name.removeprefix(_HERE)}` in your checkout"
    else:
        thing = f"branch `{name.removeprefix(_HEADS)}`" if name.startswith(_HEADS) else f"`{name}`"
    made = before is None and now is not None and name.startswith("refs/")
    said = f"is there, and was not before {leg}" if made else f"is not as it was before {leg}"
    command = _shown(ledger, name) if now is not None or name.startswith(_HERE) else ""
    plain = command.isprintable() and "\\" not in name and redact.own().text(command) == command
    return Left(name=name, leg=leg, what=alerts.line(f"{thing} {said}"), command=command if plain else "")


def _shown(ledger: Ledger, name: str) -> str:
    """Say what to type to see a thing; nothing where there is no word for that.

    Neither runs anything: `git diff` and `git status` would run what an agent wrote into settings, or into a repository
    that it put into the place of a file.
    """
    top = ledger.repo.main_top or ledger.repo.common
    if name.startswith(_HERE):
        path = top / name.removeprefix(_HERE)
        return f"ls -la {shlex.quote(str(path if os.path.lexists(path) else path.parent))}"
    return f"git -C {shlex.quote(str(top))} for-each-ref {shlex.quote(name)}" if name.startswith("refs/") else ""

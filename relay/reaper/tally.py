"""What one pass of the reaper comes to: what it repaired, what it raised, and what it could not look at."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from relay import alerts
from relay.record.ledger import Ledger
from relay.terms import Alert, Struct

KINDS: Final = frozenset(
    (  # noqa: SIM905 - a list of one word each is no easier to read
        "run copied worktree branch ref commit process queue waiting moved lock disk settings reaper"
    ).split()
)
"""The kinds of alerts that the reaper raises, and clears when their cause is gone."""


class Repair(Struct, frozen=True, kw_only=True):
    """One thing that was put right, or would be in a dry run."""

    kind: str
    what: str
    run: str | None = None


class Tally:
    """Collects what a pass finds. `dry` says that nothing may change; `alone`, that no loop works here meanwhile.

    Beside a loop that is live nothing is changed that a leg's fingerprints see: refs, worktrees, what other runs
    sealed. That would look as if its agent had done it. `stale` are the records of locks that were left before.
    """

    def __init__(self, ledger: Ledger, *, dry: bool, alone: bool, stale: Sequence[Path] = ()) -> None:
        self.ledger, self.dry, self.alone, self.stale = ledger, dry, alone, stale
        self.repaired: list[Repair] = []
        self._raised: dict[str, Alert] = {}
        self._unsure: list[str] = []

    def repair(self, kind: str, what: str, run: str | None = None) -> None:
        """Note what was put right."""
        self.repaired.append(Repair(kind=kind, what=alerts.line(what), run=run))

    def alert(self, kind: str, about: str, what: str, command: str, run: str | None = None) -> None:
        """Note what only a person can settle; `about` tells it from others of its kind."""
        found = alerts.new(f"{kind}:{about}", kind, what, command, run)
        self._raised.setdefault(found.key, found)

    def unsure(self, kind: str, about: str = "") -> None:
        """Note what could not be looked at now: alerts of that kind, about it or what lies below it, stay as they are.

        Without `about` those are all of the kind, and without a kind all that there are.
        """
        self._unsure.append(alerts.line(f"{kind}:{about}") if kind else "")

    def settle(self) -> tuple[Alert, ...]:
        """Write down what is new and return it; forget, in silence, what was raised before and is no more."""
        standing = {alert.key: alert for alert in alerts.all(self.ledger)}
        new = [alert for key, alert in self._raised.items() if key not in standing]
        if self.dry:
            return tuple(new)
        for key, alert in standing.items():
            if alert.kind in KINDS and key not in self._raised and not self._stays(key):
                alerts.clear(self.ledger, key)
        return tuple(alert for alert in new if alerts.tell(self.ledger, alert))

    def _stays(self, key: str) -> bool:
        """Tell whether nobody could look now at what an alert is about."""
        below = tuple(part if part.endswith(":") or not part else f"{part}/" for part in self._unsure)
        return key in self._unsure or key.startswith(below)

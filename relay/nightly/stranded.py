"""Runs that were begun before the repository was moved: their worktrees are named by where it stood, so none goes on.

Salvage refuses them for good, so a night passes them over, and a person is told of each once.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from relay import alerts
from relay.errors import RelayError
from relay.nightly import agenda
from relay.reaper import legs
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Alert

KIND: Final = "stranded"
"""The kind of the alerts that a night raises by itself; the reaper leaves it alone."""


def skipped(ledger: Ledger, run: str) -> str:
    """Say why a run cannot go on where the repository stands now; an empty string where nothing is in the way."""
    origin = _origin(ledger, run)
    return f"it was begun in `{origin}`, before the repository was moved or copied" if origin else ""


def told(ledger: Ledger) -> tuple[Alert, ...]:
    """Raise each run that would go on but for that, and return what is new; forget what is settled.

    A repository that was copied, and a run with a leg in progress, are the reaper's to raise.
    """
    found = {alert.key: alert for alert in _found(ledger)}
    for alert in alerts.all(ledger):
        if alert.kind == KIND and alert.key not in found:
            alerts.clear(ledger, alert.key)
    return tuple(alert for alert in found.values() if alerts.tell(ledger, alert))


def _found(ledger: Ledger) -> Iterator[Alert]:
    raised = {alert.run for alert in alerts.all(ledger) if alert.kind == "run"}
    for one in agenda.runs(ledger):
        run = one.plan.run
        if run in raised:
            continue
        origin = _origin(ledger, run) if one.goes_on or one.reset is not None else ""
        if origin and not Path(origin, "relay", "runs", run).is_dir():
            what = f"{run} was begun in `{origin}`, before the repository was moved, and cannot go on"
            yield alerts.new(f"{KIND}:{run}", KIND, what, legs.aside(ledger, one.plan), run)


def _origin(ledger: Ledger, run: str) -> str:
    """Return the repository that a run was begun in, where that is another one."""
    try:
        start = ledgers.newest_start(ledger, run)
    except (RelayError, OSError):
        return ""  # the run itself says so when its turn comes
    return start.common_dir if start is not None and start.common_dir != str(ledger.repo.common) else ""

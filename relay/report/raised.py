"""What was raised to a person, as a report tells it: beside the run that it is about, or by itself."""

from collections.abc import Sequence

import msgspec

from relay import alerts
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import account
from relay.report.account import Account
from relay.terms import Alert

OF_RUN = frozenset({"moved", "waiting"})
"""Kinds of alerts that are about a run which waits for a person: a remark on it, and settled with it."""


ENDS = frozenset({"shipped", "not-accepted", "stopped"})
"""Outcomes of a run that waits for nobody."""


def told(
    ledger: Ledger, at: str, accounts: Sequence[Account]
) -> tuple[dict[str, tuple[Alert, ...]], tuple[Alert, ...]]:
    """Return what is raised, its commands as the reader can type them: what is said beside a run, and what by itself.

    What is about a run that waits for a person is left out where it does not any more: the next pass settles it.
    """
    known, beside, alone = {one.run: one for one in accounts}, dict[str, tuple[Alert, ...]](), list[Alert]()
    for alert in alerts.all(ledger):
        if alert.command.startswith("relay "):
            command = alert.command.replace("relay ", f"relay {at}", 1)
            alert = msgspec.structs.replace(alert, command=command)  # noqa: PLW2901 - the same, as it is typed
        one = known.get(alert.run or "")
        if one is None and alert.kind in OF_RUN and alert.run in ledgers.runs(ledger):
            one = account.of(ledger, alert.run)
        if one is None or (alert.kind not in OF_RUN and alert.command not in {named.text for named in one.commands}):
            alone.append(alert)
        elif alert.kind in OF_RUN and (one.stands in ENDS or (alert.kind == "moved" and not one.yours)):
            continue
        elif one.run in known and one.yours:
            beside[one.run] = (*beside.get(one.run, ()), alert)
        else:
            alone.append(alert)
    return beside, tuple(alone)

"""What there is to do in a night: runs that go on by themselves, runs that wait, proposals that are out."""

from collections.abc import Iterator
from datetime import datetime

from relay import aftermath, runner
from relay.errors import RelayError
from relay.host import clock
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import plan as rules
from relay.terms import Plan, Struct


class Open(Struct, frozen=True, kw_only=True):
    """A run that is not over, and what comes next for it."""

    plan: Plan
    step: rules.Next

    @property
    def goes_on(self) -> bool:
        """Tell whether it goes on without a person: a leg is due, or a shipment that was approved."""
        match self.step:
            case rules.Go() | rules.ShipIt():
                return True
            case rules.Accepted():
                return self.plan.ship.approval == "auto" and not self.plan.unchecked
            case _:
                return False

    @property
    def reset(self) -> datetime | None:
        """Return when the quota that it waits for is there again."""
        return clock.parse(self.step.until) if isinstance(self.step, rules.Wait) else None

    @property
    def proposed(self) -> bool:
        """Tell whether its proposal is out."""
        return isinstance(self.step, rules.End) and self.step.outcome == "proposed"


def spoiled(ledger: Ledger, ref: str) -> str:
    """Say which run's breach moved a base and was not set right: what stands there, nobody has looked at."""
    for one in runs(ledger):
        step, run = one.step, one.plan.run
        moved = {f"{ref} changed", f"{ref} appeared"}
        if isinstance(step, rules.Human) and step.reason == "breach" and moved & set(step.text.split("; ")):
            left = aftermath.look(ledger, one.plan, ledgers.receipts(ledger, run))
            if any(each.name == ref for each in left):
                name = ref.removeprefix("refs/heads/")
                return f"a breach of {run} moved `{name}`, and nothing begins there until somebody settled that"
    return ""


def runs(ledger: Ledger) -> Iterator[Open]:
    """Yield every run that can be read, oldest first, and what comes next now."""
    for run in ledgers.runs(ledger):
        try:
            plan = ledgers.read_plan(ledger, run)
            step = runner.due(ledger, plan, ledgers.receipts(ledger, run))
        except (RelayError, OSError):
            continue  # `relay status` and the reaper say what is wrong with it
        yield Open(plan=plan, step=step)

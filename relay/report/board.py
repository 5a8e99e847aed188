"""What is under way in a run, read from the ledger alone: cheap enough to be asked every second."""

from relay.errors import RelayError
from relay.host import clock, pids
from relay.record import ledger as ledgers
from relay.record import transcript
from relay.record.ledger import Ledger
from relay.report import figures
from relay.report import run as runs
from relay.terms import Plan, Struct


class Doing(Struct, frozen=True, kw_only=True):
    """A leg in progress: who takes it, since how many seconds, and what it is known to have used so far."""

    leg: str
    phase: str
    agent: str
    seconds: float
    turns: int
    tokens: int
    microusd: int | None

    @property
    def told(self) -> str:
        """Say it in a cell."""
        return f"{self.leg} by {self.agent}" if self.agent else self.leg

    @property
    def used(self) -> str:
        """Say what was used so far: turns and tokens, where the agent tells them."""
        parts = [runs.count(self.turns, "turn")] if self.turns else []
        parts += [f"{figures.tokens(self.tokens)} tokens"] if self.tokens else []
        parts += [runs.dollars(self.microusd)] if self.microusd else []
        return ", ".join(parts)


def doing(ledger: Ledger, plan: Plan) -> Doing | None:
    """Return what is under way in a run; None where nothing is, or its start cannot be read at this moment."""
    try:
        begun = [start for start in ledgers.unsealed(ledger, plan.run) if pids.alive(start.relay)]
    except (OSError, RelayError):
        return None
    if not begun:
        return None
    start = begun[-1]
    agent = next((phase.agent for phase in plan.phases if phase.name == start.phase), "")
    usage, cost = transcript.used(ledger.leg(plan.run, start.leg) / "transcript.jsonl")
    return Doing(
        leg=start.leg,
        phase=start.phase or start.act or "",
        agent=agent,
        seconds=max(0.0, (clock.now() - clock.parse(start.started)).total_seconds()),
        turns=usage.turns,
        tokens=usage.input + usage.output,
        microusd=cost,
    )

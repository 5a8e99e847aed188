"""A leg on its way: what its order, its plan and its beginning are, and what was found out for it so far."""

from pathlib import Path

import msgspec

from relay.host import redact
from relay.host.lease import Lease
from relay.record import briefing
from relay.record.ledger import Ledger
from relay.rules.plan import Go
from relay.terms import Check, CriterionResult, Phase, Plan, Receipt, Start, Struct, Swapped


class Tests(Struct, frozen=True, kw_only=True):
    """What swapping the tests came to: facts for the receipt; outputs, names and the diff for the judge."""

    facts: Swapped
    observed: tuple[briefing.Observed, ...] = ()
    removed: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    diff: str = ""

    @property
    def checks(self) -> tuple[Check, ...]:
        """What of it counts among the checks of acceptance."""
        return (self.facts.old,) if self.facts.old is not None and self.facts.binding else ()

    @property
    def shown(self) -> dict[str, object]:
        """What the judge's prompt is given of it."""
        return {**msgspec.to_builtins(self.facts), "removed": self.removed, "skips": self.skips, "diff": self.diff}


class Leg(Struct, frozen=True, kw_only=True):
    """A leg on its way. `began` is monotonic seconds, `promised` plan.toml as it was before an agent could reach it."""

    ledger: Ledger
    plan: Plan
    chain: tuple[Receipt, ...]
    go: Go
    start: Start
    began: float
    lease: Lease | None = None
    brief: briefing.Briefing | None = None
    promised: bytes = b""
    criteria: tuple[CriterionResult, ...] = ()
    checked: tuple[Check, ...] = ()
    observed: tuple[briefing.Observed, ...] = ()
    tests: Tests | None = None

    @property
    def held(self) -> Lease:
        """The leg's worktree: leased just now, or by the offer that this leg takes."""
        if self.lease is not None:
            return self.lease
        start = self.start
        return Lease(
            path=Path(start.worktree or ""),
            git_dir=Path(start.git_dir or ""),
            pointer_sha256=start.pointer_sha256 or "",
        )

    @property
    def redactor(self) -> redact.Redactor:
        """What takes secrets out of all that is kept of the leg: the person's own, and what looks like one."""
        return redact.own()

    @property
    def phase(self) -> Phase:
        """The phase that the leg executes."""
        return self.plan.phase(self.go.phase)

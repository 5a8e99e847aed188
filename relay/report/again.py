"""Acceptance once more: its commands on its commit, run again from the repository and the ledger alone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from relay import clean, confine, swap
from relay.confine import Place
from relay.errors import RelayError
from relay.host import lock
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Check, Plan, Receipt, Struct


class Ran(Struct, frozen=True, kw_only=True):
    """A command of acceptance, what it did then and what it does now; `same` is about the output."""

    by: str
    command: str
    then: int
    now: int
    same: bool

    @property
    def holds(self) -> bool:
        """Whether it ends as it did; outputs may have times and places in them."""
        return self.then == self.now


def accepted(ledger: Ledger, run: str) -> Receipt:
    """Return the newest leg of the last phase that gave a verdict; `RelayError` where there is none."""
    plan = ledgers.read_plan(ledger, run)
    for sealed in reversed(ledgers.receipts(ledger, run)):
        if sealed.phase == plan.phases[-1].name and sealed.kind == "judge" and sealed.ended_by == "reply":
            return sealed
    raise RelayError(f"run `{run}` has no acceptance whose commands could run again", hint=f"relay show {run}")


def run(ledger: Ledger, wanted: str) -> Iterator[Ran]:
    """Run every command that the acceptance rests on again, where and how it ran then; yields each as it ends.

    The repository is held meanwhile, as by a run.
    """
    plan, sealed = ledgers.read_plan(ledger, wanted), accepted(ledger, wanted)
    confine.rung(plan)
    with lock.hold(ledger.lock, f"verify {wanted} --again", wanted):
        commanded = [
            (one.id, one.command, one.exit, one.output_sha256) for one in sealed.criteria if one.command is not None
        ]
        checked = [check for check in sealed.checks if check.by.startswith("checks.")]
        with _tree(ledger, plan, sealed, sealed.start) as at:
            for by, command, code, digest in commanded:
                yield _again(plan, at, by, command, code or 0, digest)
            for check in checked:
                yield _again(plan, at, check.by, check.command, check.exit, check.output_sha256)
        swapped = (sealed.tests.old, sealed.tests.new) if sealed.tests is not None else ()
        for check in filter(None, swapped):
            with _tree(ledger, plan, sealed, _mixed(ledger, plan, sealed, check)) as at:
                yield _again(plan, at, check.by, check.command, check.exit, check.output_sha256)


def _mixed(ledger: Ledger, plan: Plan, sealed: Receipt, check: Check) -> str:
    """Return the commit that a run of swapped tests was made on."""
    code, tests = (sealed.start, sealed.base) if check.by == swap.OLD else (sealed.base, sealed.start)
    return swap.mixed(ledger.repo, plan.tests.paths, code=code, tests=tests)


@contextmanager
def _tree(ledger: Ledger, plan: Plan, sealed: Receipt, commit: str) -> Iterator[Place]:
    with clean.checkout(ledger, plan, sealed.leg, commit, f"again-{os.getpid()}", base=sealed.base) as at:
        yield at


def _again(plan: Plan, at: Place, by: str, command: str, code: int, digest: str | None) -> Ran:
    check, _ = clean.run(plan, at, command, by=by, seconds=plan.phases[-1].minutes * 60)
    return Ran(by=by, command=command, then=code, now=check.exit, same=check.output_sha256 == digest)

"""The command of `[tests]`, and those of the criteria, on trees that never were commits."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from relay import clean, confine, hollow
from relay.host import clock, git, redact
from relay.host.jail import Access
from relay.record import briefing
from relay.record.ledger import Ledger
from relay.swap import failures, patterns, trees
from relay.terms import Check, Criterion, Plan
from relay.underway import Tests

APART: Final = 8
"""Of how many changed test files each is run alone on the base's code; more are only run together."""

OLD: Final = "tests.old"
NEW: Final = "tests.new"
BASE: Final = "tests.base"
"""Why a command ran: the base's tests on the new code, the new tests on the base's, the base's on the base's."""

SHOWN: Final = 4000
"""Characters of the end of an output that the judge is shown."""

EXCUSED: Final = "[relay: red at the base too, by the same tests: what fails here proves nothing about the change]"
UNNAMED: Final = "[relay: red at the base too: the swap of the tests proves nothing, for better or worse]"
NO_EXCUSE: Final = "[relay: red at the base too, but not by the same tests alone: that excuses nothing]"
"""What a base that was red comes to."""

LEANS: Final = (
    "[relay: it is met with the run's own tests, and not with those of the base; no test of the base is named]"
)

Seen = tuple[Check, briefing.Observed]
"""A command that ran, and what the judge is shown of it."""


class Runs:
    """What runs for one acceptance; `changed` are the test files that differ, `taken` those of them the base has."""

    def __init__(
        self, ledger: Ledger, plan: Plan, leg: str, base: str, head: str, seconds: float, changed: Sequence[str]
    ) -> None:
        self.ledger, self.plan, self.leg = ledger, plan, leg
        self.base, self.head = base, head
        self.seconds, self.changed = seconds, changed
        self.taken = [path for path in changed if git.blob(ledger.repo, base, path) is not None]

    def _run(self, commit: str, name: str, by: str, command: str) -> tuple[Check, str]:
        with clean.checkout(self.ledger, self.plan, self.leg, commit, name, base=self.base) as at:
            return clean.run(self.plan, at, command, by=by, seconds=self.seconds)

    def _mixed(self, code: str, tests: str, only: str = "") -> str:
        """Return a commit with the code of one and the tests of another, or one test file alone of the other."""
        return trees.mixed(self.ledger.repo, self.plan.tests.paths, code=code, tests=tests, only=only)

    def old(self, found: Tests, ran: Sequence[Check], command: str) -> Tests:
        """Run the base's tests on the new code; they must pass.

        Only the base excuses: tests that fail with its own code too, and that the run did not make green by changing
        them. Where a test of the base was changed or taken out, red tests that cannot be told apart excuse nothing.
        """
        same = next((check for check in ran if check.command == command), None)
        if same is not None and same.exit == 0 and not self.changed:
            return _with(found, old=msgspec.structs.replace(same, by=OLD))
        check, output = self._run(self._mixed(self.head, self.base), "tests-old", OLD, command)
        if check.exit == 0 or (self.taken and same is not None and same.exit == 0):
            return _with(found, observed(check, output), old=check)
        own = self._run(self.head, "tests-own", OLD, command) if self.taken else (check, output)
        if own[0].exit == 0:
            return _with(found, observed(check, output), old=check)
        before, said = self._run(self.base, "tests-base", BASE, command)
        verdict = self._excuse(output, said, own[1]) if before.exit != 0 else NO_EXCUSE
        known = before.exit if before.exit == 0 or verdict != NO_EXCUSE else None
        both = [observed(check, output), *[observed(before, said, verdict)] * (before.exit != 0)]
        return _with(found, *both, old=msgspec.structs.replace(check, base_exit=known))

    def _excuse(self, old: str, base: str, own: str) -> str:
        """Say what it comes to that the base's tests fail on the base's code as well, by the outputs of three runs."""
        now, was = failures.failing(old), failures.failing(base)
        if not now and not was and not self.taken:
            return UNNAMED
        return EXCUSED if now and now <= was & failures.failing(own) else NO_EXCUSE

    def new(self, found: Tests, command: str) -> Tests:
        """Run the new tests on the base's code: all together, then, where those fail, each changed file alone.

        Where the base's code cannot be set up with them, that stays unknown.
        """
        repo = self.ledger.repo
        there = [
            path for path in self.changed if not patterns.steers(path) and git.blob(repo, self.head, path) is not None
        ]
        if not there:
            return found
        try:
            check, output = self._run(self._mixed(self.base, self.head), "tests-new", NEW, command)
            idle = tuple(there) if check.exit == 0 else self._idle(there, command)
        except clean.SetupError:
            return found
        return _with(found, observed(check, output), new=check, idle=idle)

    def _idle(self, paths: Sequence[str], command: str) -> tuple[str, ...]:
        """Return the changed test files that pass on the base's code when they are the only change."""
        if not 1 < len(paths) <= APART:
            return ()
        lone = [(path, self._mixed(self.base, self.head, only=path)) for path in paths]
        return tuple(path for path, commit in lone if self._run(commit, "tests-new", NEW, command)[0].exit == 0)

    def criteria(self) -> Iterator[tuple[Seen, bool]]:
        """Run the criteria's commands with the base's tests in place of those the run changed or took out.

        Yields what each did, and whether that counts: one that fails by a test of the base, or that runs a changed
        file itself, was met by changing tests. What fails otherwise may need the new tests, and is only shown.
        """
        repo, paths = self.ledger.repo, self.plan.tests.paths
        wanted = [one for one in self.plan.criteria if one.check and not hollow.looking(one.check)]
        if not wanted or not any(path in self.taken or patterns.steers(path) for path in self.changed):
            return
        try:
            commit = trees.restored(repo, paths, code=self.head, tests=self.base)
        except clean.SetupError:  # a test that was added stands where a folder was: it goes
            commit = self._mixed(self.head, self.base)
        for part in [wanted] if confine.rung(self.plan)[0].holds else [[one] for one in wanted]:
            kept = clean.checkout(
                *(self.ledger, self.plan, self.leg, commit, "tests-kept", Access.SCRATCH), base=self.base
            )
            with kept as at:
                for one in part:
                    check, output = clean.run(
                        self.plan, at, one.check or "", by=f"tests.{one.id}", seconds=self.seconds
                    )
                    yield self._held(one, check, output)

    def _held(self, criterion: Criterion, check: Check, output: str) -> tuple[Seen, bool]:
        """Say whether it counts how a criterion stands with the base's tests."""
        if check.exit == 0:
            return (check, observed(check, "")), True
        named = failures.failing(output)
        if named or failures.RAN.search(output):
            counts = any(failures.known(self.ledger.repo, self.base, name) for name in named)
        else:
            counts = hollow.runs(criterion.check or "", self.taken)
        return (check, observed(check, output, "" if counts else LEANS)), counts


def _with(found: Tests, *seen: briefing.Observed, **facts: Check | tuple[str, ...]) -> Tests:
    """Add what a run of the tests showed."""
    return msgspec.structs.replace(
        found,
        facts=msgspec.structs.replace(found.facts, **facts),
        observed=(*found.observed, *seen),
    )


def observed(check: Check, output: str, said: str = "") -> briefing.Observed:
    """Keep the end of an output for the judge, after what Relay says of it."""
    shown = redact.own().text(output)[-SHOWN:]
    text = f"{said}\n{shown}" if said else shown
    return briefing.Observed(command=check.command, output=text, at=clock.stamp(), by=check.by, exit=check.exit)

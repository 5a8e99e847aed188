"""Acceptance looks at the tests: what of them changed, what they do on either side, and what that leaves open."""

from collections.abc import Sequence
from typing import Final

import msgspec

from relay.host import files, git, patch
from relay.record import briefing
from relay.record.ledger import Ledger
from relay.swap import patterns, settings, trees
from relay.swap.counts import count
from relay.swap.runs import Runs, Seen, observed
from relay.terms import Check, Plan
from relay.underway import Tests

DIFF_SHOWN: Final = 20_000
"""Characters of the largest diff of test files that is shown by itself; it stands in the whole diff, too."""


class Held(Tests, frozen=True, kw_only=True):
    """The tests between base and head, and what Relay checked of them besides the runs of `[tests] command`."""

    beside: tuple[Check, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """What of it counts among the checks of acceptance; outputs stand in the same order."""
        return (*self.beside, *super().checks)


def look(
    ledger: Ledger, plan: Plan, leg: str, *, base: str, head: str, seconds: float, ran: Sequence[Check] = ()
) -> Tests | None:
    """Swap the tests between base and head; None where relay.toml names none.

    `ran` are the checks that ran on the head already: where no test changed, the same command is not run again.
    """
    tests, repo = plan.tests, ledger.repo
    if not tests.paths:
        return None
    everything = [one.path for one in git.numstat(repo, base, head)]
    changed = tuple(path for path in everything if patterns.swapped(path, tests.paths))
    diff = _diff(ledger, tests.paths, base, head) if changed else []
    counted, removed, skips = count(diff)
    found = Tests(
        facts=msgspec.structs.replace(counted, changed=changed, binding=not plan.may_change_tests),
        removed=removed,
        skips=skips,
        diff=text if len(text := "".join(diff)) <= DIFF_SHOWN else "",
    )
    beside = [*_nowhere(ledger, plan, base, head), *_steered(ledger, base, head, everything)]
    runs = Runs(ledger, plan, leg, base, head, seconds, changed)
    if tests.command is not None:
        found = runs.old(found, ran, tests.command)
        found = runs.new(found, tests.command) if changed else found
    shown: list[briefing.Observed] = []
    if found.facts.binding and not any(check.newly_red for check in found.checks):
        for seen, counts in runs.criteria():
            beside += [seen] if counts else []
            shown += [] if counts else [seen[1]]
    return Held(
        facts=found.facts,
        observed=(*(seen for _, seen in beside), *found.observed, *shown),
        removed=found.removed,
        skips=found.skips,
        diff=found.diff,
        beside=tuple(check for check, _ in beside),
    )


def _diff(ledger: Ledger, paths: Sequence[str], base: str, head: str) -> list[str]:
    """Return the diff of the test files alone, file by file: one that was moved out of them is a removed one."""
    old, new = (trees.alone(ledger.repo, paths, commit) for commit in (base, head))
    return [piece.text for piece in patch.pieces(git.diff(ledger.repo, old, new))]


def _nowhere(ledger: Ledger, plan: Plan, base: str, head: str) -> list[Seen]:
    """Say aloud that the patterns mean no file: it was so at the base, and no fault of the run."""
    if not patterns.nowhere(ledger.repo, plan.tests.paths, base, head):
        return []
    named = ", ".join(plan.tests.paths)
    said = f"`[tests] paths` in relay.toml means no file, at the base or now, so no test is compared: {named}"
    return [_saw("tests.paths", f"the files that `[tests] paths` means: {named}", said, exit_code=1, base_exit=1)]


def _steered(ledger: Ledger, base: str, head: str, changed: Sequence[str]) -> list[Seen]:
    """Name the files that steer tests besides other things, and were changed in that; their diff goes to the judge."""
    named = settings.steered(ledger.repo, base, head, changed)
    if not named:
        return []
    diff = "".join(piece.text for piece in patch.pieces(git.diff(ledger.repo, base, head)) if piece.path in named)
    said = f"[relay: these steer how tests run, and the run changed that: {', '.join(named)}]"
    return [_saw("tests.settings", f"git diff {base[:12]} {head[:12]} -- {' '.join(named)}", said, diff)]


def _saw(by: str, what: str, said: str, more: str = "", *, exit_code: int = 0, base_exit: int | None = None) -> Seen:
    """Make the check of something that Relay looked at by itself, and what it saw."""
    digest = files.sha256(f"{said}\n{more}".encode("utf-8", "replace"))
    check = Check(by=by, command=what, exit=exit_code, seconds=0.0, output_sha256=digest, base_exit=base_exit)
    return check, observed(check, more, said)

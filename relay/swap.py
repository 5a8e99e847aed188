"""The tests between base and head: the old ones on the new code, the new ones on the old code, and what was taken out.

So a test that was deleted, skipped or weakened helps nobody, and one that passes either way proves nothing.
"""

import fnmatch
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from relay import clean
from relay.host import clock, git, patch, redact
from relay.host.repository import Repository
from relay.record import briefing
from relay.record.ledger import Ledger
from relay.terms import Check, Plan, Swapped
from relay.underway import Tests

APART: Final = 8
"""Of how many changed test files each is run alone on the base's code; more are only run together."""

OLD: Final = "tests.old"
NEW: Final = "tests.new"
"""Why a command ran: the base's tests on the new code, the new tests on the base's."""

DIFF_SHOWN: Final = 20_000
"""Characters of the largest diff of test files that is shown by itself; it stands in the whole diff, too."""

SHOWN: Final = 4000
"""Characters of the end of an output that the judge is shown."""

TEST: Final = re.compile(
    r"^\s*(?:(?:async\s+)?def\s+(test\w*)"  # Python
    r"|(?:it|test|specify|scenario)(?:\.\w+)*\s*\(\s*[\"'`](.+?)[\"'`]"  # JavaScript, TypeScript, Ruby
    r"|func\s+(Test\w+)|fn\s+(test\w*)"  # Go, Rust
    r"|(?:public\s+|void\s+|fun\s+)+(test\w+|should\w+)\s*\("  # Java, Kotlin
    r"|TEST(?:_F|_P)?\s*\(\s*(\w+\s*,\s*\w+))"  # C++
)
"""How a test begins, in what most people write tests in; the group that is there names it."""

SKIP: Final = re.compile(
    r"@(?:unittest\.|pytest\.mark\.)?(?:skip|xfail|expectedFailure)|\bskipif\b|pytest\.(?:skip|xfail|importorskip)\("
    r"|\.skipTest\(|unittest\.skip|raise\s+(?:unittest\.)?SkipTest"
    r"|\b(?:it|test|describe|context|suite)\.(?:skip|todo|only|failing)\b|\bx(?:it|describe|test|context)\s*\("
    r"|\bt\.Skip(?:f|Now)?\(|#\[ignore|@(?:Ignore|Disabled)\b|GTEST_SKIP\(|\bDISABLED_\w|collect_ignore"
)
"""How a test is left out, or all others are."""

ASSERTION: Final = re.compile(
    r"^\s*assert\b|\bassert\w*!?\s*\(|\bself\.assert\w+\(|\bexpect\w*\s*\(|\brequire\.\w+\(|\bpytest\.raises\(|\.should\b"
    r"|\bt\.(?:Error|Fatal)f?\(|\b(?:EXPECT|ASSERT)_\w+\("
)
"""How a test demands something."""


def fits(path: str, patterns: Sequence[str]) -> bool:
    """Tell whether a path is meant by one of the patterns: `tests/**`, `**/*_test.go`, or a folder's name."""
    return any(
        fnmatch.fnmatchcase(path, pattern)
        or (pattern.startswith("**/") and fnmatch.fnmatchcase(path, pattern[3:]))
        or path.startswith(pattern.rstrip("/") + "/")
        for pattern in patterns
    )


def look(
    ledger: Ledger, plan: Plan, leg: str, *, base: str, head: str, seconds: float, ran: Sequence[Check] = ()
) -> Tests | None:
    """Swap the tests between base and head; None where relay.toml names none.

    `ran` are the checks that ran on the head already: where no test changed, the same command is not run again.
    """
    tests = plan.tests
    if not tests.paths:
        return None
    changed = [one.path for one in git.numstat(ledger.repo, base, head) if fits(one.path, tests.paths)]
    pieces = [piece for piece in patch.pieces(git.diff(ledger.repo, base, head)) if fits(piece.path, tests.paths)]
    counted, removed, skips = count([piece.text for piece in pieces])
    found = Tests(
        facts=msgspec.structs.replace(counted, changed=tuple(changed), binding=not plan.may_change_tests),
        removed=removed,
        skips=skips,
        diff=diff if len(diff := "".join(piece.text for piece in pieces)) <= DIFF_SHOWN else "",
    )
    if tests.command is None:
        return found
    runs = _Runs(ledger, plan, leg, base, head, seconds, tests.command)
    found = runs.old(found, ran)
    return runs.new(found) if changed else found


def count(diffs: Sequence[str]) -> tuple[Swapped, tuple[str, ...], tuple[str, ...]]:
    """Count in diffs of test files what looks like tests, skips and assertions; name tests removed, and skips added.

    A test that is only moved or changed is neither removed nor added.
    """
    lines = [line for diff in diffs for line in diff.partition("\n@@")[2].split("\n")]
    minus, plus = ([line[1:] for line in lines if line.startswith(side)] for side in "-+")
    gone, come = ([name for line in side if (name := _test(line))] for side in (minus, plus))
    skips = tuple(line.strip()[:200] for line in plus if SKIP.search(line))
    removed = tuple(dict.fromkeys(name for name in gone if name not in come))
    facts = Swapped(
        tests_removed=len(removed),
        tests_added=len(dict.fromkeys(name for name in come if name not in gone)),
        skips_added=max(0, len(skips) - sum(bool(SKIP.search(line)) for line in minus)),
        assertions_removed=sum(bool(ASSERTION.search(line)) for line in minus),
        assertions_added=sum(bool(ASSERTION.search(line)) for line in plus),
    )
    return facts, removed, skips


def _test(line: str) -> str:
    """Return the name of the test that begins on a line."""
    found = TEST.match(line)
    return next((" ".join(name.split()) for name in found.groups() if name), "") if found else ""


class _Runs:
    """The command of `[tests]`, on trees that never were commits."""

    def __init__(
        self, ledger: Ledger, plan: Plan, leg: str, base: str, head: str, seconds: float, command: str
    ) -> None:
        self.ledger, self.plan, self.leg = ledger, plan, leg
        self.base, self.head = base, head
        self.seconds, self.command = seconds, command
        self.observed: list[briefing.Observed] = []

    def _run(self, commit: str, name: str, by: str) -> tuple[Check, str]:
        with clean.checkout(self.ledger, self.plan, self.leg, commit, name, base=self.base) as at:
            return clean.run(self.plan, at, self.command, by=by, seconds=self.seconds)

    def _mixed(self, code: str, tests: str, only: str = "") -> str:
        """Return a commit with the code of one and the tests of another, or one test file alone of the other."""
        return mixed(self.ledger.repo, self.plan.tests.paths, code=code, tests=tests, only=only)

    def old(self, found: Tests, ran: Sequence[Check]) -> Tests:
        """Run the base's tests on the new code; they must pass.

        Where they fail, and the run's own tests do as well, nothing was gained by changing any: what was red on the
        base is then no fault of the run. Tests that are green only because they were changed excuse nothing.
        """
        same = next((check for check in ran if check.command == self.command), None)
        if same is not None and not found.facts.changed:
            return _with(found, old=msgspec.structs.replace(same, by=OLD, base_exit=self._base(same)))
        check, output = self._run(self._mixed(self.head, self.base), "tests-old", OLD)
        if check.exit != 0 and found.facts.changed:
            same = same or self._run(self.head, "tests-own", OLD)[0]
        if check.exit != 0 and (same is None or same.exit != 0):
            check = msgspec.structs.replace(check, base_exit=self._base(check))
        return _with(found, _observed(check, output), old=check)

    def _base(self, check: Check) -> int | None:
        """Return what the command does on the base, where it fails here."""
        return self._run(self.base, "tests-base", OLD)[0].exit if check.exit != 0 else None

    def new(self, found: Tests) -> Tests:
        """Run the new tests on the base's code: all together, then, where those fail, each changed file alone.

        Where the base's code cannot be set up with them, that stays unknown.
        """
        there = [path for path in found.facts.changed if git.blob(self.ledger.repo, self.head, path) is not None]
        if not there:
            return found
        try:
            check, output = self._run(self._mixed(self.base, self.head), "tests-new", NEW)
            idle = tuple(there) if check.exit == 0 else self._idle(there)
        except clean.SetupError:
            return found
        return _with(found, _observed(check, output), new=check, idle=idle)

    def _idle(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the changed test files that pass on the base's code when they are the only change."""
        if not 1 < len(paths) <= APART:
            return ()
        trees = [(path, self._mixed(self.base, self.head, only=path)) for path in paths]
        return tuple(path for path, commit in trees if self._run(commit, "tests-new", NEW)[0].exit == 0)


def mixed(repo: Repository, patterns: Sequence[str], *, code: str, tests: str, only: str = "") -> str:
    """Make a commit, which no ref names, of one commit's files and the test files of another; or of one of those."""

    def entries(commit: str) -> dict[bytes, bytes]:
        out = git.run(repo, "ls-tree", "-r", "-z", "--full-tree", commit)
        return {entry.partition(b"\t")[2]: entry for entry in out.split(b"\0") if entry}

    def swapped(path: bytes) -> bool:
        return git.label(path) == only if only else fits(git.label(path), patterns)

    kept = {path: entry for path, entry in entries(code).items() if not swapped(path)}
    wanted = kept | {path: entry for path, entry in entries(tests).items() if swapped(path)}
    with tempfile.TemporaryDirectory(prefix="relay-index-") as folder:
        env = {"GIT_INDEX_FILE": os.fspath(Path(folder) / "index")}
        listed = b"".join(entry + b"\0" for entry in wanted.values())
        answer = git.call(repo, "update-index", "-z", "--index-info", stdin=listed, env=env)
        if answer.code:
            raise clean.SetupError("the tests of the base cannot stand beside the new code: a folder is a file there")
        tree = git.run(repo, "write-tree", env=env).strip().decode()
    return git.commit_tree(repo, tree, [code], "tests between base and head\n", git.NOBODY)


def _with(found: Tests, *observed: briefing.Observed, **facts: Check | tuple[str, ...]) -> Tests:
    """Add what a run of the tests showed."""
    return msgspec.structs.replace(
        found,
        facts=msgspec.structs.replace(found.facts, **facts),
        observed=(*found.observed, *observed),
    )


def _observed(check: Check, output: str) -> briefing.Observed:
    """Keep the end of an output for the judge."""
    shown = redact.own().text(output)[-SHOWN:]
    return briefing.Observed(command=check.command, output=shown, at=clock.stamp(), by=check.by, exit=check.exit)

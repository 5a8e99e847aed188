"""What a diff of test files took out: counted in lines that look like a test, a skip or an assertion."""

import re
from collections.abc import Sequence
from typing import Final

from relay.terms import Swapped

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

"""Which tests failed, as test programs name them in what they print."""

import re
from typing import Final

from relay.host import git
from relay.host.repository import Repository

CUT: Final = re.compile(r"(?m)^\[\.\.\. \d+ bytes left out \.\.\.\]$")
"""Where the middle of a long output is missing (`proc.Output.text`)."""

FAILED: Final = re.compile(
    r"(?m)^(?:(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+ \([\w.<>]+\))"  # unittest
    r"|(?:SUB)?(?:FAILED|ERROR)(?:\([^)\n]*\))? (\S+?\.py(?:::.*?)?)(?: - .*)?$"  # pytest
    r"|[ \t]*--- FAIL: (\S+)|FAIL\t(\S+) \["  # Go
    r"|test (\S+)(?: - .*?)? \.\.\. FAILED$"  # Rust
    r"|\[  FAILED  \] (\w+[./]\S+?),?(?: |$)"  # GoogleTest
    r"|[ \t]*(?:\u25cf|\u2715|\u2716|\u2717|\u00d7) (.+?)(?: \(?\d[\d.]* ?m?s\)?)?$"  # Jest, Vitest, node
    r"|[ \t]*not ok \d+(?: -)? (.+?)(?: #.*)?$"  # TAP
    r"|[ \t]+\d+\) (.+?):?$|\d+\) (\S+::\S+)$"  # Mocha, ExUnit; PHPUnit
    r"|rspec (\./\S+)"  # RSpec
    r"|[ \t]*\d+/\d+ Test +#\d+: (\S+) [.*]+Failed"  # CTest
    r"|\[ERROR\] +(?:[\w.]*\.)?(\w+\.\w+):\d+"  # Surefire
    r"|(\w\S* > .+) FAILED$)"  # Gradle
)
"""How a test that failed is named; the group that is there is the name."""

RAN: Final = re.compile(
    r"(?im)\b\d+ (?:passed|passing|passes)\b|\bran \d+ tests? in\b|\bno tests? (?:ran|found|to run|files? found)\b"
    r"|^test result: |^ok \d+ - |^1\.\.\d+|\bERROR: not found: "
)
"""How a test program says that it ran, whatever came of it."""


def failing(output: str) -> frozenset[str]:
    """Return the names of the tests that an output says failed; none where its middle is missing."""
    if CUT.search(output):
        return frozenset()
    return frozenset(next(filter(None, found), "") for found in FAILED.findall(output))


def known(repo: Repository, commit: str, name: str) -> bool:
    """Tell whether a commit knows a test that failed: it has the file that is named, or its word in some file."""
    plain = re.sub(r"\[.*\]$|\s*\(.*\)$", "", name)
    if any(git.blob(repo, commit, path) is not None for path in (plain, f"{plain.replace('.', '/')}.py")):
        return True
    word = re.split(r"::|\u203a|\s>\s|/|\.", plain)[-1].strip()
    return bool(word) and git.call(repo, "grep", "-qwF", "-e", word, commit).code == 0

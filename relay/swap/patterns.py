"""Which files are tests: the `paths` that `[tests]` names, and the settings that tests obey without being named."""

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final

from relay.host import git
from relay.host.repository import Repository

SETTINGS: Final = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", ".rspec", "phpunit.xml", "phpunit.xml.dist"}
)
"""Files that hold nothing but settings of tests, in any folder: they are swapped with the tests."""


def steers(path: str) -> bool:
    """Tell whether a file holds settings of tests and nothing else."""
    return PurePosixPath(path).name in SETTINGS


def swapped(path: str, patterns: Sequence[str]) -> bool:
    """Tell whether a path goes with the tests: a test by one of the patterns, or tests' settings wherever they lie."""
    return steers(path) or fits(path, patterns)


def fits(path: str, patterns: Sequence[str]) -> bool:
    """Tell whether a path is meant by one of the patterns, read as .gitignore reads them.

    `tests/**`, `src/**/test_*.py`, `*_test.go` at any depth, or a folder's name. As in a pathspec, `*` crosses `/`:
    a file too many among the tests does no harm, one too few is not watched.
    """
    return any(_meant(pattern).fullmatch(path) for pattern in patterns)


@lru_cache
def _meant(pattern: str) -> re.Pattern[str]:
    """Write a pattern as an expression that fits the paths it means, and all that lies below them."""
    plain = PurePosixPath(pattern).as_posix()  # without `./`, `//` and a `/` at the end
    parts = re.split(r"(?:^|(?<=/))\*\*/", plain if "/" in plain else f"**/{plain}")
    globs = [fnmatch.translate(part)[len("(?s:") : -len(r")\Z")] for part in parts]
    return re.compile(f"(?s:(?:{'(?:.*/)?'.join(globs)}|{re.escape(plain)})(?:/.*)?)")


def nowhere(repo: Repository, patterns: Sequence[str], *commits: str) -> bool:
    """Tell whether patterns are given and mean no file of any of the commits: then no test is looked at."""
    return bool(patterns) and not any(
        fits(git.label(path), patterns) for commit in commits for path in git.paths(repo, commit)
    )

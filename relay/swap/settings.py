"""Files that steer tests besides other things: what of them is about tests, and whether that changed."""

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from relay.host import git
from relay.host.repository import Repository

TOOLS: Final = re.compile(
    r"pytest|tox|nox|test|coverage|hatch|jest|vitest|mocha|nyc|\bava\b|\btap\b|script", re.IGNORECASE
)
"""What tables, sections and keys are called that say how tests run."""

WHOLE: Final = re.compile(
    r"(?:jest|vitest|karma|playwright|cypress|ava)\.(?:config|conf|workspace)\.\w+|\.mocharc(?:\.\w+)?|noxfile\.py"
)
"""Files that are all about tests, and which new code may need changed all the same."""


def steered(repo: Repository, base: str, head: str, changed: Sequence[str]) -> list[str]:
    """Return those changed paths whose part about tests is another one at the head than at the base."""
    found = []
    for path in changed:
        name = PurePosixPath(path).name
        read = READERS.get(name)
        if WHOLE.fullmatch(name) or (read and _part(repo, base, path, read) != _part(repo, head, path, read)):
            found.append(path)
    return found


def _part(repo: Repository, commit: str, path: str, read: Callable[[str], object]) -> object:
    """Return what a file says about tests; all of it where it cannot be read."""
    text = (git.blob(repo, commit, path) or b"").decode("utf-8", "replace")
    try:
        return read(text)
    except (ValueError, TypeError, AttributeError, RecursionError, configparser.Error):
        return text


def _about(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if TOOLS.search(key)}


def _pyproject(text: str) -> object:
    """Read the tools that run tests, and the plug-ins by which an installed package steers them."""
    told = tomllib.loads(text)
    return _about(told.get("tool", {})), told.get("project", {}).get("entry-points")


def _sections(text: str) -> object:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return _about({name: dict(parser[name]) for name in parser.sections()})


def _package(text: str) -> object:
    return _about(json.loads(text or "{}"))


READERS: Final[dict[str, Callable[[str], object]]] = {
    "pyproject.toml": _pyproject,
    "setup.cfg": _sections,
    "package.json": _package,
}
"""How to read what a mixed file says about tests."""

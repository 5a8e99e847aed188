"""What every test stands on: a home of its own, no configuration from outside, nothing leaked to the next test."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world import World

_KEPT = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT")
"""All that a test sees of the environment pytest was started in: no HOME, no GIT_*, no RELAY_*, no keys, no colours."""

_PYTEST_OWN = "PYTEST_CURRENT_TEST"
"""What pytest itself changes while a test runs."""


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the test an environment of its own, and fail it if that, or the working folder, is not as it was at the end.

    It does not use `monkeypatch`, so it is set up before and taken down after it: what a test changes through
    `monkeypatch` is not a leak.
    """
    outside, folder = dict(os.environ), Path.cwd()
    mine = {name: outside[name] for name in _KEPT if name in outside} | environment(tmp_path_factory.mktemp("user"))
    _set_environment(mine)
    yield
    leaked = sorted(name for name, _ in dict(os.environ).items() ^ mine.items() if name != _PYTEST_OWN)
    moved = Path.cwd() != folder
    _set_environment(outside)
    os.chdir(folder)
    if leaked or moved:
        pytest.fail(f"the test leaked {', '.join(leaked) or 'its working folder'}")


def environment(folder: Path) -> dict[str, str]:
    """Make the folders of a new user below `folder`, and return the variables that lead there."""
    home = folder / "home"
    variables = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / "config",
        "XDG_STATE_HOME": home / "state",
        "XDG_CACHE_HOME": home / "cache",
        "GIT_TEMPLATE_DIR": home / "no-templates",
    }
    for made in variables.values():
        made.mkdir(parents=True)
    fixed = {"GIT_CONFIG_NOSYSTEM": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    return {name: str(made) for name, made in variables.items()} | fixed


def _set_environment(variables: dict[str, str]) -> None:
    current = os.environ.get(_PYTEST_OWN)
    os.environ.clear()
    os.environ.update(variables)
    if current is not None:
        os.environ[_PYTEST_OWN] = current
    time.tzset()


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a small repository with agents for the three default phases, which all go through."""
    return World.simple(tmp_path)

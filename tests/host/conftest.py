"""What the tests of this room share."""

import subprocess
from collections.abc import Iterator

import pytest

from relay.host.jail import Rung, choose
from tests.world import SAFETY


@pytest.fixture(params=["in the open", "in a jail"])
def rung(request: pytest.FixtureRequest) -> Rung:
    """Return what confines git on an agent's tree: nothing, then a jail; that is skipped aloud where none holds."""
    found, said = choose("off" if request.param == "in the open" else "auto")
    if request.param != "in the open" and not found.holds:
        pytest.skip(said)
    return found


@pytest.fixture
def bystander() -> Iterator[int]:
    """Yield a process that has nothing to do with anything, and must live on."""
    with subprocess.Popen(["sleep", str(SAFETY)]) as child:
        yield child.pid
        alive = child.poll() is None
        child.kill()
    assert alive

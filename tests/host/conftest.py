"""What the tests of this room share."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.world import SAFETY


@pytest.fixture
def bystander() -> Iterator[int]:
    """Yield a process that has nothing to do with anything, and must live on."""
    with subprocess.Popen(["sleep", str(SAFETY)]) as child:
        yield child.pid
        alive = child.poll() is None
        child.kill()
    assert alive

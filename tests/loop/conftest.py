"""What tests of the loop share."""

import pytest

from relay.host import jail
from tests.loop.jailed import agents
from tests.world import World


@pytest.fixture
def jailed(world: World) -> World:
    """Make a world whose agents are shell scripts in a jail; skipped aloud where none can be had."""
    rung, said = jail.choose("auto")
    if not rung.holds:
        pytest.skip(said)
    agents(world)
    return world

"""What the tests of the jail share."""

from collections.abc import Iterator

import pytest

from tests.host.jail import cell
from tests.host.jail.cell import Cell


@pytest.fixture(scope="module", params=cell.USERS)
def held(request: pytest.FixtureRequest) -> Iterator[Cell]:
    """Return a home of root's, then of an ordinary user's, where the jail holds."""
    cell.rung_of(cell.uid_of(request.param))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        with cell.built(request.param) as made:
            patch.undo()
            yield made

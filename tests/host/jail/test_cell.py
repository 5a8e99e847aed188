"""Commands without a jail: what they use is bounded all the same, as far as a watch can see it."""

from pathlib import Path

import pytest

from relay.host.jail import Bounds
from relay.host.jail import cell as cells
from relay.terms import Limits
from tests.world import SAFETY

MB = 1 << 20


@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("python3 -c 'import time; held = bytearray(300 << 20); time.sleep(60)'", "memory"),
        ("for n in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait", "memory"),
        ("dd if=/dev/zero of=large bs=1M count=80 2>/dev/null; sleep 60", "disk"),
    ],
)
def test_a_command_in_the_open_ends_at_its_bound(tmp_path: Path, command: str, how: str) -> None:
    bounds = Bounds(memory=200 * MB, processes=1, disk=40 * MB)
    ended = cells.run(None, command, folder=tmp_path, env={}, limits=Limits(seconds=SAFETY), bounds=bounds)
    assert ended.ended == how

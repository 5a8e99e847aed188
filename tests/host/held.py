"""A program of its own that has a temporary folder of Relay's for as long as a test wants, and what is left of it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.world import CHECKOUT, SAFETY

APART = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")
"""A container in small: its processes have numbers of their own, which mean nobody outside."""
_HOLD = """
import sys
from relay.host import scratch
with scratch.folder("door") as folder:
    (folder / "sub").mkdir()
    (folder / "sub" / "socket").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(place: Path, apart: Sequence[str] = ()) -> Iterator[tuple[Path, "subprocess.Popen[bytes]"]]:
    """Give a folder below `place` and the program that has it; it is old for whoever looks at its times."""
    if apart and shutil.which(apart[0]) is None:
        pytest.skip(f"`{apart[0]}` of util-linux is not here")
    with subprocess.Popen(
        [*apart, sys.executable, "-c", _HOLD],
        env={**os.environ, "TMPDIR": str(place), "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        said = program.stdout.readline().decode().strip()
        if not said and apart:
            pytest.skip(f"no namespace can be made here: {program.communicate(timeout=SAFETY)[1]!r}")
        folder = Path(said)
        age(folder)
        try:
            yield folder, program
        finally:
            program.communicate(timeout=SAFETY)


def left(place: Path) -> Path:
    """Return a folder whose program was killed while it had it."""
    with held(place) as (folder, program):
        program.kill()
    assert folder.is_dir()
    age(folder)
    return folder


def age(path: Path) -> None:
    """Make a path look as if nothing had changed in it for ever."""
    os.utime(path, (1, 1))

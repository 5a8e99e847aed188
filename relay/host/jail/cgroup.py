"""A bound on the number of processes for root, which the kernel's own limit does not hold for.

A fork bomb of root's is faster than any watch. So the jail of root runs in a control group of its own, where one
can be made; in many containers none can.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from relay.host.jail.limits import BESIDE

_ROOT: Final = Path("/sys/fs/cgroup")


@contextmanager
def bounded(processes: int) -> Iterator[Path | None]:
    """Yield the file that takes processes into a group of so many, or nothing where none can be made; for root only."""
    made = None if os.geteuid() else _make(processes + BESIDE)
    try:
        yield made / "cgroup.procs" if made else None
    finally:
        for _ in range(1000 if made else 0):  # the last processes are still on their way out
            try:
                os.rmdir(str(made))
                break
            except OSError:
                time.sleep(0.001)


def _make(processes: int) -> Path | None:
    with suppress(OSError):
        for parent in _parents():
            made = parent / f"relay-{os.getpid()}-{os.urandom(4).hex()}"
            with suppress(OSError):
                _sweep(parent)
                made.mkdir()
                try:
                    (made / "pids.max").write_text(str(processes), encoding="ascii")
                except OSError:
                    made.rmdir()
                    raise
                return made
    return None


def _sweep(parent: Path) -> None:
    """Remove what a Relay left that was killed."""
    for left in parent.glob("relay-*-*"):
        if not Path("/proc", left.name.split("-")[1]).exists():
            with suppress(OSError):
                left.rmdir()


def _parents() -> Iterator[Path]:
    """Yield the groups in which one that counts processes may be made, the nearest first."""
    entries = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()]
    for _, controllers, path in entries:
        if "pids" in controllers.split(","):  # version 1: a tree for each
            yield _ROOT / "pids" / path.lstrip("/")
    for _, controllers, path in entries:
        if not controllers:
            own = _ROOT / path.lstrip("/")
            for group in (own, *own.parents):
                if group.is_relative_to(_ROOT) and "pids" in (group / "cgroup.subtree_control").read_text().split():
                    yield group

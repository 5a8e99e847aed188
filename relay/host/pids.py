"""Which process is which, and how to end some: numbers come back, so a process is known by its start and its boot.

A process of the same user is found by what it inherited: `RELAY_NONCE` in its environment (pitfalls rows 73, 88).
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from relay.host import clock
from relay.terms import Process

if TYPE_CHECKING:
    import subprocess

STUBBORN: Final = 3.0
"""Seconds of trying to kill what is left; only what the kernel itself holds up survives it."""
_KERNEL_THREAD: Final = 0x00200000  # PF_KTHREAD, include/linux/sched.h
_EXEC: Final = 0.002
"""Seconds after which a process that was just becoming another program may show its environment again."""
_TRIES: Final = 10
"""How often it is looked at, before it counts as one that has no environment."""


class Stat(NamedTuple):
    """What the kernel says of a process; `started` is in clock ticks since the boot."""

    parent: int
    group: int
    session: int
    started: int


def stat(pid: int) -> Stat | None:
    """Return what the kernel says of a living process; None for a kernel thread and what only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    if state in {b"Z", b"X"} or int(fields[5]) & _KERNEL_THREAD:
        return None
    return Stat(int(fields[0]), int(fields[1]), int(fields[2]), int(fields[18]))


def process(pid: int) -> Process:
    """Return the process that has this number now; its `started` is 0 when none has."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        boot = file.read().strip().decode()
    found = stat(pid)
    return Process(pid=pid, started=found.started if found else 0, boot=boot)


def this() -> Process:
    """Return the running process, so that a file can name it for good."""
    return process(os.getpid())


def alive(known: Process) -> bool:
    """Tell whether that very process still runs: same number, same start, same boot (pitfalls row 88)."""
    return known.started > 0 and process(known.pid) == known


def others() -> Iterator[int]:
    """Yield this user's processes, without this one and those it descends from."""
    kin, pid = {0}, os.getpid()
    while pid not in kin:
        kin.add(pid)
        found = stat(pid)
        pid = found.parent if found else 0
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) not in kin:
            with suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == os.geteuid():
                    yield int(name)


def carries(pid: int, mark: bytes) -> bool:
    """Tell whether `mark`, a whole `NAME=value`, stands in the environment that the process was started with."""
    for _ in range(_TRIES):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                found = file.read()
        except OSError:
            return False
        if found:
            return mark in found.split(b"\0")
        time.sleep(_EXEC)  # caught in the middle of an exec; an open file would go on showing the program that was
    return False


def survivors(nonce: str) -> list[int]:
    """Return the processes whose environment carries `RELAY_NONCE=nonce`, without this one and its ancestors."""
    return _carriers(f"RELAY_NONCE={nonce}") if nonce else []


def signature(runner: Process | None = None) -> str:
    """Return what a Relay process, this one if unsaid, writes into the environment of everything it starts."""
    runner = runner or this()
    return f"{runner.pid}.{runner.started}"


def orphans(runner: Process, name: str) -> list[int]:
    """Return what a Relay process started and left: `RELAY_RUNNER` marks programs, `RELAY_GIT` its own git."""
    return _carriers(f"{name}={signature(runner)}")


def _carriers(mark: str) -> list[int]:
    return [pid for pid in others() if stat(pid) and carries(pid, mark.encode())]


def end(pids: Iterable[int]) -> None:
    """End these processes: SIGTERM, a second of grace, SIGKILL. Never this one, its ancestors or another user's."""
    wanted = set(pids)
    targets = [process(pid) for pid in others() if pid in wanted]
    for signum, grace in ((signal.SIGTERM, 1.0), (signal.SIGKILL, STUBBORN)):
        signal_all((target.pid for target in targets if alive(target)), signum)
        over = clock.monotonic() + grace
        while any(alive(target) for target in targets) and clock.monotonic() < over:
            time.sleep(0.01)


def signal_all(pids: Iterable[int], signum: signal.Signals) -> None:
    """Send a signal to each process; what is gone or not ours is passed over."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def let_go(child: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Reap a program that was killed; what it started may have left its group, and keep its pipes open for ever."""
    import subprocess  # 8 ms that a command which runs nothing does not need

    try:
        child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        for pipe in filter(None, (child.stdin, child.stdout, child.stderr)):
            pipe.close()

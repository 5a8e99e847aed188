"""A whole relay in a network that has nothing but itself, and what the kernel counted of tries to reach anything else.

Started as a program, it is what runs there: it builds a world in a folder, runs the relay, and says how it went.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.loop import vendors
from tests.service import Service
from tests.world import CHECKOUT, SAFETY, World

_UP: Final = 0x1
"""IFF_UP, linux/if.h."""
_SET_FLAGS: Final = 0x8914
"""SIOCSIFFLAGS, linux/sockios.h."""
_AMBIENT: Final = 47
"""PR_CAP_AMBIENT, linux/prctl.h."""
_CLEAR_ALL: Final = 4
"""PR_CAP_AMBIENT_CLEAR_ALL, as above."""
_NONE: Final = {
    "Ip": ("OutNoRoutes",),  # an address that no route leads to: every one but this machine's own
    "Udp": ("OutDatagrams", "NoPorts"),  # a name that was asked for
    "Tcp": ("AttemptFails",),  # a port of this machine on which nobody listens
    "Ip6": ("OutNoRoutes",),
    "Udp6": ("OutDatagrams", "NoPorts"),
}
"""What the kernel counts of a try to reach what is not there (proc(5), RFC 4293)."""


def relay(folder: Path, worker: str, judge: str) -> dict[str, Any]:
    """Run a relay of the vendors' programs where there is only `lo`; return what it came to.

    `tries` are the counters of `_NONE` that were not 0 then, `tried` those after some tries on purpose. The test is
    skipped aloud where no such network can be had.
    """
    own = [] if os.geteuid() == 0 else ["--map-current-user", "--keep-caps"]
    new = ["unshare", *own, "--net"]
    words = [*new, sys.executable, "-P", "-m", "tests.loop.alone", str(folder), worker, judge]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    try:
        ended = subprocess.run(
            words, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False, timeout=SAFETY
        )
    except FileNotFoundError:
        pytest.skip("`unshare` of util-linux is not here")
    if ended.stderr.startswith("unshare:"):
        pytest.skip(f"no network of its own can be had here: {ended.stderr}")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)  # type: ignore[no-any-return]


def _begin() -> None:
    """Let `lo` be there, and hand down none of the rights that this took: the programs are nobody special."""
    with socket.socket() as any_:
        fcntl.ioctl(any_, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))
    ctypes.CDLL(None).prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)


def _counted() -> dict[str, int]:
    """Return the counters of this network by their names."""
    lines = [line.split() for line in Path("/proc/net/snmp").read_text().splitlines()]
    counted = {
        f"{names[0]}{name}".replace(":", ""): int(value)
        for names, values in zip(lines[::2], lines[1::2], strict=True)
        for name, value in zip(names[1:], values[1:], strict=True)
    }
    newer = (line.split() for line in Path("/proc/net/snmp6").read_text().splitlines())
    return counted | {name: int(value) for name, value in newer}


def _tries() -> dict[str, int]:
    counted = _counted()
    wanted = [f"{of}{name}" for of, names in _NONE.items() for name in names]
    return {name: counted[name] for name in wanted if counted[name]}


def _try() -> None:
    """Try to reach what is not there: an address (of RFC 5737), a name server's port, a port where nobody listens."""
    for kind, address in (
        (socket.SOCK_STREAM, ("192.0.2.1", 443)),
        (socket.SOCK_STREAM, ("127.0.0.1", 9)),
        (socket.SOCK_DGRAM, ("127.0.0.1", 53)),
    ):
        with socket.socket(socket.AF_INET, kind) as one, suppress(OSError):
            one.connect(address)
            one.send(b"is anybody there?")


def _run(folder: Path, worker: str, judge: str) -> dict[str, Any]:
    _begin()
    with Service(vendors.script()) as service:
        world = World.simple(folder)
        vendors.line_up(world, service, worker, judge, jail={"mode": "off"})
        with world.start("run", world.spec()) as running:
            _, err = running.communicate()
    tries = _tries()
    _try()
    receipts = world.receipts() if running.returncode == 0 else []
    return {
        "code": running.returncode,
        "err": err.decode(),
        "networks": [name for _, name in socket.if_nameindex()],
        "tries": tries,
        "tried": sorted(_tries()),
        "problems": service.problems,
        "asked": sorted({request.path.partition("?")[0] for request in service.requests}),
        "phases": [receipt["phase"] for receipt in receipts],
        "verdicts": [receipt["verdict"] for receipt in receipts],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_run(Path(sys.argv[1]), *sys.argv[2:])))

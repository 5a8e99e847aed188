"""Runs the command line in processes of their own that need not import anything: forked from one that did it once.

Half of the time of a short command is Python's start and its imports. A test that needs a process started by a shell,
or killed, or with other settings of Python itself, uses `World.start`.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

from relay.cli import VERBS, main

CHECKOUT: Final = Path(__file__).resolve().parent.parent
_server: list[socket.socket] = []


def run(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], stdin: bytes, limit: float
) -> tuple[int, bytes, bytes]:
    """Run one command and return its code (negative: the signal that ended it) and what it said."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        order = json.dumps({"argv": list(argv), "folder": str(folder), "env": dict(env)}).encode()
        server = _connected()
        server.settimeout(limit)
        socket.send_fds(server, [len(order).to_bytes(4, "big")], [given.fileno(), out.fileno(), err.fileno()])
        server.sendall(order)
        code = int.from_bytes(_exactly(server, 4), "big", signed=True)
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def _connected() -> socket.socket:
    """Start the server of this process, once."""
    if not _server:
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve()), str(theirs.fileno())],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(CHECKOUT),
                "LC_ALL": "C.UTF-8",
                "GIT_PYTHON_REFRESH": "quiet",
            },
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        _server.append(ours)
        atexit.register(process.wait)  # which comes last: the socket is closed before, and that ends it
        atexit.register(ours.close)
    return _server[0]


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


# --- the server -------------------------------------------------------------------------------------------------------


def serve(connection: socket.socket) -> None:
    """Fork a child for each order, one after the other, until the client is gone."""
    _import()
    while True:
        size, fds, _, _ = socket.recv_fds(connection, 4, 3)
        if not size:
            return
        order = json.loads(_exactly(connection, int.from_bytes(size, "big")))
        child = os.fork()
        if child == 0:
            _child(connection, order, fds)
        for fd in fds:
            os.close(fd)
        status = os.waitpid(child, 0)[1]
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


def _import() -> None:
    """Import what commands import while they run; nothing of it reads the environment."""
    for name in ("filelock", "git", "jinja2.sandbox", "tomli_w", "relay.runner", "relay.record.freeze"):
        import_module(name)
    for verb in VERBS:
        import_module(f"relay.commands.{verb}")


def _child(connection: socket.socket, order: dict[str, Any], fds: Sequence[int]) -> NoReturn:
    """Become the command, with its folder, its environment and its streams, to the end."""
    code = 1
    try:
        connection.close()
        code = _command(order, fds)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as Python itself would, it says so and exits 1
        traceback.print_exc()
    os._exit(code)


def _command(order: dict[str, Any], fds: Sequence[int]) -> int:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    os.chdir(order["folder"])
    code = main(order["argv"])
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))

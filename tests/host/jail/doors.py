"""An index of packages on this machine's loopback, and the two ways to a door: from a jail, and without one."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from relay.host.jail import network
from tests.world import SAFETY

_BWRAP = ("bwrap", "--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--ro-bind", "/", "/")


class Index(ThreadingHTTPServer):
    """Serves `pages`, echoes what is posted, and keeps what was asked for: each path and Host."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.pages = {"/": b"<p>hello</p>"}
        self.seen: list[tuple[str, str]] = []


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Index

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers["Host"]))
        page = self.server.pages.get(self.path)
        self._say(404 if page is None else 200, page or b"")

    def do_POST(self) -> None:
        self._say(200, self.rfile.read(int(self.headers["Content-Length"])))

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if body.startswith(b"{") else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def index() -> Iterator[Index]:
    """Serve an index until the end."""
    with Index() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def probe() -> str:
    """Return why there can be no jail here; nothing where there can."""
    try:
        ended = subprocess.run([*_BWRAP, "--proc", "/proc", "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "bubblewrap is not installed"
    return ended.stderr if ended.returncode else ""


def jailed(door: network.Door, *argv: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a jail does, with nothing of the network but the door."""
    binds = [word for source, place in door.mounts for word in ("--ro-bind", source, place)]
    own = ("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--bind", str(folder), str(folder))
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), **door.env}
    words = [*_BWRAP, *own, *binds, "--chdir", str(folder), "--", *door.wrap(argv)]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=SAFETY, check=False)


def python(door: network.Door, code: str, folder: Path) -> str:
    """Return what a Python program says in a jail that has the door."""
    ended = jailed(door, sys.executable, "-I", "-c", code, folder=folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def hand_over(door: network.Door, descriptors: Sequence[int]) -> bytes:
    """Do what the first program in a jail does, with these files; return what it is told."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(SAFETY)
        where = os.open(door.mounts[0][0], os.O_PATH)
        try:
            link.connect(f"/proc/self/fd/{where}/socket")
        finally:
            os.close(where)
        socket.send_fds(link, [b"\0"], descriptors)
        try:
            return link.recv(1)
        except ConnectionResetError:
            return b""


@contextmanager
def ports(door: network.Door) -> Iterator[list[socket.socket]]:
    """Open as many ports as the door leads from, out here, and hand them out; the first is the proxy's."""
    words = door.wrap(["true"])
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in words[5 : words.index("--")]]
        assert hand_over(door, [server.fileno() for server in servers]) == b"\0"
        yield servers


def ask(door: network.Door, said: bytes) -> bytes:
    """Say something to a door's proxy, without a jail, and return all that it answers."""
    with ports(door) as servers, socket.create_connection(servers[0].getsockname(), timeout=SAFETY) as link:
        link.sendall(said)
        link.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: link.recv(65536), b""))

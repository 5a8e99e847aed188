"""Sockets of the machine that nobody inside may reach, and that tell when somebody did."""

import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Beacons:
    """One socket of each kind; the last lies in a folder."""

    folder: Path
    tcp: socket.socket = field(init=False)
    udp: socket.socket = field(init=False)
    six: socket.socket = field(init=False)
    abstract: socket.socket = field(init=False)
    path: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.six = socket.create_server(("::1", 0), family=socket.AF_INET6)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.abstract = self._unix(f"\0relay-{secrets.token_hex(8)}")
        self.path = self._unix(str(self.folder / "docker.sock"))
        for each in self.all():
            each.settimeout(0)

    @staticmethod
    def _unix(name: str) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.bind(name)
        made.listen()
        return made

    def all(self) -> tuple[socket.socket, ...]:
        """Return every socket."""
        return (self.tcp, self.six, self.udp, self.abstract, self.path)

    def touched(self) -> list[str]:
        """Return which of them somebody reached since the last look."""
        found = []
        for name in ("tcp", "six", "udp", "abstract", "path"):
            with suppress(BlockingIOError):
                each: socket.socket = getattr(self, name)
                if each.type == socket.SOCK_DGRAM:
                    each.recv(100)
                else:
                    each.accept()[0].close()
                found.append(f"somebody reached {name}")
        return found

"""The way out of a jail: hosts on a list, through a proxy, and single services of this machine; nothing else.

A jail has a network of its own. It hands out the ports on which its programs look for the way (`inside.py`), and
these threads accept there from outside: no process of ours stays inside, and when Relay ends, the way is closed.
Names are looked up out here, once, and the address that was judged is the one that is called (sandbox.md section 10).
"""

import ipaddress
import os
import re
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from relay.host import clock

Address = tuple[str, int]

SOCKETS: Final = 400
"""Open at the same time; a connection has two. Whoever comes then is hung up on."""
HEADER: Final = 32 << 10
SECONDS: Final = {"header": 20.0, "connect": 30.0, "idle": 600.0, "close": 2.0}
"""How long is waited: for a whole request, for a connection, for any byte either way, for threads at the end."""
REMEMBERED: Final = 200
_CHUNK: Final = 64 << 10
_HOST: Final = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|[0-9a-f:.]+)")
_HOP: Final = ("host:", "connection:", "proxy-", "keep-alive:", "upgrade:", "http2-settings:", "te:")
_OPEN: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")

lookup = socket.getaddrinfo
"""How a name becomes addresses."""


class Refused(Exception):  # noqa: N818  an answer, not a fault
    """Why a request goes nowhere, with the status that says so."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Rules(NamedTuple):
    """Who may be called: hosts as `name`, `*.name`, `name:port`, and addresses that a person named, public or not."""

    hosts: tuple[str, ...]
    named: frozenset[Address]

    def addresses(self, host: str, port: int) -> list[Address]:
        """Return where a host is; `Refused` when it is not on the list, or leads to a place that is not public."""
        with suppress(ValueError):
            if (str(ipaddress.ip_address(host)), port) in self.named:
                return [(host, port)]
            raise Refused("403 Forbidden", "is an address, and only names can be on the list")
        if not any(_matches(pattern, host, port) for pattern in self.hosts):
            raise Refused("403 Forbidden", "is not on the list of allowed hosts")
        try:
            found = [(str(entry[4][0]), int(entry[4][1])) for entry in lookup(host, port, type=socket.SOCK_STREAM)]
        except (OSError, UnicodeError) as error:
            raise Refused("502 Bad Gateway", "cannot be found") from error
        for address in found:
            if address not in self.named and not public(address[0]):
                raise Refused("403 Forbidden", f"leads to {address[0]}, which is not a public address")
        return found


def _matches(pattern: str, host: str, port: int) -> bool:
    name, _, own = pattern.partition(":")
    fits = host.endswith(name[1:]) if name.startswith("*.") else host == name
    return fits and port in ({int(own)} if own else {80, 443})


def public(text: str) -> bool:
    """Tell whether an address belongs to the open network, also when an old one is wrapped in a new one."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        bare = ipaddress.IPv4Address(address.packed[12:]) if address in _NAT64 else None
        inner = address.ipv4_mapped or address.sixtofour or bare
        return public(str(inner)) if inner else address in _OPEN and address.is_global
    return address.is_global and not address.is_multicast


class Proxy:
    """Threads that carry bytes for the programs in jails.

    `targets` are what the ports of a jail lead to, in their order: an address, or None for the proxy itself.
    `refused` maps `host:port` to the reason, the first `REMEMBERED` of them.
    """

    def __init__(self, rules: Rules, targets: tuple[Address | None, ...]) -> None:
        self.refused: dict[str, str] = {}
        self._rules, self._targets = rules, targets
        self._changed = threading.Condition()
        self._sockets: set[socket.socket] = set()
        self._closed = False

    def open(self, server: socket.socket) -> None:
        """Serve the jails that come to `server`, a listening unix socket, until `close`."""
        self._start(self._gate, server)

    def close(self) -> None:
        """Hang up on everybody. A thread that still waits for a name finds its connection gone, and ends later."""
        with self._changed:
            self._closed = True
            for one in self._sockets:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._changed.wait_for(lambda: not self._sockets, SECONDS["close"])

    @contextmanager
    def _held(self, one: socket.socket) -> Iterator[socket.socket]:
        """Keep a socket where `close` finds it, and close it at the end."""
        with one:
            with self._changed:
                if self._closed or len(self._sockets) >= SOCKETS:
                    raise ConnectionAbortedError
                self._sockets.add(one)
            try:
                yield one
            finally:
                with self._changed:
                    self._sockets.discard(one)
                    self._changed.notify_all()

    def _start(self, work: Callable[..., None], one: socket.socket, *more: Address | None) -> None:
        """Do some work on a socket in a thread, unless the door is closed or crowded."""
        stack = ExitStack()
        with suppress(OSError):
            stack.enter_context(self._held(one))

            def whole() -> None:
                with stack, suppress(OSError, ValueError):
                    work(one, *more)

            threading.Thread(target=whole, name="relay-door", daemon=True).start()

    def _gate(self, server: socket.socket) -> None:
        while True:
            self._start(self._jail, server.accept()[0])

    def _jail(self, link: socket.socket) -> None:
        """Take over the ports of a jail and accept on them, as long as the command lives that handed them out.

        Anything can be sent by a program inside: what does not listen is closed again, and nothing is served.
        """
        link.settimeout(SECONDS["header"])
        poll, ports = select.poll(), {}
        with ExitStack() as stack:
            _, numbers, _, _ = socket.recv_fds(link, 1, len(self._targets), socket.MSG_CMSG_CLOEXEC)
            for number in numbers:
                stack.callback(os.close, number)
            for number, target in zip(numbers, self._targets, strict=True):
                port = stack.enter_context(self._held(socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM)))
                if not port.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    return
                port.settimeout(0)
                ports[port.fileno()] = port, target
            alive = os.pidfd_open(struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
            stack.callback(os.close, alive)
            link.sendall(b"\0")
            for number in (alive, *ports):
                poll.register(number, select.POLLIN)
            while True:
                for number, event in poll.poll():
                    if number == alive or event != select.POLLIN:
                        return
                    with suppress(OSError):
                        self._start(self._serve, ports[number][0].accept()[0], ports[number][1])

    def _serve(self, near: socket.socket, target: Address | None) -> None:
        """Lead one connection to where it may go, or answer why it may not."""
        if target is not None:
            with suppress(Refused), self._dialled([target]) as far:
                _carry(near, far)
            return
        try:
            host, port, rest, first = _request(near)
            try:
                with self._dialled(self._rules.addresses(host, port)) as far:
                    near.sendall(b"" if first else b"HTTP/1.1 200 Connection established\r\n\r\n")
                    far.sendall(first + rest)
                    _carry(near, far)
            except Refused as refused:
                refused.why = f"`{host}:{port}` {refused.why}"
                if refused.status.startswith("403") and len(self.refused) < REMEMBERED:
                    self.refused.setdefault(f"{host}:{port}", refused.why)
                raise
        except Refused as refused:
            _answer(near, refused)

    @contextmanager
    def _dialled(self, where: Iterable[Address]) -> Iterator[socket.socket]:
        """Yield a connection to the first address that answers; `Refused` when none does."""
        for address in where:
            with self._held(socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)) as far:
                far.settimeout(SECONDS["connect"])
                try:
                    far.connect(address)
                except OSError:
                    continue
                if address not in self._rules.named and far.getsockname()[0] == far.getpeername()[0]:
                    raise Refused("403 Forbidden", f"leads to {address[0]}, which is this machine")
                yield far
                return
        raise Refused("502 Bad Gateway", "does not answer")


def _request(near: socket.socket) -> tuple[str, int, bytes, bytes]:
    """Return the host and port that are asked for, what came behind the header, and the header that the host gets.

    None for a CONNECT. Plain HTTP is one request a connection, so that a second one cannot mean another host.
    """
    data, over = b"", clock.monotonic() + SECONDS["header"]
    while b"\r\n\r\n" not in data:
        if len(data) > HEADER:
            raise Refused("431 Request Header Fields Too Large", f"the header is larger than {HEADER} bytes")
        near.settimeout(max(0.001, over - clock.monotonic()))
        try:
            said = near.recv(4096)
        except TimeoutError as error:
            raise Refused("408 Request Timeout", "the header took too long") from error
        if not said:
            raise ConnectionAbortedError
        data += said
    head, _, rest = data.partition(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    try:
        method, target, _ = line.split(" ")
        connect = method == "CONNECT"
        parts = urlsplit(f"//{target}" if connect else target)
        host, port = (parts.hostname or "").rstrip("."), parts.port or (0 if connect else 80)
    except ValueError as error:
        raise Refused("400 Bad Request", "the request cannot be read") from error
    folded = any(field.startswith((" ", "\t")) for field in fields)
    if not port or folded or not _HOST.fullmatch(host) or not (connect or parts.scheme == "http"):
        raise Refused("400 Bad Request", "the request cannot be read: CONNECT and http:// are served")
    if connect:
        return host, port, rest, b""
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [field for field in fields if not field.lower().startswith(_HOP)]
    named = parts.netloc.rpartition("@")[2]
    first = "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {named}", "Connection: close", *kept, "", ""])
    return host, port, rest, first.encode("latin-1")


def _answer(near: socket.socket, refused: Refused) -> None:
    said = f"relay: {refused.why}\n".encode()
    head = f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(said)}"
    near.settimeout(SECONDS["close"])
    near.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode() + said)
    near.shutdown(socket.SHUT_WR)
    for _ in range(16):  # what was sent and not read would make the kernel take the answer back
        if not near.recv(_CHUNK):
            break


def _carry(near: socket.socket, far: socket.socket) -> None:
    """Carry bytes both ways until both sides have said all, or neither says anything for long."""
    other, speaking = {near: far, far: near}, [near, far]
    for one in other:
        one.settimeout(SECONDS["idle"])
    while speaking and (ready := select.select(speaking, [], [], SECONDS["idle"])[0]):
        for one in ready:
            if said := one.recv(_CHUNK):
                other[one].sendall(said)
            else:
                speaking.remove(one)
                other[one].shutdown(socket.SHUT_WR)

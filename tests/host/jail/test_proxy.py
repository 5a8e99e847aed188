"""The proxy: who may be called is decided by name and by address, within bounds, and every refusal is said."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from relay.host.jail import network, proxy
from tests.host.jail import doors
from tests.world import SAFETY


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Return the names that exist, to be filled: nothing is asked of a real resolver."""
    known: dict[str, list[str]] = {}

    def lookup(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in known[host]]

    monkeypatch.setattr(proxy, "lookup", lookup)
    return known


@pytest.fixture
def index() -> Iterator[doors.Index]:
    with doors.index() as server:
        yield server


@pytest.mark.parametrize(
    ("host", "port", "fine"),
    [
        ("packages.example", 443, True),
        ("packages.example", 80, True),
        ("packages.example", 22, False),
        ("a.packages.example", 443, False),
        ("notpackages.example", 443, False),
        ("files.example", 443, False),
        ("a.files.example", 443, True),
        ("a.b.files.example", 443, True),
        ("afiles.example", 443, False),
        ("mirror.example", 8443, True),
        ("mirror.example", 443, False),
    ],
)
def test_a_host_is_called_only_as_the_list_has_it(
    host: str, port: int, *, fine: bool, names: dict[str, list[str]]
) -> None:
    names[host] = ["1.1.1.1"]
    rules = proxy.Rules(("packages.example", "*.files.example", "mirror.example:8443"), frozenset())
    if fine:
        assert rules.addresses(host, port) == [("1.1.1.1", port)]
    else:
        with pytest.raises(proxy.Refused, match="not on the list"):
            rules.addresses(host, port)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),  # noqa: S104
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "fec0::1", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::a9fe:a9fe", "::127.0.0.1"),
    ],
)
def test_an_address_that_is_not_public_is_refused_by_number_and_behind_a_name(
    address: str, names: dict[str, list[str]]
) -> None:
    names["packages.example"] = ["1.1.1.1", address]
    rules = proxy.Rules(("packages.example",), frozenset({("127.0.0.1", 5432)}))
    with pytest.raises(proxy.Refused, match="is an address"):
        rules.addresses(address, 443)
    with pytest.raises(proxy.Refused, match="not a public address"):
        rules.addresses("packages.example", 443)


def test_public_addresses_are_public() -> None:
    assert all(proxy.public(address) for address in ("1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"))


def test_an_address_that_a_person_named_is_called_on_that_port_alone(names: dict[str, list[str]]) -> None:
    names["db.example"] = ["127.0.0.1"]
    rules = proxy.Rules(("db.example:5432", "db.example:5433"), frozenset({("127.0.0.1", 5432)}))
    assert rules.addresses("127.0.0.1", 5432) == rules.addresses("db.example", 5432) == [("127.0.0.1", 5432)]
    for host in ("127.0.0.1", "db.example"):
        with pytest.raises(proxy.Refused):
            rules.addresses(host, 5433)


def test_a_name_is_looked_up_once_and_that_address_is_called(
    tmp_path: Path, index: doors.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(proxy, "lookup", rebinding)
    host = f"packages.example:{index.server_port}"
    with network.door("allow", (host,), (f"127.0.0.1:{index.server_port}",), tmp_path) as door:
        assert b"hello" in doors.ask(door, f"GET http://{host}/ HTTP/1.1\r\n\r\n".encode())
        assert b"403 Forbidden" in doors.ask(door, f"GET http://{host}/ HTTP/1.1\r\n\r\n".encode())
    assert asked == ["packages.example", "packages.example"]
    assert door.refused == (f"`{host}` leads to 127.0.0.2, which is not a public address",)


def test_what_is_said_arrives_and_comes_back_whole(
    tmp_path: Path, index: doors.Index, names: dict[str, list[str]]
) -> None:
    names["packages.example"] = ["127.0.0.1"]
    host, body = f"packages.example:{index.server_port}", os.urandom(1 << 20)
    with network.door("allow", (host,), (f"127.0.0.1:{index.server_port}",), tmp_path) as door:
        got = doors.ask(door, f"GET http://u:p@{host}/?q HTTP/1.1\r\nHost: evil.example\r\nTE: x\r\n\r\n".encode())
        head = f"POST http://{host}/echo HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        echoed = doors.ask(door, head + body)
        tunnel = doors.ask(door, f"CONNECT {host} HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n".encode())
    assert got.startswith(b"HTTP/1.1 404")
    assert index.seen == [("/?q", host), ("/", None)]
    assert echoed.endswith(body)
    assert tunnel.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200")
    assert tunnel.endswith(b"<p>hello</p>")
    assert door.refused == ()


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("CONNECT evil.example:443 HTTP/1.1\r\n\r\n", "403 Forbidden"),
        ("CONNECT EVIL.example.:443 HTTP/1.1\r\n\r\n", "403 Forbidden"),
        ("CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n", "403 Forbidden"),
        ("CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", "403 Forbidden"),
        ("CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "403 Forbidden"),
        ("CONNECT packages.example@evil.example:443 HTTP/1.1\r\n\r\n", "403 Forbidden"),
        ("POST http://evil.example/ HTTP/1.1\r\nContent-Length: 300000\r\n\r\n" + "x" * 300000, "403 Forbidden"),
        ("CONNECT gone.example:443 HTTP/1.1\r\n\r\n", "502 Bad Gateway"),
        ("CONNECT packages.example HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: packages.example\r\n\r\n", "400 Bad Request"),
        ("GET ftp://packages.example/ HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("GET http://packages.example:x/ HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("GET http://packages.example/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "400 Bad Request"),
        ("\x16\x03\x01\x02\r\n\r\n", "400 Bad Request"),
        ("GET http://packages.example/ HTTP/1.1\r\nA: " + "x" * 2 * proxy.HEADER + "\r\n\r\n", "431 "),
    ],
)
def test_what_may_not_be_is_answered_with_the_reason(
    said: str, answer: str, tmp_path: Path, names: dict[str, list[str]]
) -> None:
    names["evil.example"] = ["1.1.1.1"]
    with network.door("allow", ("packages.example", "gone.example"), (), tmp_path) as door:
        got = doors.ask(door, said.encode("latin-1")).decode()
    assert got.startswith(f"HTTP/1.1 {answer}")
    assert "\r\n\r\nrelay: " in got
    assert len(door.refused) == (answer == "403 Forbidden")
    assert all(refused in got for refused in door.refused)


def test_who_takes_too_long_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(proxy.SECONDS, "header", 0.1)
    with (
        network.door("allow", ("packages.example",), (), tmp_path) as door,
        doors.ports(door) as servers,
        socket.create_connection(servers[0].getsockname(), timeout=SAFETY) as link,
    ):
        link.sendall(b"GET ")
        assert link.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_a_crowd_is_hung_up_on_and_the_door_still_opens_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "SOCKETS", 6)  # the door, the jail with its port, and three callers
    with network.door("allow", ("packages.example",), (), tmp_path) as door, doors.ports(door) as servers:
        where = servers[0].getsockname()
        crowd = [socket.create_connection(where, timeout=SAFETY) for _ in range(3)]
        for link in crowd:
            link.sendall(b"GET ")
        with socket.create_connection(where, timeout=SAFETY) as late:
            assert late.recv(1) == b""
        for link in crowd:
            link.sendall(b"/ HTTP/1.1\r\n\r\n")
            assert link.recv(1000).startswith(b"HTTP/1.1 400")
            link.close()
        answers = iter(lambda: _first_line(where), b"")
        assert next(answers).startswith(b"HTTP/1.1 400")


def _first_line(where: tuple[str, int]) -> bytes:
    """Return what a new caller is told; again, as long as it is hung up on."""
    for _ in range(10_000):
        with suppress(ConnectionError), socket.create_connection(where, timeout=SAFETY) as link:
            link.sendall(b"x\r\n\r\n")
            if said := link.recv(1000):
                return said
    return b""


def test_whatever_else_is_handed_out_is_not_served(tmp_path: Path) -> None:
    with (
        network.door("allow", ("packages.example",), (), tmp_path) as door,
        Path(os.devnull).open("rb") as nothing,
        socket.socket() as idle,
        socket.create_server(("127.0.0.1", 0)) as sound,
    ):
        assert doors.hand_over(door, [nothing.fileno()]) == b""
        assert doors.hand_over(door, [idle.fileno()]) == b""
        assert doors.hand_over(door, []) == b""
        assert doors.hand_over(door, [sound.fileno()]) == b"\0"


def test_closing_hangs_up_and_leaves_no_thread_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> list[tuple[object, ...]]:
        asked.set()
        assert answer.wait(SAFETY)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("1.1.1.1", 443))]

    monkeypatch.setattr(proxy, "lookup", slow)
    monkeypatch.setitem(proxy.SECONDS, "close", 0.1)
    with network.door("allow", ("packages.example",), (), tmp_path) as door, doors.ports(door) as servers:
        waiting = socket.create_connection(servers[0].getsockname(), timeout=SAFETY)
        silent = socket.create_connection(servers[0].getsockname(), timeout=SAFETY)
        waiting.sendall(b"CONNECT packages.example:443 HTTP/1.1\r\n\r\n")
        assert asked.wait(SAFETY)
    with suppress(ConnectionResetError):
        assert silent.recv(1) == b""
    answer.set()
    for thread in threading.enumerate():
        if thread.name == "relay-door":
            thread.join(SAFETY)
            assert not thread.is_alive()
    with suppress(ConnectionResetError):
        assert waiting.recv(1) == b""
    assert list(tmp_path.iterdir()) == []
    waiting.close()
    silent.close()

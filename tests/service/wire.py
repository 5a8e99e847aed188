"""HTTP/1.1 as far as a test server needs it: small, quick, and able to break off wherever a script says so."""

import contextlib
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Any, Final

JSON: Final = "application/json"
_ENDING: Final = b"0\r\n\r\n"


class Gone(Exception):  # noqa: N818 - it is what happened
    """The other side closed the connection, or the script closes it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One request as it came: names of headers in small letters, as given otherwise."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def route(self) -> str:
        """Return the path without its query."""
        return self.path.partition("?")[0].rstrip("/")


class Connection:
    """One connection, which carries one request after another."""

    def __init__(self, raw: socket.socket) -> None:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = raw
        self._file: IO[bytes] = raw.makefile("rb")

    def read(self) -> Message:
        """Read the next request."""
        try:
            method, path, _ = self._line().split(" ", 2)
            headers: dict[str, str] = {}
            while line := self._line():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            if headers.get("expect", "").lower() == "100-continue":
                self._socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            return Message(method, path, headers, self._body(headers))
        except (OSError, ValueError) as error:
            raise Gone from error

    def _line(self) -> str:
        line = self._file.readline(65536)
        if not line.endswith(b"\n"):
            raise Gone
        return line.decode("latin-1").rstrip("\r\n")

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            parts = []
            while size := int(self._line().partition(";")[0], 16):
                parts.append(self._exactly(size))
                self._line()
            while self._line():
                pass
            return b"".join(parts)
        return self._exactly(int(headers.get("content-length", 0)))

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise Gone
        return data

    def document(self, status: int, value: Any, headers: Mapping[str, str], *, head: bool = False) -> None:  # noqa: ANN401 - JSON
        """Answer with one JSON document; a string is sent as it is."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        data = text.encode(errors="surrogatepass")
        more = {"content-type": JSON, "content-length": str(len(data))} | dict(headers)
        self.send(_head(status, more) + (b"" if head else data))

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Gone from error

    def close(self) -> None:
        """End the connection; whoever reads or writes it is woken up."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Give back what the connection holds."""
        self.close()
        self._file.close()
        self._socket.close()


def stream_head(headers: Mapping[str, str]) -> bytes:
    """Return what comes before the events of a stream."""
    fixed = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    return _head(200, fixed | {"transfer-encoding": "chunked"} | dict(headers))


def event(name: str | None, data: str) -> bytes:
    """Return one event of a stream as a chunk."""
    text = (f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n").encode(errors="surrogatepass")
    return b"%x\r\n%b\r\n" % (len(text), text)


def stream_end() -> bytes:
    """Return what says that a stream is complete."""
    return _ENDING


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Overloaded"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

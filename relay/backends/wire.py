"""A vendor's SDK as far as Relay uses it: a request goes out, the events of its answer come in, or it is broken off.

Both SDKs are made in one way. Their own reading of a stream keeps comments, pings and the end of it to itself and
trusts every shape, so the events are read here.
"""

import ipaddress
import json
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from types import ModuleType, TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import msgspec

from relay.backends.talk import Fault

CONNECT: Final = 20.0
"""Seconds to a connection: more is no service that is there."""
MOST: Final = 256 << 20
"""Bytes of the longest answer."""
DONE: Final = object()
"""What comes out where the service says that its stream is complete; nothing comes after it."""


class Wire:
    """One client, for `with`: it looks for no key and no address of its own, asks nothing twice, goes nowhere else.

    A redirect is not followed: the conversation goes where relay.toml says, or nowhere.
    """

    def __init__(self, sdk: ModuleType, key: str, url: str) -> None:
        self._sdk: Any = sdk
        self._stream: Any = None
        hooks = {"request": [self._listen], "response": [_read_error]}
        http = self._sdk.DefaultHttpxClient(follow_redirects=False, event_hooks=hooks)
        self._client: Any = self._sdk.Client(api_key=key, base_url=url, max_retries=0, http_client=http)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def events(
        self, path: str, request: Mapping[str, Any], seconds: float, fault: Callable[[Exception], Fault]
    ) -> Generator[Any]:
        """Send a request and yield the JSON of each event, and `DONE`; the connection is given back, or closed.

        `seconds` is how long nothing at all may come. Whatever goes wrong is raised as what `fault` makes of it.
        """
        options = {"timeout": self._sdk.Timeout(seconds, connect=min(seconds, CONNECT))}
        # As bytes, since the SDK takes a copy of each part of a conversation, which takes longer with each turn.
        body = msgspec.json.encode(request)
        kind = self._sdk.Stream[object]
        try:
            stream = self._client.post(
                path, content=body, cast_to=object, options=options, stream=True, stream_cls=kind
            )
        except self._sdk.APIError as error:
            raise fault(error) from None
        with stream:
            events = data(stream.response.iter_bytes())
            while True:
                try:
                    text = next(events)
                    event = DONE if text.startswith("[DONE]") else json.loads(text)
                except StopIteration:
                    return
                except Exception as error:  # noqa: BLE001 - whatever carries the bytes raises, or half an event of JSON
                    raise fault(error) from None
                yield event
                if event is DONE:
                    return

    def hang_up(self) -> None:
        """Break the connection off, from another thread: who waits for its bytes is told that it ended."""
        with suppress(OSError):
            if self._stream is not None:
                # Not the socket's own method: with TLS that takes the socket from under who reads it.
                socket.socket.shutdown(self._stream.get_extra_info("socket"), socket.SHUT_RDWR)

    def _listen(self, request: Any) -> None:  # noqa: ANN401 - of the library below the SDK
        request.extensions = {**request.extensions, "trace": self._heard}

    def _heard(self, event: str, said: Mapping[str, Any]) -> None:
        """Note a new connection, and what TLS makes of it."""
        made = said.get("return_value")
        if event.endswith(".complete") and hasattr(made, "get_extra_info"):
            self._stream = made


def _read_error(response: Any) -> None:  # noqa: ANN401 - as above
    """Read the body of an error here, where the SDK names what goes wrong with that; later it would not."""
    if not response.is_success:
        response.read()


def data(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    Bytes that are no UTF-8 become U+FFFD. The end of a stream ends its last event. `ValueError` past `MOST` bytes.
    """
    parts: list[bytes] = []
    found: list[bytes] = []
    size = 0
    for piece in chain(pieces, [b"\n\n"]):
        size += len(piece)
        if size > MOST:
            raise ValueError(f"an answer of more than {MOST} bytes")
        parts.append(piece)
        if b"\n" not in piece:
            continue
        lines = b"".join(parts).splitlines(keepends=True)
        parts = [] if lines[-1].endswith(b"\n") else [lines.pop()]  # a `\r` may be half an end of a line
        for line in lines:
            words = line.rstrip(b"\r\n")
            if words.startswith(b"data:"):
                found.append(words[5:].removeprefix(b" "))
            elif not words:
                text, found = b"\n".join(found), []
                if text.strip():
                    yield text.decode(errors="replace")


def near(url: str) -> bool:
    """Tell whether an address is plain http to this machine or a private network: a vendor's key does not go there."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    if parts.scheme != "http":
        return False
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return "." not in name or name.endswith((".localhost", ".local", ".internal", ".lan"))
    return address.is_loopback or address.is_private or address.is_link_local

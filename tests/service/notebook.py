"""What the service notes down about those who ask it."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from tests.service.conversation import Json
from tests.service.wire import Message


@dataclass(frozen=True, slots=True)
class Request:
    """One request for an answer, noted down before anything is sent back."""

    path: str
    headers: Mapping[str, str]
    """Names in small letters; values as given, keys too."""
    body: Json
    size: int
    """Bytes of the body."""
    at: float
    """Seconds on the clock that only goes forward."""
    status: int = HTTPStatus.OK
    """The status of the answer; 0 where the connection ends without one."""
    fault: str | None = None
    """The kind of fault that is played."""
    pattern: str = ""
    """The entry of the script that fits."""
    turn: int = 0
    """Its place in the conversation: 0 is the first answer."""

    @property
    def accepted(self) -> bool:
        """Tell whether the service begins to answer it."""
        return self.status == HTTPStatus.OK


class Notebook:
    """The requests so far; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._others: list[Message] = []
        self._problems: list[str] = []

    def add(self, noted: Request | Message | str) -> None:
        """Note down a request for an answer, another request, or a problem."""
        with self._lock:
            if isinstance(noted, Request):
                self._requests.append(noted)
            elif isinstance(noted, Message):
                self._others.append(noted)
            else:
                self._problems.append(noted)

    @property
    def requests(self) -> list[Request]:
        """Return the requests for answers."""
        with self._lock:
            return list(self._requests)

    @property
    def others(self) -> list[Message]:
        """Return the other requests."""
        with self._lock:
            return list(self._others)

    @property
    def problems(self) -> list[str]:
        """Return what went wrong that no script asked for."""
        with self._lock:
            return list(self._problems)

"""The service itself: it listens on a port of this machine, with a thread for each connection."""

import socket
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Literal, Self

from tests.service.conversation import Player
from tests.service.desk import Desk
from tests.service.notebook import Notebook, Request
from tests.service.script import Script
from tests.service.wire import Connection, Gone, Message

MODELS: Final = ("claude-opus-5-5", "claude-sonnet-5-5", "gpt-6-sol", "qwen3-coder")


class Service:
    """Plays a script on 127.0.0.1: `with Service({"phase `review`": [do.run("ls"), say("Done.")]}) as service:`.

    The script maps patterns to sequences. The pattern that is found in the newest text of the user counts, else in an
    older one, else in the system's text; the empty pattern is for everything else. The turn is the number of answers
    that the request holds after that text, so a client that tries again gets the same; the last turn repeats.
    `by="hits"` counts on the server instead, for all entries; `Hits([...])` does so for one.
    """

    def __init__(
        self, script: Script, *, by: Literal["turns", "hits"] = "turns", models: Iterable[str] = MODELS
    ) -> None:
        self._notebook = Notebook()
        self._closing = threading.Event()
        self._desk = Desk(Player(script, by), tuple(models), self._notebook, self._closing)
        self._lock = threading.Lock()
        self._connections: dict[Connection, threading.Thread] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listening = threading.Thread(target=self._listen, daemon=True, name="service")
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        """Where it is, without `/v1`."""

    @property
    def requests(self) -> list[Request]:
        """Return the requests for answers so far."""
        return self._notebook.requests

    @property
    def others(self) -> list[Message]:
        """Return the other requests so far: for models, for counts of tokens, to see whether somebody is there."""
        return self._notebook.others

    @property
    def problems(self) -> list[str]:
        """Return what no script foresaw and no service would take; a good test ends with none."""
        return self._notebook.problems

    def __enter__(self) -> Self:
        self._listening.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`, in forked children too
        self._listening.join()
        self._listener.close()
        with self._lock:
            left = dict(self._connections)
        for connection, thread in left.items():
            connection.close()
            thread.join()

    def _listen(self) -> None:
        while True:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            connection = Connection(raw)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True, name="service")
            with self._lock:
                self._connections[connection] = thread
            thread.start()

    def _serve(self, connection: Connection) -> None:
        try:
            while not self._closing.is_set():
                self._desk.serve(connection, connection.read())
        except Gone:
            pass
        finally:
            with self._lock:
                del self._connections[connection]
            connection.release()

"""The server: pull requests of one repository, by GitHub's REST API as far as Relay uses it, and its ways to fail."""

import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, unquote, urlsplit

from tests.forge.away import Away

TOKEN: Final = "ghp_" + "a1B2c3D4e5" * 4
PATH: Final = "/repos/acme/shop"
GONE: Final = 0
"""The status of an answer that never comes: the connection ends."""


@dataclass
class Pull:
    """One pull request; `tip` is the commit that was merged, whatever becomes of its branch then."""

    number: int
    title: str
    body: str
    head: str
    base: str
    draft: bool
    state: str = "open"
    merged_as: str | None = None
    auto: str | None = None
    tip: str | None = None
    owner: str = "acme"


@dataclass
class Fault:
    """How a request fails: its status, how often, and whether it is done all the same."""

    status: int
    times: int
    done: bool
    slow: float


class Hub:
    """Plays `api.github.com` for the repository `acme/shop`, which lies in a bare repository on the disk."""

    def __init__(self, away: Away) -> None:
        self.away = away
        self.forks: dict[str, Away] = {}
        """Repositories of others, by their owners, whose branches are proposed here too."""
        self.pulls: list[Pull] = []
        self.asked: list[str] = []
        self.tokens: set[str] = set()
        self.token = TOKEN
        self.auto_allowed = True
        self.trickle = 0.0
        """Seconds over which each answer comes, a byte now and then."""
        self.repeats = ""
        """What an unkind forge puts into its messages and addresses."""
        self.meanwhile: dict[str, Callable[[], object]] = {}
        """What happens just before a request such as `PATCH /pulls/N` is answered, once."""
        self._faults: dict[str, Fault] = {}
        self._lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fails(self, what: str, status: int, *, times: int = 99, done: bool = False, slow: float = 0) -> None:
        """Let requests such as `POST /pulls` fail from now on; with `done` they are done, and nobody is told."""
        self._faults[what] = Fault(status, times, done, slow)

    def mended(self) -> None:
        """Let nothing fail any more."""
        self._faults.clear()

    def merge(self, number: int = 1, *, squash: bool = True) -> str:
        """Merge a pull request as somebody does on the page of it; return the commit."""
        pull = self.pulls[number - 1]
        git, home = self.away.git, self._home(pull)
        head = home.tip(pull.head)
        if home is not self.away:
            git("fetch", "-q", str(home.folder), head)
        who = ("-c", "user.name=Hub", "-c", "user.email=hub@example.org")
        parents = ["-p", self.away.tip(pull.base), *([] if squash else ["-p", head])]
        tree = git("merge-tree", "--write-tree", self.away.tip(pull.base), head)
        made = git(*who, "commit-tree", tree, *parents, "-m", f"{pull.title} (#{pull.number})")
        git("update-ref", f"refs/heads/{pull.base}", made)
        pull.state, pull.merged_as, pull.tip = "closed", made, head
        return made

    def close(self, number: int = 1) -> None:
        """Close a pull request without merging it, as somebody does on the page of it."""
        self.pulls[number - 1].state, self.pulls[number - 1].auto = "closed", None

    def answer(self, method: str, target: str, body: dict[str, Any], token: str) -> tuple[int, Any]:
        """Answer one request: a status and what is JSON."""
        parts = urlsplit(target)
        path = parts.path.removeprefix("/api/v3").removeprefix(PATH)
        with self._lock:
            self.asked.append(f"{method} {path}")
            self.tokens.add(token)
            kind = f"{method} {re.sub(r'[0-9]+$', 'N', path)}"
            self.meanwhile.pop(kind, lambda: None)()
            fault = self._faults.get(kind) or self._faults.get("*")
            if fault and fault.times > 0:
                fault.times -= 1
                time.sleep(fault.slow)
                if fault.done or fault.status == 200:
                    done = self._done(method, path, parse_qs(parts.query), body)
                    return done if fault.status == 200 else (fault.status, {"message": "Server Error"})
                return fault.status, {"message": _WORDS.get(fault.status, "Server Error") + self.repeats}
            if token not in {self.token, "none"}:
                return 401, {"message": "Bad credentials"}
            return self._done(method, path, parse_qs(parts.query), body)

    def _done(self, method: str, path: str, query: dict[str, list[str]], body: dict[str, Any]) -> tuple[int, Any]:
        numbered = re.fullmatch(r"/pulls/([0-9]+)", path)
        if method == "GET" and path == "/pulls":
            owner, _, branch = unquote(query["head"][0]).partition(":")
            found = [pull for pull in self.pulls if (pull.owner, pull.head) == (owner, branch)]
            return 200, [self._shown(pull) for pull in reversed(found)]
        if method == "POST" and path == "/pulls":
            return self._opened(body)
        if numbered and int(numbered[1]) <= len(self.pulls):
            pull = self.pulls[int(numbered[1]) - 1]
            if method == "PATCH":
                pull.title, pull.body = body.get("title", pull.title), body.get("body", pull.body)
                pull.state = body.get("state", pull.state)
            return 200, self._shown(pull) | {"merged": pull.merged_as is not None}
        if path == "/graphql":
            pull = self.pulls[int(body["variables"]["id"].removeprefix("PR_")) - 1]
            if not self.auto_allowed:
                return 200, {"data": None, "errors": [{"message": "Auto merge is not allowed for this repository"}]}
            pull.auto = body["variables"].get("how")
            return 200, {"data": {}}
        return 404, {"message": "Not Found"}

    def _opened(self, body: dict[str, Any]) -> tuple[int, Any]:
        branches = self.away.branches()
        owner, _, name = body["head"].rpartition(":")
        owner = owner or "acme"
        heads = self.forks.get(owner, self.away).branches()
        same = [one for one in self.pulls if (one.owner, one.head, one.base) == (owner, name, body["base"])]
        if any(pull.state == "open" for pull in same):
            return 422, _invalid(f"A pull request already exists for {owner}:{name}.")
        if name not in heads or owner not in {"acme", *self.forks} or body["base"] not in branches:
            return 422, _invalid("head or base is invalid")
        pull = Pull(len(self.pulls) + 1, body["title"], body["body"], name, body["base"], body["draft"])
        pull.owner = owner
        self.pulls.append(pull)
        return 201, self._shown(pull)

    def _home(self, pull: Pull) -> Away:
        return self.forks.get(pull.owner, self.away)

    def _shown(self, pull: Pull) -> dict[str, Any]:
        return {
            "number": pull.number,
            "node_id": f"PR_{pull.number}",
            "html_url": f"https://hub.example.org/acme/shop/pull/{pull.number}{self.repeats}",
            "state": pull.state,
            "merged_at": "2026-11-30T02:00:00Z" if pull.merged_as else None,
            "merge_commit_sha": pull.merged_as or "f" * 40,
            "head": {"ref": pull.head, "sha": pull.tip or self._home(pull).branches().get(pull.head, "0" * 40)},
            "base": {"ref": pull.base},
            "auto_merge": {"merge_method": pull.auto.lower()} if pull.auto else None,
        }


_WORDS: Final = {401: "Bad credentials", 403: "Resource not accessible by personal access token", 404: "Not Found"}


def _invalid(message: str) -> dict[str, Any]:
    error = {"resource": "PullRequest", "code": "custom", "message": message}
    return {"message": "Validation Failed", "errors": [error]}


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            data = b""
            while size := int(self.rfile.readline(), 16):  # as gh sends it
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data

        def _serve(self) -> None:
            body = json.loads(self._body() or b"{}")
            token = (self.headers.get("Authorization") or "none").rpartition(" ")[2]
            status, said = hub.answer(self.command, self.path, body, token)
            self.close_connection = True
            if status == GONE:
                return
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            self.end_headers()
            with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked did not wait so long
                for byte in data if hub.trickle else ():
                    self.wfile.write(bytes([byte]))
                    time.sleep(hub.trickle / len(data))
                self.wfile.write(b"" if hub.trickle else data)

        do_GET = do_POST = do_PATCH = do_PUT = _serve  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler

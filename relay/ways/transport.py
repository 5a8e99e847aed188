"""How a forge is asked: by its own program, which has the person's login, or over HTTP with a token.

A token goes to the address it is for and nowhere else: no redirect is followed. Nothing waits for a person.
"""

import json
import os
import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from relay import __version__
from relay.host import proc, redact
from relay.terms import Limits, Struct
from relay.ways import patience, said
from relay.ways.base import UnknownError

SECONDS: Final = 30.0
"""How long one question may take, all in all."""
LIMIT: Final = 8 << 20
"""Bytes of the longest answer that is read."""

_STATUS: Final = re.compile(r"^HTTP/[\d.]+ (\d{3})", re.MULTILINE)
_QUIET: Final = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GLAB_CHECK_UPDATE": "false",
    "NO_PROMPT": "1",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GH_PAGER": "cat",
}


class Answer(Struct, frozen=True, kw_only=True):
    """What came back: the status, the text, and the text as JSON where it is that."""

    status: int
    text: str
    json: Any = None


def token(names: Iterable[str]) -> str | None:
    """Return the first of these variables that is set; what it holds is shown and kept nowhere from then on."""
    found = next(((name, value) for name in names if (value := os.environ.get(name, "").strip())), None)
    redact.learn(dict([found] if found else []))
    return found[1] if found else None


def http(address: str, token_: str, method: str, body: Mapping[str, Any] | None) -> Answer:
    """Ask over HTTP; `UnknownError` where no answer came, so that nobody can say what it did.

    One limit holds from looking the name up to the last byte: a limit of a socket's own would start anew with each byte
    that trickles in. Whoever is too slow is left to a thread that nobody waits for.
    """
    seconds = patience.left(SECONDS)
    came: SimpleQueue[Answer | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            came.put(_asked(address, token_, method, body, seconds))
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            came.put(error)

    threading.Thread(target=ask, name="asking a forge", daemon=True).start()
    try:
        answer = came.get(timeout=seconds)
    except Empty:
        raise _silent(address, f"it took longer than {seconds:.3g} seconds") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _asked(address: str, token_: str, method: str, body: Mapping[str, Any] | None, seconds: float) -> Answer:
    import urllib.error  # 20 ms that nobody needs who opens no proposal
    import urllib.request
    from http.client import HTTPException

    class _Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object, **__: object) -> None:
            """Follow nothing."""

    headers = {
        "Authorization": f"Bearer {token_}",
        "Accept": "application/vnd.github+json",
        "Content-Type": "application/json",
        "User-Agent": f"relay/{__version__}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data=data, headers=headers, method=method)  # noqa: S310 - checked before
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=seconds) as response:
            return _answer(response.status, response.read(LIMIT))
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.read(LIMIT))
    except (OSError, ValueError, HTTPException) as error:
        raise _silent(address, getattr(error, "reason", error)) from None


def _silent(address: str, why: object) -> UnknownError:
    return UnknownError(f"no answer from `{said.address(address.partition('?')[0])}`: {said.line(why)}")


def program(name: str, host: str, method: str, path: str, body: Mapping[str, Any] | None) -> Answer:
    """Ask by `gh api` or `glab api`, which speak alike."""
    words = [name, "api", "--include", "--method", method, "--hostname", host]
    words += ["--input", "-", "--header", "Content-Type: application/json"] if body is not None else []
    given = b"" if body is None else json.dumps(body).encode()
    limits = Limits(seconds=patience.left(SECONDS), keep=LIMIT)
    ended = proc.run([*words, path.lstrip("/")], cwd=os.sep, env=proc.clean_env(_QUIET), stdin=given, limits=limits)
    found = list(_STATUS.finditer(ended.text))
    if not found:
        late = f"it took longer than {limits.seconds:.3g} seconds" if ended.ended == "timeout" else ""
        why = late or said.line(ended.text) or f"it exited {ended.code}"
        raise UnknownError(f"`{Path(name).name}` gave no answer: {why}")
    head, _, rest = ended.text[found[-1].start() :].replace("\r\n", "\n").partition("\n\n")
    return _answer(int(_STATUS.findall(head)[0]), rest.encode())


def _answer(status: int, data: bytes) -> Answer:
    """Read an answer; what a program says behind the JSON is left out."""
    text = data.decode("utf-8", "replace")
    try:
        found = json.JSONDecoder().raw_decode(text.lstrip())[0] if text.strip() else {}
    except ValueError:
        found = None
    return Answer(status=status, text=text, json=found)

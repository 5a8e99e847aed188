"""How a forge is asked: by its own program, which has the person's login, or over HTTP with a token.

A token goes to the address it is for and nowhere else: no redirect is followed. Nothing waits for a person.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from relay import __version__
from relay.host import proc, redact
from relay.terms import Limits, Struct
from relay.ways.base import UnknownError

SECONDS: Final = 30.0
"""How long one question may take."""
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
    """Return the first of these variables that is set."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), None)


def http(address: str, token_: str, method: str, body: Mapping[str, Any] | None) -> Answer:
    """Ask over HTTP; `UnknownError` where no answer came, so that nobody can say what it did."""
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
        with urllib.request.build_opener(_Stay).open(request, timeout=SECONDS) as response:
            return _answer(response.status, response.read(LIMIT))
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.read(LIMIT))
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise UnknownError(f"no answer from `{address.partition('?')[0]}`: {redact.own().text(str(reason))}") from None


def program(name: str, host: str, method: str, path: str, body: Mapping[str, Any] | None) -> Answer:
    """Ask by `gh api` or `glab api`, which speak alike."""
    words = [name, "api", "--include", "--method", method, "--hostname", host]
    words += ["--input", "-", "--header", "Content-Type: application/json"] if body is not None else []
    given = b"" if body is None else json.dumps(body).encode()
    limits = Limits(seconds=SECONDS, keep=LIMIT)
    ended = proc.run([*words, path.lstrip("/")], cwd=os.sep, env=proc.clean_env(_QUIET), stdin=given, limits=limits)
    found = list(_STATUS.finditer(ended.text))
    if not found:
        said = redact.own().text(" ".join(ended.text.split()))[:300]
        raise UnknownError(f"`{Path(name).name}` gave no answer: {said or f'it exited {ended.code}'}")
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

"""Who pays for a leg of Codex, and how the person's login is lent to it: never more of it than the leg needs.

Codex renews a login beside the real file, through a link (measured: it writes a new file there and renames it). So in
the open a leg's folder has a link to the person's. In a jail nothing of theirs is shown: a copy goes in without what
renews it, and a login that would run out during the leg is renewed before, in the open, by Codex itself.
"""

import base64
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

import msgspec

from relay.errors import Exit, RelayError
from relay.host import clock, files
from relay.terms import Agent, Struct

KEYS: Final = ("CODEX_API_KEY", "OPENAI_API_KEY")
FILE: Final = "auth.json"
MARGIN: Final = 900.0
"""Seconds that a login must outlive its leg; Codex renews some minutes before the end."""
_LIMIT: Final = 1 << 20
_SERVICES: Final = {"api": "api.openai.com", "subscription": "chatgpt.com"}
_PROVIDER: Final = "relay"

Json = dict[str, Any]


class Payer(Struct, frozen=True, kw_only=True):
    """Who pays, by which variables, and what Codex must be told of the service; `lent`: the login goes along."""

    billing: Literal["api", "subscription"]
    env: dict[str, str] = {}
    settings: dict[str, Any] = {}
    hosts: tuple[str, ...] = ()
    lent: bool = False


def payer(agent: Agent) -> Payer:
    """Return who pays for an agent: what `billing` says, else a login before a key. Nobody: `RelayError` (exit 4).

    A key is meant wherever `key` or `base_url` is given: a login is sent to nobody but its own vendor, unless
    `billing` says so. A service of one's own may need no key at all.
    """
    login, (name, key) = _read(folder()), _key(agent)
    tokens = bool(_tokens(login).get("access_token"))
    billing = agent.billing or ("api" if agent.key or agent.base_url or not tokens else "subscription")
    if agent.key and not key and billing == "api":
        raise _nobody(agent, f"has no key in `{agent.key}`", f"put a key into `{agent.key}`")
    if billing == "subscription" and not tokens:
        raise _nobody(agent, "is to be paid by a subscription, and nobody is logged in", "run: codex login")
    if agent.base_url:
        return _elsewhere(agent.base_url, name, key, billing)
    hosts = (_SERVICES[billing],)
    if billing == "subscription":
        return Payer(billing=billing, hosts=hosts, lent=True)
    key = key or str(login.get("OPENAI_API_KEY") or "")  # what `codex login --with-api-key` leaves
    if not key:
        hint = f"run: codex login\nor put a key into `{KEYS[0]}`"
        raise _nobody(agent, "is not logged in and has no key", hint)
    return Payer(billing=billing, env={KEYS[0]: key}, hosts=hosts)


def _elsewhere(url: str, name: str, key: str, billing: Literal["api", "subscription"]) -> Payer:
    """Return who pays at a service that the person named."""
    parts = urlsplit(url)
    own: Json = {"name": _PROVIDER, "base_url": url, "wire_api": "responses"}
    lent = billing == "subscription"
    own |= {"requires_openai_auth": True} if lent else {"env_key": name} if key else {}
    # The built-in provider's own numbers are 4, 5 and five minutes: half a minute of tries where a service is down.
    own |= {"request_max_retries": 2, "stream_max_retries": 3, "stream_idle_timeout_ms": 120_000}
    settings = {"model_provider": _PROVIDER, f"model_providers.{_PROVIDER}": own}
    if lent:  # the login is shown to that service alone: Codex asks after the account, too
        settings["chatgpt_base_url"] = f"{parts.scheme}://{parts.netloc}/backend-api"
    return Payer(
        billing=billing,
        env={name: key} if key and not lent else {},
        settings=settings,
        hosts=(f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname),),
        lent=lent,
    )


def secrets(payer: Payer) -> dict[str, str]:
    """Return the secrets that a leg is given, by a name for people."""
    tokens = _tokens(_read(folder())) if payer.lent else {}
    lent = {f"login-of-codex-{name}": value for name, value in tokens.items() if isinstance(value, str)}
    return {**payer.env, **lent}


def withheld(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without all that could pay, or lead to another folder: who pays is added on purpose."""
    return {name: value for name, value in env.items() if name not in {*KEYS, "CODEX_HOME", "CODEX_ACCESS_TOKEN"}}


def _key(agent: Agent) -> tuple[str, str]:
    """Return the variable that holds the key, and the key; empty where it is not set."""
    names = (agent.key,) if agent.key else KEYS
    return next(((name, os.environ[name]) for name in names if os.environ.get(name)), (names[0], ""))


def _nobody(agent: Agent, problem: str, hint: str) -> RelayError:
    return RelayError(f"agent `{agent.name}` {problem}", hint=hint, exit_code=Exit.HUMAN)


def where(agent: Agent) -> str:
    """Say where the key is found, or the login; never a value."""
    try:
        found = payer(agent)
    except RelayError as error:
        name = agent.key or KEYS[0]
        return "not logged in" if "logged in" in error.message else f"`{name}` is not set"
    if found.lent:
        return "login of codex"
    return f"`{_key(agent)[0]}`" if _key(agent)[1] else "login of codex" if found.env else "no key needed"


def folder() -> Path:
    """Return the person's own CODEX_HOME, really."""
    return Path(os.path.realpath(os.environ.get("CODEX_HOME") or Path.home() / ".codex"))


class Loan:
    """The person's login in the folder of a leg, as a context manager; afterwards it is not there any more."""

    def __init__(self, home: Path, *, jailed: bool) -> None:
        self._file, self._jailed = home / FILE, jailed

    def __enter__(self) -> Self:
        with suppress(FileNotFoundError):
            self._file.unlink()
        if self._jailed:
            files.write(self._file, msgspec.json.encode(_reduced(_read(folder()))))
        else:
            self._file.symlink_to(os.path.realpath(folder() / FILE))
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._file.unlink()


def _reduced(login: Json) -> Json:
    """Return a login without what renews it, as one that was renewed just now: so Codex does not try."""
    return {**login, "tokens": {**_tokens(login), "refresh_token": ""}, "last_refresh": clock.stamp()}


def outlives(seconds: float) -> bool:
    """Tell whether the person's login is good for a leg of so many seconds; one that says no end is."""
    ends = _ends(_tokens(_read(folder())).get("access_token"))
    return ends is None or ends > clock.now().timestamp() + seconds + MARGIN


def _ends(token: object) -> float | None:
    """Return when a token ends, in seconds since 1970, by what it says of itself."""
    try:
        middle = str(token).split(".")[1]
        found = msgspec.json.decode(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        return float(found["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def _read(place: Path) -> Json:
    """Return what the file of logins in a folder holds; nothing where there is none, or it is no such thing."""
    try:
        found = msgspec.json.decode(files.read(Path(os.path.realpath(place / FILE)), _LIMIT))
    except (OSError, RelayError, msgspec.DecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _tokens(login: Json) -> Json:
    found = login.get("tokens")
    return found if isinstance(found, dict) else {}

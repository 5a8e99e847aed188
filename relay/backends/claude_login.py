"""Who pays for a leg of Claude Code, and how the person's login is lent to it: never more of it than the leg needs.

Each leg has a configuration folder of its own, so that no leg reads another one's session. A key, or the token of a
login, goes in by a pipe that is read empty at once: neither the environment nor a file shows it to what the agent runs.
Only where a login would run out during its leg the program gets all of it, in its folder, and what it renewed is
brought back at once: the old one is void then.
"""

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

KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
TOKEN: Final = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105  the name of a variable
SERVICE: Final = "api.anthropic.com"
PIPE: Final = "8"
"""The descriptor that a secret is read from."""
_KEY_PIPE: Final = "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"
_TOKEN_PIPE: Final = "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR"  # noqa: S105  as above
RENEWAL: Final = ("platform.claude.com", "console.anthropic.com", "claude.ai")
"""Where a login is renewed."""
FILE: Final = ".credentials.json"
MARGIN: Final = 900.0
"""Seconds that a login must outlive its leg, for its token alone to be enough; the program renews 300 s before."""
_LIMIT: Final = 1 << 20
_ELSEWHERE: Final = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
"""Variables that lead the program to another seller of the same models, if `env` of the agent names them."""
_SAME: Final = ("scopes", "subscriptionType", "rateLimitTier")
_PERSONS: Final = ("skills", "agents", "commands", "plugins", "output-styles")
_WORDS: Final = ("settings.json", "CLAUDE.md")

Json = dict[str, Any]


class Payer(Struct, frozen=True, kw_only=True):
    """Who pays, what the program is told by name and what by the pipe, and which hosts it talks to.

    `login` says that it is the person's login, and `lent` that all of it must go along, since it has to be renewed.
    """

    billing: Literal["api", "subscription"]
    by: str
    env: dict[str, str] = {}
    secret: str = ""
    hosts: tuple[str, ...] = ()
    login: bool = False
    lent: bool = False


def payer(agent: Agent, seconds: float = 0.0) -> Payer:
    """Return who pays for a leg of so many seconds: what `billing` says, else a login before a key.

    Nobody: `RelayError` (exit 4). A key is meant wherever `key` or `base_url` is given: a login is sent to nobody but
    its own vendor, unless `billing` says so.
    """
    billing = agent.billing
    if billing is None:
        billing = "api" if agent.key or agent.base_url or _elsewhere(agent) or not _logged_in() else "subscription"
    return _subscription(agent, seconds) if billing == "subscription" else _api(agent)


def _subscription(agent: Agent, seconds: float) -> Payer:
    if not _logged_in():
        raise _nobody(agent, "is to be paid by a subscription, and nobody is logged in", "run: claude auth login")
    env = {"ANTHROPIC_BASE_URL": agent.base_url} if agent.base_url else {}
    service = _host(agent.base_url)
    if token := os.environ.get(TOKEN):
        paid = Payer(billing="subscription", by=f"`{TOKEN}`", env={**env, _TOKEN_PIPE: PIPE}, secret=token)
        return msgspec.structs.replace(paid, hosts=(service,))
    login = _oauth(_read(folder()))
    words = {"CLAUDE_CODE_SUBSCRIPTION_TYPE": "subscriptionType", "CLAUDE_CODE_RATE_LIMIT_TIER": "rateLimitTier"}
    env |= {name: login[field] for name, field in words.items() if isinstance(login.get(field), str)}
    paid = Payer(billing="subscription", by=f"the login in `{folder()}`", env=env, hosts=(service,), login=True)
    if _outlives(login, seconds):
        return msgspec.structs.replace(paid, env={**env, _TOKEN_PIPE: PIPE}, secret=login["accessToken"])
    return msgspec.structs.replace(paid, hosts=(service, *RENEWAL), lent=True)


def _api(agent: Agent) -> Payer:
    base = agent.base_url or os.environ.get("ANTHROPIC_BASE_URL")
    env = {"ANTHROPIC_BASE_URL": base} if base else {}
    names = (agent.key,) if agent.key else KEYS
    name = next((name for name in names if os.environ.get(name)), None)
    made = None if agent.key else _config().get("primaryApiKey")
    if name is None and isinstance(made, str) and made:
        paid = Payer(billing="api", by="the key that `claude auth login` made", env=env, hosts=(_host(base),))
        return msgspec.structs.replace(paid, env={**env, _KEY_PIPE: PIPE}, secret=made)
    if name is None:
        if _elsewhere(agent):
            return Payer(billing="api", by="another seller", env=env, hosts=(_host(base),))
        problem = f"has no key in `{names[0]}`" if agent.billing or agent.key else "is not logged in and has no key"
        raise _nobody(agent, problem, f"run: claude auth login\nor put a key into `{names[0]}`")
    paid = Payer(billing="api", by=f"`{name}`", env=env, hosts=(_host(base),))
    if name == "ANTHROPIC_AUTH_TOKEN":  # the program reads it from the environment alone
        return msgspec.structs.replace(paid, env={**env, name: os.environ[name]})
    return msgspec.structs.replace(paid, env={**env, _KEY_PIPE: PIPE}, secret=os.environ[name])


def secrets(payer: Payer) -> dict[str, str]:
    """Return the secrets that a leg is given, by a name for people."""
    lent = _oauth(_read(folder())) if payer.lent else {}
    tokens = (lent.get(name) for name in ("accessToken", "refreshToken"))
    return {"login-of-claude": payer.secret} | {
        f"login-of-claude-{number}": token for number, token in enumerate(tokens) if isinstance(token, str)
    }


def _outlives(login: Json, seconds: float) -> bool:
    ends = login.get("expiresAt")
    return isinstance(ends, int | float) and ends / 1000 > clock.now().timestamp() + seconds + MARGIN


def withheld(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without all that could pay: who does is added on purpose."""
    return {name: value for name, value in env.items() if name not in {*KEYS, TOKEN, "ANTHROPIC_BASE_URL"}}


def _elsewhere(agent: Agent) -> bool:
    return any(name in agent.env and os.environ.get(name) for name in _ELSEWHERE)


def _nobody(agent: Agent, problem: str, hint: str) -> RelayError:
    return RelayError(f"agent `{agent.name}` {problem}", hint=hint, exit_code=Exit.HUMAN)


def _host(url: str | None) -> str:
    parts = urlsplit(url or f"https://{SERVICE}")
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def folder() -> Path:
    """Return the person's own configuration folder, really."""
    return Path(os.path.realpath(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude"))


def _logged_in() -> bool:
    return bool(os.environ.get(TOKEN)) or bool(_oauth(_read(folder())).get("accessToken"))


class Loan:
    """The person's whole login in the folder of a leg, as a context manager; afterwards it is not there any more."""

    def __init__(self, place: Path) -> None:
        self._place, self._lender = place, folder()
        self._given: Json = dict(_oauth(_read(self._lender)))
        self._seen = 0

    def __enter__(self) -> Self:
        files.write(self._place / FILE, msgspec.json.encode({"claudeAiOauth": self._given}))
        self._seen = self._stamp()
        return self

    def __exit__(self, *_: object) -> None:
        self.bring_back()
        with suppress(OSError):
            (self._place / FILE).unlink()

    def bring_back(self) -> bool:
        """Give the person what was renewed, if anything was; quick where nothing was. Tell whether it was given.

        What an agent could have written there instead is not taken: it must be the same login, only later, and the
        person must still have the one that was lent.
        """
        stamp = self._stamp()
        if stamp in {0, self._seen}:
            return False
        self._seen = stamp
        new, own = _oauth(_read(self._place)), _read(self._lender)
        if not _renewed(self._given, new) or _oauth(own).get("refreshToken") != self._given.get("refreshToken"):
            return False
        files.write(self._lender / FILE, msgspec.json.encode({**own, "claudeAiOauth": {**_oauth(own), **new}}))
        self._given = dict(new)
        return True

    def _stamp(self) -> int:
        try:
            return (self._place / FILE).lstat().st_mtime_ns
        except OSError:
            return 0


def _renewed(old: Json, new: Json) -> bool:
    """Tell whether a login is the old one, renewed: the same fields, only its tokens others, and good for longer."""
    words = ("accessToken", "refreshToken")
    changed = all(isinstance(new.get(name), str) and new[name] for name in words)
    changed = changed and new["accessToken"] != old.get("accessToken")
    ends, before = new.get("expiresAt"), old.get("expiresAt")
    later = isinstance(ends, int) and isinstance(before, int) and ends > before
    return changed and later and all(new.get(name) == old.get(name) for name in _SAME)


def _read(place: Path) -> Json:
    """Return what the file of logins in a folder holds; nothing where there is none, or it is no such thing."""
    try:
        found = msgspec.json.decode(files.read(Path(os.path.realpath(place)) / FILE, _LIMIT))
    except (OSError, RelayError, msgspec.DecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _oauth(whole: Json) -> Json:
    found = whole.get("claudeAiOauth")
    return found if isinstance(found, dict) else {}


def bring_settings(place: Path) -> None:
    """Put the person's own settings, instructions, skills and servers into the folder of a leg."""
    own = folder()
    for name in _WORDS:
        with suppress(FileNotFoundError):
            files.write(place / name, files.read(own / name))
    for name in _PERSONS:
        if (own / name).is_dir() and not (place / name).exists():
            (place / name).symlink_to(os.path.realpath(own / name))
    files.write(place / "servers.json", msgspec.json.encode({"mcpServers": _servers()}))


def settings_shown() -> tuple[Path, ...]:
    """Return the folders that `bring_settings` leads to."""
    return tuple(Path(os.path.realpath(folder() / name)) for name in _PERSONS if (folder() / name).is_dir())


def _servers() -> Json:
    """Return the servers that the person added for all projects."""
    servers = _config().get("mcpServers")
    return servers if isinstance(servers, dict) else {}


def _config() -> Json:
    """Return what the program keeps for the person beside the folder, or in it where that is a place of its own."""
    moved = os.environ.get("CLAUDE_CONFIG_DIR")
    try:
        found = msgspec.json.decode(files.read((Path(moved) if moved else Path.home()) / ".claude.json"))
    except (OSError, RelayError, msgspec.DecodeError):
        return {}
    return found if isinstance(found, dict) else {}

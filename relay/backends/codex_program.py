"""The program Codex: which file it is, what this version of it can switch off, and the line that starts it.

The flags are those of clis.md 3.1. Each was run with `--strict-config`, which refuses what a version does not know.
"""

import json
import os
import platform
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from relay.backends import engine
from relay.backends.codex_login import Payer, folder
from relay.backends.engine import Found
from relay.errors import Exit, RelayError
from relay.host import proc, scratch
from relay.host.jail.run import environment
from relay.terms import Agent, Ask, Limits, Struct

OLDEST: Final = (0, 160)
"""The oldest version whose flags and files these are."""
LONGEST: Final = 1 << 20
"""Characters of the longest prompt that Codex takes (clis.md 3.3)."""
_OFF: Final = (
    # What talks to others, or waits for ever.
    *("plugins", "apps", "remote_plugin", "unbounded_connection_retries", "memories", "hooks"),
    # What a leg has no use for, and what each request would carry (clis.md 5).
    *("goals", "multi_agent", "skill_search", "image_generation", "browser_use", "computer_use", "tool_suggest"),
    *("view_image", "in_app_browser"),
    # What would run the person's own shell start-up files.
    "shell_snapshot",
)
_NEVER: Final = 1 << 40
"""Tokens after which Codex would rewrite its history by itself: a leg hands over before."""
_QUIET: Final = {"filesystem": {":root": "write"}, "network": {"enabled": False}}
"""In a jail: no walls of Codex's own, which cannot stand there, but its shells get no network, while it has one."""
_RENEWAL: Final = (
    b'{"id":1,"method":"initialize","params":{"clientInfo":{"name":"relay","version":"1"}}}\n'
    b'{"method":"initialized"}\n'
    b'{"id":2,"method":"account/read","params":{"refreshToken":true}}\n'
)
_WAITING: Final = '(cat; sleep 5) | exec "$@"'
"""Codex drops what it is asked when its input ends, so that stays open for the time that a renewal takes."""
_MACHINES: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


class Place(Struct, frozen=True, kw_only=True):
    """Where the files of a leg are: CODEX_HOME, the folder for passing files, the reply's schema if there is one."""

    home: Path
    tmp: Path
    schema: Path | None = None


def find(agent: Agent) -> Found:
    """Return the program itself, also where PATH has a script that starts it: killing that would leave it running.

    `RelayError` (exit 4) when it is missing or too old.
    """
    found = engine.find("codex", agent.name)
    native = _native(Path(found.path))
    found = found if native is None else engine.at(str(native))
    words = found.version.split(".")[:2]
    if tuple(int(word) for word in words if word.isdecimal()) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        problem = f"`{found.path}` is version {found.version}, and Relay needs {wanted} or later"
        raise RelayError(problem, hint="run: codex update", exit_code=Exit.HUMAN)
    return found


def by_script(found: Found) -> bool:
    """Tell whether nothing was found behind the script on PATH."""
    with Path(found.path).open("rb") as stream:
        return stream.read(2) == b"#!"


def _native(shim: Path) -> Path | None:
    """Return the program of this machine in the packages that a script belongs to."""
    machine = _MACHINES.get(platform.machine().lower(), "")
    for package in (parent for parent in shim.parents if (parent / "package.json").is_file()):
        for scope in (package.parent, package / "node_modules" / package.parent.name):
            for path in sorted(scope.glob(f"codex-{platform.system().lower()}-{machine}/vendor/*/bin/codex")):
                if os.access(path, os.X_OK):
                    return path.resolve()
    return None


def readable(found: Found) -> tuple[Path, ...]:
    """Return what of the disk the program is: it has tools of its own beside it."""
    package = Path(found.path).parent.parent
    return (package,) if (package / "codex-package.json").is_file() else engine.readable(found)


def command(found: Found, ask: Ask, payer: Payer, place: Place, *, walls: bool, quiet: bool) -> list[str]:
    """Return the words that begin a session, up to where a session to go on with would be named.

    `walls`: Codex confines its shells itself. `quiet`: a jail does, and Codex takes the network from them.
    """
    own = ask.agent.settings == "user"
    words = [found.path, "exec", "--json", "--strict-config", "--skip-git-repo-check", "-C", ask.folder]
    words += [] if own else ["--ignore-user-config", "--ignore-rules"]
    known = features(found)
    words += [word for name in _OFF if name in known and not own for word in ("--disable", name)]
    words += ["--disable", "unbounded_connection_retries"] if own and "unbounded_connection_retries" in known else []
    words += ["-m", ask.agent.model] if ask.agent.model else []
    words += ["--output-schema", str(place.schema)] if place.schema else []
    settings = _settings(ask, payer)
    if walls:
        words += ["-s", "workspace-write" if ask.boundary == "implement" else "read-only"]
        settings["sandbox_workspace_write.exclude_slash_tmp"] = True
    elif quiet:
        settings |= {"default_permissions": "relay", "permissions.relay": _QUIET}
    else:
        words += ["-s", "danger-full-access"]
    return [*words, *_given(settings)]


def _settings(ask: Ask, payer: Payer) -> dict[str, Any]:
    hidden = sorted({*payer.env, "CODEX_HOME"})
    settings: dict[str, Any] = {
        "analytics.enabled": False,
        "check_for_update_on_startup": False,
        "web_search": "disabled",
        "project_doc_max_bytes": 0,  # instructions of the project come by Relay's prompt
        "model_auto_compact_token_limit": _NEVER,
        "allow_login_shell": False,
        # The environment of Codex is an allow-list already; what its shells must not have of it is who pays.
        "shell_environment_policy": {"inherit": "all", "ignore_default_excludes": True, "exclude": hidden},
    }
    if ask.agent.settings != "user":
        settings |= {"skills.include_instructions": False, "history.persistence": "none"}
    if ask.agent.effort:
        settings["model_reasoning_effort"] = ask.agent.effort
    if ask.agent.window:
        settings["model_context_window"] = ask.agent.window
    return settings | payer.settings


def _given(settings: dict[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        yield from ("-c", f"{name}={_toml(value)}")


def _toml(value: Any) -> str:  # noqa: ANN401 - what TOML has
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}={_toml(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_toml, value)) + "]"
    return json.dumps(value)


@cache
def features(found: Found) -> frozenset[str]:
    """Return what this version knows as a feature; one that it does not know ends it at once."""
    with scratch.folder("codex") as home:
        listed = engine.ask(found.path, "features", "list", env={"CODEX_HOME": str(home)}).text
    return frozenset(line.split()[0] for line in listed.splitlines() if len(line.split()) > 2)  # noqa: PLR2004


@cache
def silences(found: Found) -> bool:
    """Tell whether this version can take the network from its shells where a jail holds the rest; tried, not read."""
    words = [*_given({"permissions.relay": _QUIET}), "--", "true"]
    return _sandboxed(found, "-P", "relay", *words) == ""


def walls(found: Found) -> str:
    """Say why the walls that Codex builds around its shells do not stand here; nothing where they do."""
    return _sandboxed(found, "-P", ":workspace", "--", "true")


def _sandboxed(found: Found, *words: str) -> str:
    with scratch.folder("codex") as base:
        home, tmp = Path(base, "home"), Path(base, "tmp")
        home.mkdir()
        tmp.mkdir()
        env = environment({"CODEX_HOME": str(home), "TMPDIR": str(tmp)}, Path.home())
        # Its folder is what the sandbox is built around: not `/`, where `engine.ask` asks.
        ended = proc.run([found.path, "sandbox", *words], cwd=str(tmp), env=env, limits=Limits(seconds=30))
    said = [line for line in ended.text.splitlines() if line.strip()]
    return "" if ended.code == 0 else (said[0] if said else f"it exited {ended.code}")


def renew(found: Found, payer: Payer, env: Mapping[str, str]) -> None:
    """Have Codex renew the person's login, in the open. Whether it did the leg will show."""
    off = [word for name in ("plugins", "apps") if name in features(found) for word in ("--disable", name)]
    words = ["app-server", *off, *_given({"analytics.enabled": False, **payer.settings})]
    named = {**engine.passed(), **env, "CODEX_HOME": str(folder())}
    proc.run(
        ["/bin/sh", "-c", _WAITING, "sh", found.path, *words],
        cwd="/",
        env=environment(named, Path.home()),
        stdin=_RENEWAL,  # `engine.ask` has no input
        limits=Limits(seconds=30),
    )

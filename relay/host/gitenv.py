"""The surroundings of every git that Relay runs: which program, variables and settings, and what it answers.

From pitfalls "Git-call contract" and sandbox.md section 8.2. Settings travel as GIT_CONFIG_COUNT/KEY/VALUE: any name
survives that, and no file overrides it.
"""

import os
import shutil
from collections.abc import Mapping
from functools import cache
from typing import Final

from relay.errors import Exit, RelayError
from relay.host import pids
from relay.host.repository import Repository
from relay.terms import Struct

Config = tuple[tuple[str, str], ...]
"""Settings of one call, as pairs of a full name and a value."""

_KEPT: Final = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSH", "GIT_SSL_", "GIT_PROXY_", "GIT_HTTP_", "GIT_EXEC_PATH")
_ENV: Final = {
    "GIT_ASKPASS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_EDITOR": ":",
    "GIT_LITERAL_PATHSPECS": "1",  # a file may be called `:(top)x` or `*` (pitfalls row 100)
    "GIT_NO_REPLACE_OBJECTS": "1",  # refs/replace must not change what a receipt names
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
}
_CONFIG: Final[Config] = (
    ("color.ui", "false"),
    ("column.ui", "never"),
    ("core.checkStat", "default"),
    ("core.fsmonitor", "false"),
    ("core.fsync", "committed,loose-object,reference"),  # git syncs neither by default (pitfalls row 79)
    ("core.hooksPath", os.devnull),
    ("core.ignoreStat", "false"),
    ("core.quotePath", "false"),
    ("core.safecrlf", "false"),
    ("core.splitIndex", "false"),
    ("core.trustctime", "true"),
    ("core.untrackedCache", "false"),
    ("gc.auto", "0"),
    ("i18n.commitEncoding", "UTF-8"),
    ("log.showSignature", "false"),
    ("maintenance.auto", "false"),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
)


class Answer(Struct, frozen=True, kw_only=True):
    """What one call of git gave: its exit code and both streams."""

    code: int
    out: bytes
    err: str


def failed(answer: Answer, what: str) -> RelayError:
    """Return the error for a call that failed: git's first complaint, since later ones often mask it (row 11)."""
    lines = [line for line in answer.err.splitlines() if line.startswith(("fatal:", "error:"))] or [answer.err.strip()]
    return RelayError(f"git `{what}` failed with {answer.code}: {lines[0]}", exit_code=Exit.HUMAN)


def verb(args: tuple[str, ...]) -> str:
    """Return the command in a list of arguments, behind a `-C FOLDER`."""
    return args[2] if args[0] == "-C" else args[0]


def program() -> str:
    """Return the absolute path of git on PATH; relative PATH entries are skipped (sandbox.md 8.1 row 15)."""
    return _program(os.environ.get("PATH", os.defpath))


@cache
def _program(path: str) -> str:
    found = shutil.which("git", path=os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry)))
    if found is None:
        raise RelayError("git is not on PATH", hint="install git 2.39 or newer, or correct PATH")
    return found


def ours(repo: Repository, extra: Mapping[str, str], config: Config) -> dict[str, str]:
    """Return the variables that a call sets; `extra` wins over all of them, `config` over the settings above."""
    where = {"GIT_DIR": str(repo.git_dir), "GIT_COMMON_DIR": str(repo.common)}
    return _ENV | where | {"RELAY_GIT": pids.signature()} | dict(extra) | settings(config)


def settings(config: Config) -> dict[str, str]:
    """Return the hardened settings and `config` as variables."""
    found = {"GIT_CONFIG_COUNT": str(len(_CONFIG) + len(config))}
    for number, (name, value) in enumerate((*_CONFIG, *config)):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def alien(ours: Mapping[str, str]) -> list[str]:
    """Return the caller's GIT_* variables that must not reach git; who writes and how to reach a remote may stay."""
    return [name for name in os.environ if name.startswith("GIT_") and name not in ours and not name.startswith(_KEPT)]

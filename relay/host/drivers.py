"""The programs that a repository's settings would have git run: found by name, and switched off.

A .gitattributes that an agent wrote chooses among them, so a call that touches its files runs none
(sandbox.md section 8.1, rows 5 to 9).
"""

from relay.host import git
from relay.host.gitenv import Config
from relay.host.repository import Repository
from relay.terms import Struct


class Drivers(Struct, frozen=True, kw_only=True):
    """`off` are the settings that silence every filter and hook; `required` filters change what a commit must hold."""

    off: Config
    required: frozenset[str]


def find(repo: Repository) -> Drivers:
    """Read which filters and hooks the settings of the repository, its user and the system name."""
    out = git.run(
        repo, "config", "-z", "--get-regexp", r"^(filter|hook)\.", ok=(0, 1), env={"GIT_DIR": str(repo.common)}
    )
    off: dict[str, str] = {"core.sparseCheckout": "false"}  # a leg has all files, or deletes what it cannot see
    required: set[str] = set()
    for record in out.split(b"\0"):
        key, _, value = record.decode("utf-8", "surrogateescape").partition("\n")
        kind, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if kind == "filter" and name:
            off |= {f"filter.{name}.{program}": "" for program in ("clean", "smudge", "process")}
            off[f"filter.{name}.required"] = "false"
            if setting == "required" and value.lower() in {"", "true", "yes", "on", "1"}:
                required.add(name)
        elif kind == "hook" and name:
            off[f"hook.{name}.enabled"] = "false"
    return Drivers(off=tuple(off.items()), required=frozenset(required))

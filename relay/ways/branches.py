"""The name of a branch as a person says it: what it stands for, and what is no branch."""

import re
from typing import Final

from relay.host import git
from relay.host.repository import Repository

HEADS: Final = "refs/heads/"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def named(repo: Repository, said: str) -> str | None:
    """Return a name without `refs/heads/`; None for what names a commit (`main~1`, `HEAD`, an id) or no branch."""
    name = said.removeprefix(HEADS)
    if not name or name in {"HEAD", "@"} or name.startswith(("-", "refs/")) or "\0" in name or _COMMIT.fullmatch(name):
        return None
    return None if git.call(repo, "check-ref-format", HEADS + name).code else name


def there(repo: Repository, remote: str, said: str) -> str:
    """Return what a branch is called at a remote: `origin/main` is how this repository calls its `main`."""
    seen = f"refs/remotes/{remote}/"
    short = said.removeprefix(seen).removeprefix(f"{remote}/")
    return short if said.startswith(seen) or git.resolve(repo, seen + short) is not None else said


def here(repo: Repository, said: str) -> str:
    """Return the branch of this repository that a remote's stands for; nothing where there is none."""
    short = said.removeprefix("refs/remotes/").partition("/")[2]
    return short if short and git.resolve(repo, HEADS + short) is not None else ""

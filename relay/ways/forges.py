"""Which forge a remote lies on, as the person wrote its address: GitHub, GitLab, or a server of one's own."""

import re
from typing import Final
from urllib.parse import urlsplit

from relay.errors import RelayError
from relay.host.repository import Repository
from relay.terms import Ship
from relay.ways import github, gitlab, remote, said
from relay.ways.forge import Forge, Home

_SCP: Final = re.compile(r"(?:[^@/]+@)?([^:/]+):(?!//)(.+)")


def home(repo: Repository, name: str) -> Home:
    """Read host, owner and name from a remote's address, as the person wrote it; `RelayError` where it has none."""
    remote.address(repo, name)
    address = remote.written(repo, name)
    if "://" in address:
        parts = urlsplit(address)
        host, path = (parts.hostname or "", parts.path) if parts.scheme != "file" else ("", "")
    else:
        found = _SCP.fullmatch(address)
        host, path = (found[1], found[2]) if found else ("", "")
    path = path.strip("/").removesuffix(".git").rstrip("/")
    if not host or "/" not in path:
        raise RelayError(
            f"the address of remote `{name}` is no repository on a forge: `{said.address(address)}`",
            hint="name another one: [ship] remote",
        )
    return Home(host=host, path=path)


def of(repo: Repository, ship: Ship) -> Forge:
    """Return the forge that a remote lies on, and the means to ask it."""
    where = home(repo, ship.upstream or ship.remote)
    fork = home(repo, ship.remote) if ship.upstream else where
    kind = ship.forge or ("gitlab" if "gitlab" in where.host else "github")
    if fork.host != where.host or (kind == "gitlab" and fork != where):
        problem = f"a fork on `{fork.host}` cannot propose to `{where.host}`"
        if kind == "gitlab":
            problem = "a fork is proposed from on GitHub alone; on GitLab it is not known how"
        raise RelayError(problem, hint=f'leave `upstream` out, and push to [ship] remote = "{ship.upstream}"')
    if kind == "gitlab":
        return gitlab.GitLab(where, ship)
    return github.GitHub(where, ship, fork.owner)

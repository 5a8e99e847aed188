"""What confines the commands of a run: the rung its plan asks for, and a cell for each place where they run."""

import os
from pathlib import Path
from typing import Final

import msgspec

from relay.backends.base import Needs
from relay.host import jail
from relay.host.jail.cell import Cell
from relay.host.lease import Lease
from relay.record.ledger import Ledger
from relay.terms import Plan, Reach, Struct

NOTHING: Final = Needs()
OWN: Final = ("127.", "localhost:", "[::1]:")
"""How the name of a service on this machine begins."""
CACHES: Final = {"UV_CACHE_DIR": "uv", "PIP_CACHE_DIR": "pip", "npm_config_cache": "npm", "CARGO_HOME": "cargo"}
"""By variable: where below the caches a tool keeps what it fetched."""


class Place(Struct, frozen=True, kw_only=True):
    """A folder where commands run, and the cell that holds them there, if any does."""

    folder: Path
    cell: Cell | None = None


def place(ledger: Ledger, plan: Plan, lease: Lease) -> Place:
    """Return a worktree as the place for checks, which may write there: what they leave is never committed."""
    return Place(folder=lease.path, cell=cell(ledger, plan, lease, jail.Access.WRITE))


def rung(plan: Plan) -> tuple[jail.Rung, str]:
    """Return what confines this run, and the sentence to say aloud about it.

    `required` is a jail or a `RelayError` (exit 2) with cause and remedy; `auto` takes the best that holds here.
    """
    return jail.choose(plan.jail.mode)


def reach(plan: Plan) -> Reach:
    """Return what of the network the commands of an agent have, unless its backend knows better."""
    if not rung(plan)[0].holds or plan.jail.network == "host":
        return "host"
    return "off" if plan.jail.network == "off" else "allowed"


def cell(
    ledger: Ledger,
    plan: Plan,
    lease: Lease,
    access: jail.Access,
    needs: Needs = NOTHING,
    *,
    setup: bool = False,
    cache: Path | None = None,
) -> Cell | None:
    """Return the cell for commands in a worktree, or None where nothing holds them.

    `needs` is what they see, change and reach besides their tree. `setup` commands have the network that
    `[jail] setup_network` says; all others that of `network`. The caches are the worktree's own, unless `cache` says
    where they are; what a command may do to its tree it may do to them.
    """
    found, _ = rung(plan)
    if not found.holds:
        return None
    home = Path.home().resolve()
    source = ledger.repo.top or ledger.repo.main_top
    linked = [Path(os.path.realpath(source / name)) for name in plan.worktree.link] if source is not None else []
    shown = [Path(os.path.realpath(path)) for path in needs.readable]
    tools = jail.readable(os.environ.get("PATH", os.defpath), home)
    written = tuple(Path(os.path.realpath(path)) for path in needs.writable)
    caches = cache or lease.cache
    lent = (caches,) if access is not jail.Access.READ and caches.is_dir() else ()
    readable = [path for path in (*tools, *linked, *shown) if path.exists() and not path.is_relative_to(lease.path)]
    mounts = jail.around(
        ledger.repo,
        lease,
        access,
        home=home,
        readable=tuple(dict.fromkeys(readable)),
        writable=(*written, *lent) if access is jail.Access.WRITE else written,
        fleeting=lent if access is jail.Access.SCRATCH else (),
    )
    env = {name: str(there / place) for there in lent for name, place in CACHES.items()}
    return _reaching(Cell(rung=found, mounts=mounts, env=env, nests=needs.nests), plan, needs, setup=setup)


def as_setup(cell: Cell | None, plan: Plan) -> Cell | None:
    """Return a cell with the network that set-up has: for commands of the person's that look at the world."""
    return None if cell is None else _reaching(cell, plan, NOTHING, setup=True)


def _reaching(cell: Cell, plan: Plan, needs: Needs, *, setup: bool) -> Cell:
    """Open to a cell what the plan allows, and the services that the agent's own program cannot do without."""
    wanted = plan.jail.setup_network if setup else plan.jail.network
    services = tuple(host for host in needs.hosts if host.startswith(OWN))
    hosts = tuple(host for host in needs.hosts if host not in services)
    allow = (*(wanted if isinstance(wanted, tuple) else ()), *hosts)
    if wanted == "host":
        return msgspec.structs.replace(cell, network="host")
    return msgspec.structs.replace(
        cell, network="allow" if allow else "off", allow=allow, loopback=(*plan.jail.loopback, *services)
    )

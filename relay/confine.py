"""What confines the commands of a run: the rung its plan asks for, and a cell for each place where they run."""

import os
import shutil
from pathlib import Path
from typing import Literal

from relay.host import jail
from relay.host.jail.cell import Cell
from relay.host.lease import Lease
from relay.record.ledger import Ledger
from relay.terms import Agent, Plan, Struct


class Place(Struct, frozen=True, kw_only=True):
    """A folder where commands run, and the cell that holds them there, if any does."""

    folder: Path
    cell: Cell | None = None


def place(ledger: Ledger, plan: Plan, lease: Lease) -> Place:
    """Return a worktree as the place for checks, which may write there: what they leave is never committed."""
    return Place(folder=lease.path, cell=cell(ledger, plan, lease, jail.Access.WRITE))


def rung(plan: Plan) -> tuple[jail.Rung, str]:
    """Return what confines this run, and the sentence to say aloud about it.

    `required` is a jail or a `RelayError` (exit 2) with cause and remedy. In this version `auto` is no jail yet.
    """
    if plan.jail.mode == "auto":
        found, _ = jail.choose("off")
        return (
            found,
            'no jail: boundaries are watched, and a breach voids the leg ([jail] mode = "required" enforces them)',
        )
    return jail.choose(plan.jail.mode)


def cell(
    ledger: Ledger,
    plan: Plan,
    lease: Lease,
    access: jail.Access,
    *,
    showing: tuple[Path, ...] = (),
    writing: tuple[Path, ...] = (),
    setup: bool = False,
) -> Cell | None:
    """Return the cell for commands in a worktree, or None where nothing holds them.

    `showing` and `writing` are what they see and change besides their tree. `setup` commands have the network that
    `[jail] setup_network` says; all others that of `network`.
    """
    found, _ = rung(plan)
    if not found.holds:
        return None
    home = Path.home().resolve()
    source = ledger.repo.top or ledger.repo.main_top
    linked = [Path(os.path.realpath(source / name)) for name in plan.worktree.link] if source is not None else []
    shown = [Path(os.path.realpath(path)) for path in showing]
    tools = jail.readable(os.environ.get("PATH", os.defpath), home)
    written = tuple(Path(os.path.realpath(path)) for path in writing)
    readable = [path for path in (*tools, *linked, *shown) if path.exists() and not path.is_relative_to(lease.path)]
    mounts = jail.around(
        ledger.repo, lease, access, home=home, readable=tuple(dict.fromkeys(readable)), writable=written
    )
    wanted = plan.jail.setup_network if setup else plan.jail.network
    return Cell(
        rung=found,
        mounts=mounts,
        network=_network(wanted),
        allow=wanted if isinstance(wanted, tuple) else (),
        loopback=plan.jail.loopback,
    )


def _network(wanted: str | tuple[str, ...]) -> Literal["off", "allow", "host"]:
    if isinstance(wanted, tuple):
        return "allow"
    return "host" if wanted == "host" else "off"


def programs(agent: Agent) -> tuple[Path, ...]:
    """Return what an agent's own command line names by absolute path, so that it can be shown to it."""
    found = [shutil.which(agent.command[0]) or ""] if agent.command else []
    return tuple(Path(word) for word in (*found, *agent.command[1:]) if word.startswith("/") and Path(word).exists())

"""A command of the person's that takes it out: a deployment. It runs once, and it outlives Relay.

Nobody can look at the world to see whether a script ran, so the script itself leaves what tells: `began` before it
starts, `exit` when it has ended, its output in `deploy.log`, all in the shipment's folder. It writes into files and
not into a pipe, and it carries a mark by which a later Relay waits for it instead of ending it, so a Relay that is
killed kills no deployment half-way.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

from relay import weigh
from relay.errors import Interrupted, RelayError
from relay.host import clock, files, git, pids, provision, redact, signals, term
from relay.host.jail import cell as cells
from relay.host.repository import Repository
from relay.record.ledger import Ledger
from relay.terms import Check, Plan, Ship
from relay.ways import branches, merge
from relay.ways.base import Out, Parcel, Tip, UnknownError, Words

MARK: Final = "RELAY_SHIPS"
"""The variable by which a deployment says which Relay started it."""

_TOLD: Final = 2000
_LOG: Final = 64 << 20
_CUT: Final = frozenset({124, 137})
"""How `timeout` says that it ended a command: politely, or not."""

_RUN: Final = """\
exec >"$1/deploy.log" 2>&1 </dev/null
: >"$1/began" && sync "$1/began" "$1"
timeout --kill-after=20 "$2" /bin/sh -c "$3"
printf '%s\\n' "$?" >"$1/exit.new" && sync "$1/exit.new" && mv "$1/exit.new" "$1/exit" && sync "$1"
"""


def check(_repo: Repository, ship: Ship) -> None:
    """Refuse a method without its command."""
    if not (ship.command or "").strip():
        hint = 'write it into [ship]: command = "./deploy.sh"'
        raise RelayError('ship.method = "command" has no `ship.command`', hint=hint)


def target(ledger: Ledger, plan: Plan, into: str | None) -> str:
    """Name the branch here that it must fit onto: the base, which may be a remote's, or none."""
    if into or plan.base_ref.startswith(branches.HEADS):
        return merge.target(ledger, plan, into)
    return plan.base_ref if git.resolve(ledger.repo, plan.base_ref) is not None else ""


def tip(ledger: Ledger, plan: Plan, target: str) -> Tip:
    """Return where that branch stands."""
    return merge.tip(ledger, plan, target) if target else Tip()


def environment(plan: Plan) -> dict[str, str]:
    """Return what `[worktree] env` and `[ship] env` name of the person's environment."""
    more = {name: os.environ[name] for name in plan.ship.env if name in os.environ}
    return {**provision.named(plan.worktree), **more}


def look(parcel: Parcel) -> Out | None:
    """Tell from what the script left whether it ran, and how it ended; `UnknownError` where it began and no more."""
    folder = parcel.ledger.leg(parcel.plan.run, parcel.leg)
    if not (folder / "began").exists():
        return None
    if not (folder / "exit").exists():
        raise UnknownError(f"`{parcel.plan.ship.command}` began, and something ended it", hint=f"see {folder}")
    seconds = (folder / "exit").stat().st_mtime - (folder / "began").stat().st_mtime
    return _out(parcel, folder, max(0.0, seconds))


def send(parcel: Parcel, _words: Words) -> Out:
    """Run the command in a clean checkout of the commit, and wait for it."""
    plan, ship = parcel.plan, parcel.plan.ship
    folder = parcel.ledger.leg(plan.run, parcel.leg)
    told = {
        "RELAY_RUN": plan.run,
        "RELAY_LEG": parcel.leg,
        "RELAY_SHA": parcel.commit,
        "RELAY_TREE": git.tree(parcel.repo, parcel.commit),
        "RELAY_SPEC": str(parcel.ledger.folder(plan.run) / "spec.md"),
        MARK: pids.signature(),
    }
    env = cells.surroundings({**environment(plan), **told})
    words = ["/bin/sh", "-c", _RUN, "relay", str(folder), f"{ship.minutes * 60:g}", ship.command or ""]
    with weigh.checkout(parcel.ledger, plan, parcel.leg, parcel.commit, "deploy") as at:
        began = clock.monotonic()
        with signals.held():
            child = subprocess.Popen(words, cwd=at.folder, env=env, start_new_session=True)
        try:
            child.wait()
        except Interrupted:
            term.say("the deployment goes on, and is waited for: a half one would be worse")
            child.wait()
            raise
        seconds = clock.monotonic() - began
    if not (folder / "exit").exists():
        raise UnknownError(f"`{ship.command}` began, and something ended it", hint=f"see {folder}")
    return _out(parcel, folder, seconds)


def withdraw(_parcel: Parcel) -> str:
    """Take back nothing: a command that never began changed nothing."""
    return ""


def _out(parcel: Parcel, folder: Path, seconds: float) -> Out:
    """Make the receipt's facts of what the script left; its output is kept without secrets."""
    command = parcel.plan.ship.command or ""
    code = int((folder / "exit").read_text(encoding="utf-8"))
    said = files.read(folder / "deploy.log", _LOG)
    files.write(folder / "deploy.log", redact.own().bytes(said))
    ran = Check(
        by="ship.command",
        command=command,
        exit=code,
        seconds=round(seconds, 3),
        output_sha256=files.sha256(said),
        ended="timeout" if code in _CUT and seconds >= parcel.plan.ship.minutes * 60 else "exit",
    )
    if code == 0:
        return Out(commit=parcel.commit, checks=(ran,))
    last = " ".join(redact.own().text(said[-_TOLD:].decode(errors="replace")).split())[-300:]
    took = f" after {parcel.plan.ship.minutes:g} minutes" if ran.ended == "timeout" else ""
    why = f"`{command}` exited {code}{took}" + (f": {last}" if last else "")
    return Out(commit=parcel.commit, outcome="failed", told={"why": why}, checks=(ran,))

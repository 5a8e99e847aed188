"""Programs that outlived their leg or their runner: found by what they inherited, never by name (pitfalls row 16)."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from relay.host import lock, pids, proc
from relay.reaper import look
from relay.reaper.look import Run
from relay.reaper.tally import Tally
from relay.record.ledger import Ledger
from relay.ways import deploy

LEFT_ALONE: Final = ("RELAY_GIT", deploy.MARK)
"""A git may be moving the person's checkout, a deployment is half done: both are let finish."""


class Stray(NamedTuple):
    """A process that nobody owns, the mark by which it was known, and the leg it worked for."""

    pid: int
    mark: str
    run: str
    leg: str


def settle(tally: Tally, runs: list[Run]) -> None:
    """End what carries the nonce of a sealed leg of this ledger, or was started by a runner of it that is dead."""
    marks = _marks(tally.ledger, runs)
    for stray in list(_strays(marks)) if marks else ():
        name = _name(stray.pid)
        if not tally.dry:
            if not pids.carries(stray.pid, stray.mark.encode()):
                continue
            proc.end([stray.pid])
            if pids.carries(stray.pid, stray.mark.encode()) and pids.stat(stray.pid) is not None:
                what = f"process {stray.pid} (`{name}`) outlived {stray.leg} of {stray.run} and cannot be ended"
                tally.alert("process", str(stray.pid), what, f"kill -9 {stray.pid}", stray.run)
                continue
        tally.repair("process", f"ended process {stray.pid} (`{name}`), which outlived {stray.leg}", stray.run)


def _marks(ledger: Ledger, runs: list[Run]) -> dict[str, tuple[str, str]]:
    """Return what strays carry, each with its run and leg; what a live leg's programs carry as well is left out."""
    apart = look.locked(ledger.lock) and lock.holder(ledger.lock) is None  # a loop whose number means nobody here
    wanted: dict[str, tuple[str, str]] = {}
    live: set[str] = set()
    boot = pids.this().boot
    for run in runs:
        sealed = {one.leg for one in run.chain}
        busy = look.locked(ledger.run_lock(run.id))  # by a shipment too, whose number may mean nobody here
        for start in run.starts:
            if start.common_dir != str(ledger.repo.common):
                continue  # a copied ledger: those programs are the other one's
            dead = not pids.alive(start.relay)
            held = look.locked(ledger.leg_lock(run.id, start.leg))
            runner = f"RELAY_RUNNER={pids.signature(start.relay)}"
            mine = [] if start.act == "ship" or not start.nonce else [f"RELAY_NONCE={start.nonce}"]
            if busy:
                live.add(runner)
            if held or not (dead or start.leg in sealed) or (busy and start.leg not in sealed):
                live.update(mine, [runner])
                continue
            if dead and start.relay.boot == boot and not apart:
                mine.append(runner)
            wanted |= dict.fromkeys(mine, (run.id, start.leg))
    return {mark: about for mark, about in wanted.items() if mark not in live}


def _strays(marks: dict[str, tuple[str, str]]) -> Iterator[Stray]:
    """Yield each process of this user that carries a mark, without this one and those it descends from."""
    for pid in pids.others():
        carried = _environment(pid)
        if any(line.partition("=")[0] in LEFT_ALONE for line in carried):
            continue
        mark = next((line for line in carried if line in marks), None)
        if mark is not None and pids.stat(pid) is not None:
            run, leg = marks[mark]
            yield Stray(pid, mark, run, leg)


def _environment(pid: int) -> list[str]:
    """Return the lines of a process's environment that are Relay's."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return [os.fsdecode(line) for line in lines if line.startswith(b"RELAY_")]
    return []


def _name(pid: int) -> str:
    """Name a process for a person; its arguments may hold a secret, so they are not shown."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    return "gone"

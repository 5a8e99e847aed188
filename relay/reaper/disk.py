"""The disk that Relay's worktrees of this repository use, and room for new ones: the oldest that may go, go first."""

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import lock
from relay.reaper import homes, look
from relay.reaper.look import Run
from relay.reaper.tally import Tally
from relay.record import strict

SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]i?B|B)", re.IGNORECASE)
UNITS: Final = "bkmgt"
BLOCK: Final = 512
"""Bytes of the blocks that `st_blocks` counts (stat(2))."""


def limit(text: str | None, where: str = "relay.toml") -> int | None:
    """Return a size such as `20GB`, `500MB` or `1.5 GiB` in bytes; `RelayError` for any other text."""
    if text is None:
        return None
    found = SIZE.fullmatch(text.strip())
    if found is None:
        hint = 'write it like this: max_disk = "20GB", "500MB" or "1.5GiB"'
        raise strict.refusal(where, f"`reap.max_disk` is `{text}`, which is no size", hint)
    unit = found[2].lower()
    size = int(float(found[1]) * (1024 if "i" in unit else 1000) ** UNITS.index(unit[0]))
    if size <= 0:
        raise strict.refusal(where, f"`reap.max_disk` is `{text}`, it must be above 0")
    return size


def shown(size: int) -> str:
    """Write a size as people read it."""
    number, unit = float(size), 0
    while number >= 1000 and unit < len(UNITS) - 1:  # noqa: PLR2004 - the step from one unit to the next
        number, unit = number / 1000, unit + 1
    return f"{number:.3g} {UNITS[unit].upper()}B" if unit else f"{size} B"


def used(path: Path) -> int:
    """Return the bytes that a folder takes on disk; links are not followed, and a second name costs nothing."""
    total, seen = 0, set[tuple[int, int]]()
    folders = [str(path)]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                state = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if (state.st_dev, state.st_ino) not in seen:
                total += state.st_blocks * BLOCK
                seen.add((state.st_dev, state.st_ino))
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return total


def settle(tally: Tally, runs: Iterable[Run], wanted: str | None) -> None:
    """Make room where the worktrees use more than `[reap] max_disk`, and raise it where that is not enough."""
    try:
        most = limit(wanted)
    except RelayError as error:
        tally.alert("settings", "max_disk", error.message, "relay doctor")
        return
    top = look.place(tally.ledger)
    if most is None or (total := used(top)) <= most:
        return
    if not tally.alone:  # there may be room once the loop is over
        tally.unsure("disk")
        return
    by_id = {run.id: run for run in runs if run.plan is not None and not run.copied}
    found = [(by_id[name], home) for name, held in look.homes(tally.ledger).items() if name in by_id for home in held]
    for run, home in sorted(found, key=lambda one: homes.rank(*one)):
        size = used(home.path) if total > most else 0
        if size and _evicted(tally, run, home):
            total -= size
    if total > most:
        what = f"the worktrees of this repository use {shown(total)}, and `[reap] max_disk` is {shown(most)}"
        tally.alert("disk", str(top), what, f"du -sh {shlex.quote(str(top))}/*/*")


def _evicted(tally: Tally, run: Run, home: look.Home) -> bool:
    """Remove one under the locks of its run and leg; one that somebody holds stays."""
    if "." in home.path.name or run.held:
        return False
    ledger = tally.ledger
    if tally.dry:
        held = look.locked(ledger.run_lock(run.id)) or look.locked(ledger.leg_lock(run.id, home.leg))
        return not held and homes.evict(tally, run, home)
    try:
        with (
            lock.hold(ledger.run_lock(run.id), "reaping", run.id),
            lock.hold(ledger.leg_lock(run.id, home.leg), "reaping", run.id),
        ):
            return homes.evict(tally, look.again(ledger, run), home)
    except RelayError:
        return False

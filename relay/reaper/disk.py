"""The disk that Relay's worktrees of this repository use, and room for new ones: the oldest that may go, go first."""

import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from relay import caches
from relay.errors import RelayError
from relay.host import lock
from relay.host.lease import CACHE
from relay.reaper import homes, look
from relay.reaper.look import Run
from relay.reaper.tally import Tally
from relay.record import strict

SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]i?B|B)", re.IGNORECASE)
UNITS: Final = "bkmgt"


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


def settle(tally: Tally, runs: Iterable[Run], wanted: str | None) -> None:
    """Make room where the worktrees use more than `[reap] max_disk`, and raise it where that is not enough."""
    try:
        most = limit(wanted)
    except RelayError as error:
        tally.alert("settings", "max_disk", error.message, "relay doctor")
        return
    top = look.place(tally.ledger)
    if most is None or (total := caches.used(top) + caches.used(caches.place(tally.ledger))) <= most:
        return
    if not tally.alone:  # there may be room once the loop is over
        tally.unsure("disk")
        return
    by_id = {run.id: run for run in runs if run.plan is not None and not run.copied}
    found = [(by_id[name], home) for name, held in look.homes(tally.ledger).items() if name in by_id for home in held]
    for run, home in sorted(found, key=lambda one: homes.rank(*one)):
        beside = home.path.with_name(f"{home.path.name}{CACHE}")
        size = caches.used(home.path) + caches.used(beside) if total > most else 0
        if size and _evicted(tally, run, home):
            total -= size
    if total > most:
        total -= _emptied(tally)
    if total > most:
        what = f"the worktrees of this repository use {shown(total)}, and `[reap] max_disk` is {shown(most)}"
        tally.alert("disk", str(top), what, f"du -sh {shlex.quote(str(top))}/*/*")


def _emptied(tally: Tally) -> int:
    """Empty what set-up fetched, which tools fetch again; return the bytes that came free, or would."""
    free = caches.used(caches.place(tally.ledger))
    with suppress(RelayError):  # a set-up that fills them just now comes first
        free = free if tally.dry else caches.empty(tally.ledger)
        if free:
            tally.repair("disk", f"emptied `{caches.place(tally.ledger)}`: what set-up fetched made room")
        return free
    return 0


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

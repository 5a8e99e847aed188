"""What a night is made of: the queue, the purse, the record of a night, and what is raised to a person."""

from typing import Final, Literal

from relay.terms.facts import Process
from relay.terms.words import SCHEMA, Struct

NIGHT_AT: Final = "17 4 * * *"
"""When a night starts by itself: no zone on earth changes its clocks then (pitfalls.md, nightly scheduling)."""

Did = Literal["started", "resumed", "followed", "skipped"]
"""What a night did with a run, or with an entry of the queue."""

NightEnd = Literal["done", "until", "hours", "usd", "tokens", "signal", "preflight", "held", "missed", "bug"]
"""Why a night ended: nothing was left to do; a limit; a signal; something was missing, or held by another; too late;
or a defect of Relay's own."""


class Nightly(Struct, frozen=True, kw_only=True):
    """The purse of a night, by relay.toml: what all its legs together may use, and the local time `HH:MM` it ends."""

    usd: float | None = None
    tokens: int | None = None
    hours: float | None = None
    until: str | None = None


class Schedule(Struct, frozen=True, kw_only=True):
    """When nights start, as a cron line of five fields, and what becomes of one that the machine slept through."""

    at: str = NIGHT_AT
    missed: Literal["once", "skip"] = "once"


class Reap(Struct, frozen=True, kw_only=True):
    """What the reaper holds to: the disk that Relay's worktrees may use (`"20GB"`), and the days a run may wait."""

    max_disk: str | None = None
    wait_days: float = 7


class Entry(Struct, frozen=True, kw_only=True):
    """One spec in the queue; `spec` is an absolute path, or one in the repository from its top.

    `sha256` is that of the text when it was added, for the list alone: a night reads the spec when its turn comes.
    `after` names a run, or a spec that is queued or has a run. Times are stamps in UTC.
    """

    schema: int = SCHEMA
    id: str
    spec: str
    sha256: str
    added: str
    place: int
    priority: int = 0
    after: str | None = None
    not_before: str | None = None


class Item(Struct, frozen=True, kw_only=True):
    """What a night did with one run or entry, and how that stands now; `reason` says why it was skipped, or stopped."""

    did: Did
    run: str | None = None
    spec: str | None = None
    outcome: str = ""
    reason: str = ""
    microusd: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Night(Struct, frozen=True, kw_only=True):
    """The record of one night; without `ended` it goes on, or was killed: `relay`, its process, tells which.

    `base` is the full name of the ref that its runs start from and ship into, as it was settled when the night began.
    `told` is false until a person was told how the night went, or nobody need hear of it.
    """

    schema: int = SCHEMA
    id: str
    started: str
    ended: str | None = None
    ended_by: NightEnd | None = None
    reason: str = ""
    scheduled: bool = False
    base: str = ""
    told: bool = True
    purse: Nightly = Nightly()
    items: tuple[Item, ...] = ()
    alerts: tuple[str, ...] = ()
    relay: Process | None = None
    relay_version: str = ""


class Alert(Struct, frozen=True, kw_only=True):
    """What a person is told of once: what is amiss, since when Relay knows of it, and the command that settles it."""

    schema: int = SCHEMA
    key: str
    kind: str
    what: str
    command: str
    since: str
    run: str | None = None

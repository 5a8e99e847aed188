"""What is under way, cheap enough to be asked every second: in a run, in a night, in the queue; and a screen of it."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from relay import nights, queue
from relay.errors import RelayError
from relay.host import cells, clock, pids, term
from relay.record import config, transcript
from relay.record import ledger as ledgers
from relay.record.config import Config
from relay.record.ledger import Ledger
from relay.report import figures
from relay.report import run as runs
from relay.rules import night as rules
from relay.terms import Night, Plan, Struct

STALE = 10.0
"""Seconds after which the queue is looked at again though nobody changed it: an hour may have come."""


class Doing(Struct, frozen=True, kw_only=True):
    """A leg in progress: who takes it, since how many seconds, and what it is known to have used so far."""

    leg: str
    phase: str
    agent: str
    seconds: float
    turns: int
    tokens: int
    microusd: int | None

    @property
    def told(self) -> str:
        """Say it in a cell."""
        return f"{self.leg} by {self.agent}" if self.agent else self.leg

    @property
    def used(self) -> str:
        """Say what was used so far: turns and tokens, where the agent tells them."""
        parts = [runs.count(self.turns, "turn")] if self.turns else []
        parts += [f"{figures.tokens(self.tokens)} tokens"] if self.tokens else []
        parts += [runs.dollars(self.microusd)] if self.microusd else []
        return ", ".join(parts)


def doing(ledger: Ledger, plan: Plan) -> Doing | None:
    """Return what is under way in a run; None where nothing is, or its start cannot be read at this moment."""
    try:
        begun = [start for start in ledgers.unsealed(ledger, plan.run) if pids.alive(start.relay)]
    except (OSError, RelayError):
        return None
    if not begun:
        return None
    start = begun[-1]
    agent = next((phase.agent for phase in plan.phases if phase.name == start.phase), "")
    usage, cost = transcript.used(ledger.leg(plan.run, start.leg) / "transcript.jsonl")
    return Doing(
        leg=start.leg,
        phase=start.phase or start.act or "",
        agent=agent,
        seconds=max(0.0, (clock.now() - clock.parse(start.started)).total_seconds()),
        turns=usage.turns,
        tokens=usage.input + usage.output,
        microusd=cost,
    )


def night(ledger: Ledger) -> str:
    """Say what the night in progress used of its purse, by the legs that are sealed; `""` where none goes on."""
    found = nights.newest(ledger) if nights.going(ledger) is not None else None
    if found is None or found.ended is not None:
        return ""
    return f"night {found.id}: {'; '.join(_purse(found))}"


def _purse(found: Night) -> Iterator[str]:
    given, ran = found.purse, sum(item.did != "skipped" for item in found.items)
    yield runs.count(ran, "run") if ran else "nothing ran yet"
    money, tokens = sum(item.microusd for item in found.items), sum(item.tokens for item in found.items)
    if money or given.usd is not None:
        limit = f" of ${given.usd:.2f}" if given.usd is not None else ""
        yield f"{runs.dollars(money)}{limit}, as far as costs are known"
    if tokens or given.tokens is not None:
        limit = f" of {figures.tokens(given.tokens)}" if given.tokens is not None else ""
        yield f"{figures.tokens(tokens)}{limit} tokens"
    began, ends = clock.parse(found.started), []
    if given.hours is not None:
        ends.append(began + timedelta(hours=given.hours))
    with suppress(RelayError):
        ends += [rules.moment(given.until, began)] if given.until is not None else []
    yield f"since {figures.hour(found.started)}" + "".join(f" until {_hour(end)}" for end in sorted(ends)[:1])


def _hour(end: datetime) -> str:
    return figures.hour(clock.stamp(end))


class Waiting:
    """What waits for a night, looked at anew where the queue or the runs changed, and now and then."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: tuple[object, str] = (None, "")

    @property
    def told(self) -> str:
        """Say how many specs wait, and which one is next; `""` where none does."""
        changed = 0
        with suppress(OSError):
            changed = self._ledger.queue.stat().st_mtime_ns
        stands = (changed, len(ledgers.runs(self._ledger)), clock.monotonic() // STALE)
        if self._known[0] != stands:
            self._known = (stands, self._look())
        return self._known[1]

    def _look(self) -> str:
        settings, commit = Config(), ""
        with suppress(RelayError):  # then what relay.toml lists is not known, and no night would begin
            settings, _, commit = config.load(self._ledger.repo)
        try:
            line = queue.line(self._ledger, settings, commit)
        except (RelayError, OSError):
            return ""
        if not line:
            return ""
        due = next((f"next {one.spec}" for one in line if not one.blocked), "")
        first = f"none now: {line[0].spec} {figures.local(line[0].blocked)}"
        return f"queue: {runs.count(len(line), 'spec waits', 'specs wait')}, {due or first}"


def screen(rows: Sequence[Sequence[str]], headers: Sequence[str], said: Sequence[str], *, first: bool) -> list[str]:
    """Lay out what the terminal has room for, as `relay status` would: the newest rows, and what is said below them.

    `first` says that the first row goes before the others. Rows that have no room are counted; a column that is empty
    is left out.
    """
    full = [at for at in range(len(headers)) if any(row[at] for row in rows)]
    rows, headers = [[row[at] for at in full] for row in rows], [headers[at] for at in full]
    size = shutil.get_terminal_size()
    below = [line for text in said for line in cells.folded(" ".join(text.split()), size.columns)][
        : max(size.lines // 2, 1)
    ]
    head, *blocks = term.laid(rows, headers, size.columns) if rows else [["no open runs"]]

    def tall(lines: Sequence[str]) -> int:
        return sum(max(1, -(-cells.wide(line) // size.columns)) for line in lines)

    def newest(room: int) -> tuple[list[list[str]], int]:
        kept, rest = (blocks[:1], blocks[1:]) if first else ([], blocks)
        at, left = len(rest), room - sum(map(tall, kept))
        while at and (tall(rest[at - 1]) <= left or not (kept or rest[at:])):  # one is shown in any case
            at -= 1
            left -= tall(rest[at])
        return [*kept, *rest[at:]], at

    shown, older = newest(size.lines - tall(head) - (1 + tall(below)) * bool(below))
    if older:
        shown, older = newest(size.lines - tall(head) - 2 - tall(below))
        below.insert(0, f"{runs.count(older, 'older run')} not shown: relay status")
    lines = [*head, *(line for block in shown for line in block)]
    while len(lines) > 1 and tall(lines) > size.lines - (1 + tall(below)) * bool(below):
        lines.pop()
    return [*lines, *([""] if below else []), *below]

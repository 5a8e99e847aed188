"""The night itself: what waits is resumed, then the queue is taken, until nothing is left or a limit is reached."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import PurePath

from relay import nights, queue, reaper, runner, ship
from relay.errors import Exit, Interrupted, RelayError
from relay.host import clock, lock, term
from relay.nightly import agenda, closing, preflight, purse, watch
from relay.nightly.book import Book
from relay.nightly.preflight import Agents
from relay.record import freeze
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import night as rules
from relay.rules.night import Candidate
from relay.schedule import due as due_at
from relay.schedule import installed, zones
from relay.schedule.job import Missed
from relay.telling import Teller
from relay.terms import Item, Night, Nightly
from relay.terms.nights import Did, NightEnd

DOZE = 5.0
"""Seconds of sleep after which a night looks again: the clock may have jumped, the queue grown, a person ended."""


def run(ledger: Ledger, asked: Nightly, *, scheduled: bool = False) -> Night:
    """Be one night, and return its record; `asked` goes before relay.toml's purse.

    `RelayError` (exit 75) where another night, or a run of a person, holds the repository: that is recorded, too. A
    signal seals the leg and the record, and passes through as `Interrupted`.
    """
    due, missed = _schedule(ledger) if scheduled else (None, "once")
    if due is not None and missed == "skip" and rules.missed(due, clock.now()):
        late = f"it was due at {clock.stamp(due)}, more than {rules.LATE.seconds // 60} minutes ago"
        return nights.none(ledger, asked, scheduled=True, ended_by="missed", reason=late)
    with _alone(ledger, asked, scheduled=scheduled), runner.signals():
        book = Book(ledger, asked, scheduled=scheduled)
        try:
            book.close(*_night(ledger, book, asked, due))
        except Interrupted as interrupted:
            book.close("signal", f"ended by {signal.Signals(interrupted.signum).name}")
            closing.tell(ledger, book.night)
            raise
        except Exception as error:
            book.close("bug", f"this is a bug in relay: {type(error).__name__}: {str(error)[:200]}")
            closing.tell(ledger, book.night)
            raise
        closing.tell(ledger, book.night)
        return book.night


def _night(ledger: Ledger, book: Book, asked: Nightly, due: datetime | None) -> tuple[NightEnd, str]:
    """Look whether all is there, reap, look after proposals, work, and reap; say why the night ended."""
    try:
        settings, commit = preflight.settings(ledger)
        book.give(purse.of(settings.nightly, asked), due)
    except RelayError as error:
        return "preflight", watch.said(error)
    if full := preflight.disk(ledger):
        return "preflight", full
    agents = Agents(ledger)
    agents.missing(preflight.used(ledger, settings, commit))
    _reap(ledger, book)
    _follow(ledger, book)
    try:
        ended = _work(ledger, book, agents)
    except RelayError as error:
        ended = ("preflight", watch.said(error))
    _reap(ledger, book)
    return ended


def _work(ledger: Ledger, book: Book, agents: Agents) -> tuple[NightEnd, str]:
    """Take what comes next, one at a time, until nothing is left or a limit is reached."""
    while True:
        with suppress(RelayError):  # what was taken is passed over anyway, as long as its file stands
            queue.settle(ledger)
        limit, full = book.over(), preflight.disk(ledger)
        if limit or full:
            _left(ledger, book, full or f"the night came to its limit first: {limit}")
            return ("preflight", full) if full else (limit or "done", "")
        if book.end is not None and lock.holder(ledger.lock) is not None:
            clock.pause(DOZE)  # a person's run goes first, and where the night has an end it can wait for that
        elif (open_one := _due(ledger, book, agents)) is not None:
            _resume(ledger, book, open_one)
        elif (queued := _next(ledger, book)) is not None:
            _take(ledger, book, agents, *queued)
        elif (reset := _reset(ledger, book)) is not None:
            term.detail(f"waiting for a quota until {clock.stamp(reset)}")
            clock.pause(max(0.0, min(DOZE, (reset - clock.now()).total_seconds())))
        else:
            return "done", ""


def _due(ledger: Ledger, book: Book, agents: Agents) -> agenda.Open | None:
    """Return the oldest run that goes on by itself; of one whose agents are missing it is written down why it stays."""
    for one in agenda.runs(ledger):
        if one.goes_on and book.may(one.plan.run):
            missing = agents.missing(one.plan.agents)
            if not missing:
                return one
            book.skip(one.plan.run, missing, run=one.plan.run, spec=one.plan.source, waits=False)
    return None


def _resume(ledger: Ledger, book: Book, one: agenda.Open) -> None:
    """Go on with a run."""
    run = one.plan.run
    term.say(f"resuming {term.style(run, 'bold')}: {one.plan.title}")
    with watch.going(ledger, book, run, "resumed", run=run, spec=one.plan.source) as tell:
        tell.opened(run)
        runner.drive(ledger, run, book.order, tell)


def _next(ledger: Ledger, book: Book) -> tuple[Candidate, str] | None:
    """Return the first spec whose turn it is, and the base commit; of those before it that stay it is written why."""
    line, commit = _line(ledger, book)
    turns = (at for at, one in enumerate(line) if not one.blocked and book.may(_key(one)))
    at = next(turns, len(line))
    book.skip_all((_key(one), one.spec, one.blocked, one.waits) for one in line[:at] if one.blocked)
    return (line[at], commit) if at < len(line) else None


def _line(ledger: Ledger, book: Book) -> tuple[tuple[Candidate, ...], str]:
    """Return what is queued, and the base commit; where that cannot be told it is written down why."""
    try:
        settings, commit = preflight.settings(ledger)
        return queue.line(ledger, settings, commit), commit
    except RelayError as error:
        book.skip_all((entry.id, entry.spec, error.message, False) for entry in queue.entries(ledger))
        return (), ""


def _key(one: Candidate) -> str:
    """Return what a spec's line goes by before there is a run."""
    return one.spec if one.entry is None else one.entry.id


def _take(ledger: Ledger, book: Book, agents: Agents, one: Candidate, commit: str) -> None:
    """Make a run of a spec, and drive it; what would not run is written down with the reason."""
    entry = None if one.entry is None else one.entry.id
    with watch.going(ledger, book, _key(one), "started", spec=one.spec) as tell:
        task = queue.read(ledger, one, commit)
        frozen = freeze.freeze(ledger.repo, task, PurePath(one.spec).name, source=one.spec, queued=entry)
        if missing := agents.missing(frozen.plan.agents):
            raise RelayError(missing, hint="relay doctor", exit_code=Exit.HUMAN)
        runner.start(ledger, frozen, book.order, tell)


def _reset(ledger: Ledger, book: Book) -> datetime | None:
    """Return the first reset of a quota that is worth waiting for; what waits for one is written down."""
    waiting = {}
    for one in agenda.runs(ledger):
        if one.reset is not None:
            run, when = one.plan.run, clock.stamp(one.reset)
            book.skip(run, f"quota until {when}", run=run, spec=one.plan.source, waits=True)
            if book.may(run):
                waiting[run] = one.reset
    return rules.asleep(waiting, book.end)


def _left(ledger: Ledger, book: Book, why: str) -> None:
    """Write down what the night did not come to any more, each with the reason."""
    for one in agenda.runs(ledger):
        if one.goes_on and book.may(one.plan.run):
            book.skip(one.plan.run, why, run=one.plan.run, spec=one.plan.source, waits=True)
    line, _ = _line(ledger, book)
    book.skip_all((_key(one), one.spec, one.blocked or why, one.waits or not one.blocked) for one in line)


def _follow(ledger: Ledger, book: Book) -> None:
    """Look after the proposals that are out: a merge, or its refusal, is sealed; there is time to confirm it."""
    for one in agenda.runs(ledger):
        if not one.proposed:
            continue
        run, reason, sealed = one.plan.run, "", None
        try:
            with lock.hold(ledger.run_lock(run), "following", run):
                sealed = ship.follow(ledger, one.plan, ledgers.receipts(ledger, run), verify=True)
        except Exception as error:  # noqa: BLE001 - one forge that cannot be asked is no reason to leave the others
            reason = f"its proposal cannot be looked at now: {watch.said(error)}"
        if sealed is not None:
            Teller.sealed(sealed)
        if sealed is not None or reason:
            outcome, why = watch.standing(ledger, run)
            did: Did = "followed" if sealed is not None else "skipped"
            book.put(run, Item(did=did, run=run, spec=one.plan.source, outcome=outcome, reason=reason or why))


def _reap(ledger: Ledger, book: Book) -> None:
    """Repair or raise what nobody owns; what the reaper cannot do ends no night."""
    try:
        book.raised(reaper.reap(ledger, dry_run=False))
    except Exception as error:  # noqa: BLE001 - as the line above says
        watch.said(error)


def _schedule(ledger: Ledger) -> tuple[datetime | None, Missed]:
    """Return when a night was due last, and what becomes of one that begins too late.

    What was installed says it, and relay.toml where nothing was.
    """
    try:
        found = installed.read(ledger)
        wanted = preflight.settings(ledger)[0].schedule if found is None else found.job
        here = clock.now().astimezone(zones.of(found.job.zone if found else None))
        skips = found is not None and found.method == "systemd"
        return due_at.last(due_at.read(wanted.at), here, skips=skips), wanted.missed
    except RelayError:
        return None, "once"  # the night itself says so, with a record


@contextmanager
def _alone(ledger: Ledger, asked: Nightly, *, scheduled: bool) -> Iterator[None]:
    """Be the only night of the repository, and begin only where no run of a person holds it."""
    with ExitStack() as held:
        try:
            held.enter_context(nights.hold(ledger))
            with lock.hold(ledger.lock, "relay nightly"):
                pass
        except RelayError as error:
            if error.exit_code == Exit.HELD:
                nights.none(ledger, asked, scheduled=scheduled, ended_by="held", reason=error.message)
            raise
        yield

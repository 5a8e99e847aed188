"""The night itself: what waits is resumed, then the queue is taken, until nothing is left or a limit is reached."""

import signal
from contextlib import ExitStack, suppress
from datetime import datetime
from typing import Final

from relay import nights, queue, reaper, runner, ship
from relay.errors import Exit, Interrupted, RelayError
from relay.host import clock, lock, term
from relay.nightly import agenda, closing, preflight, purse, stranded, watch
from relay.nightly.base import Base
from relay.nightly.book import Book
from relay.nightly.ears import Ears
from relay.nightly.preflight import Agents
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

PATIENCE: Final = 3600.0
"""Seconds for which a night without an end waits for a run of a person that began in the midst of it."""


def run(ledger: Ledger, asked: Nightly, *, scheduled: bool = False) -> tuple[Night, Exit]:
    """Be one night, and return its record, and how Relay exits; `asked` goes before relay.toml's purse.

    `RelayError` (exit 75) where another night, or a run of a person, holds the repository: that is recorded, too. A
    signal seals the leg and the record, and passes through as `Interrupted`, once a person was told.
    """
    due, missed = _schedule(ledger) if scheduled else (None, "once")
    if due is not None and missed == "skip" and rules.missed(due, clock.now()):
        late = f"it was due at {clock.stamp(due)}, more than {rules.LATE.seconds // 60} minutes ago"
        return nights.none(ledger, asked, scheduled=True, ended_by="missed", reason=late), Exit.OK
    with ExitStack() as held:
        ears = Ears()
        book = _begun(ledger, held, ears, asked, scheduled=scheduled)
        failed: BaseException | None = None
        try:
            with ears.listening():
                ended = _night(ledger, book, asked, due)
        except Interrupted as interrupted:
            ended, failed = ("signal", f"ended by {signal.Signals(interrupted.signum).name}"), interrupted
        except Exception as error:  # noqa: BLE001 - it is raised again, once a person was told
            ended, failed = ("bug", f"this is a bug in relay: {type(error).__name__}: {str(error)[:200]}"), error
        book.close(*ended)
        if closing.tell(ledger, book.night):
            book.told()
        if failed is not None:
            raise failed
        if ears.came is not None:
            raise Interrupted(ears.came)
        return book.night, book.code


def _begun(ledger: Ledger, held: ExitStack, ears: Ears, asked: Nightly, *, scheduled: bool) -> Book:
    """Be the only night of the repository, begin only where no run of a person holds it, and open the book.

    Where the disk is so full that not even that can be written down, a person is told all the same.
    """
    try:
        place = ledger.nights / nights.LOCK
        held.enter_context(runner.patient(ledger, place, lambda: nights.hold(ledger)))
        with runner.occupied(ledger, "relay nightly"):
            pass
        held.enter_context(ears.open())
        return Book(ledger, asked, scheduled=scheduled)
    except RelayError as error:
        if error.exit_code == Exit.HELD:
            nights.none(ledger, asked, scheduled=scheduled, ended_by="held", reason=error.message)
        elif full := preflight.disk(ledger):
            closing.unwritten(ledger, full)
            raise RelayError(full, hint="make room, then: relay nightly", exit_code=Exit.HUMAN) from None
        raise


def _night(ledger: Ledger, book: Book, asked: Nightly, due: datetime | None) -> tuple[NightEnd, str]:
    """Look whether all is there, reap, look after proposals, work, and reap; say why the night ended."""
    try:
        base = Base(ledger)
        book.give(base.ref, purse.of(base.settings.nightly, asked), due)
    except RelayError as error:
        book.code = error.exit_code
        return "preflight", watch.said(error)
    if full := preflight.disk(ledger):
        book.code = Exit.HUMAN
        return "preflight", full
    agents = Agents(ledger)
    agents.missing(preflight.used(ledger, base.settings, base.commit))
    _reap(ledger, book)
    _follow(ledger, book)
    try:
        ended = _work(ledger, book, base, agents)
    except RelayError as error:
        book.code = error.exit_code
        ended = ("preflight", watch.said(error))
        _left(ledger, book, base, ended[1], waits=False)
    _reap(ledger, book)
    return ended


def _work(ledger: Ledger, book: Book, base: Base, agents: Agents) -> tuple[NightEnd, str]:
    """Take what comes next, one at a time, until nothing is left or a limit is reached."""
    free = clock.monotonic()
    while True:
        with suppress(RelayError):  # what was taken is passed over anyway, as long as its file stands
            queue.settle(ledger)
        if (over := _over(ledger, book, base)) is not None:
            return over
        holder, taken = lock.holder(ledger.lock), True
        open_one = _due(ledger, book, agents, holder.run if holder is not None else "")
        queued = _next(ledger, book, base) if open_one is None else None
        if open_one is None and queued is None:
            if (reset := _reset(ledger, book)) is None:
                return "done", ""
            book.dozes(reset)
            clock.pause(max(0.0, min(DOZE, (reset - clock.now()).total_seconds())))
        elif holder is not None:
            taken = False  # a person's run goes first
        elif open_one is not None:
            taken = _resume(ledger, book, open_one)
        elif queued is not None:
            taken = _take(ledger, book, base, agents, *queued)
        if taken:
            free = clock.monotonic()
        elif book.end is None and clock.monotonic() - free > PATIENCE:
            why = "the repository was held for an hour"
            book.code = Exit.HELD
            _left(ledger, book, base, why)
            return "held", why
        else:
            clock.pause(DOZE)


def _over(ledger: Ledger, book: Book, base: Base) -> tuple[NightEnd, str] | None:
    """Say why a night goes no further: a limit, a full disk, or a breach that moved the base; else None."""
    limit, full = book.over(), preflight.disk(ledger)
    wrong = full or agenda.spoiled(ledger, base.ref)
    if limit or wrong:
        book.code = Exit.HUMAN if full else Exit.BREACH if wrong else Exit.OK
        _left(ledger, book, base, wrong or f"the night came to its limit first: {limit}")
        return ("preflight", wrong) if wrong else (limit or "done", "")
    return None


def _due(ledger: Ledger, book: Book, agents: Agents, held: str) -> agenda.Open | None:
    """Return the oldest run that goes on by itself, and that no person's loop has: of the others it is written why.

    One whose agents are missing stays, and so does one that was begun before the repository was moved.
    """
    for one in agenda.runs(ledger):
        run = one.plan.run
        if one.goes_on and run != held and book.may(run):
            why = stranded.skipped(ledger, run) or agents.missing(one.plan.agents)
            if not why:
                return one
            book.skip(run, why, run=run, spec=one.plan.source, waits=False)
    return None


def _resume(ledger: Ledger, book: Book, one: agenda.Open) -> bool:
    """Go on with a run; tell whether nobody held the repository."""
    run = one.plan.run
    term.say(f"resuming {term.style(run, 'bold')}: {one.plan.title}")
    with watch.going(ledger, book, run, "resumed", run=run, spec=one.plan.source) as tell:
        tell.opened(run)
        runner.drive(ledger, run, book.order, tell)
    return not tell.spared


def _next(ledger: Ledger, book: Book, base: Base) -> tuple[Candidate, str] | None:
    """Return the first spec whose turn it is, and the base commit; of those before it that stay it is written why."""
    try:
        settings, commit = base.look()
    except RelayError:
        if any(book.may(_key(one)) for one in queue.line(ledger, base.settings, base.commit)):
            raise
        return None  # nothing is left that would want it
    line = queue.line(ledger, settings, commit)
    turns = (at for at, one in enumerate(line) if not one.blocked and book.may(_key(one)))
    at = next(turns, len(line))
    book.skip_all((_key(one), one.spec, one.blocked, one.waits) for one in line[:at] if one.blocked)
    return (line[at], commit) if at < len(line) else None


def _key(one: Candidate) -> str:
    """Return what a spec's line goes by before there is a run."""
    return one.spec if one.entry is None else one.entry.id


def _take(ledger: Ledger, book: Book, base: Base, agents: Agents, one: Candidate, commit: str) -> bool:
    """Make a run of a spec, and drive it; what would not run is written down with the reason.

    Tells whether nobody held the repository.
    """
    entry = None if one.entry is None else one.entry.id
    with watch.going(ledger, book, _key(one), "started", spec=one.spec) as tell:
        task = queue.read(ledger, one, commit)
        frozen = base.freeze(task, one.spec, entry)
        if missing := agents.missing(frozen.plan.agents):
            raise RelayError(missing, hint="relay doctor", exit_code=Exit.HUMAN)
        runner.start(ledger, frozen, book.order, tell)
    return not tell.spared


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


def _left(ledger: Ledger, book: Book, base: Base, why: str, *, waits: bool = True) -> None:
    """Write down what the night did not come to any more, each with the reason, and whether time will settle that."""
    for one in agenda.runs(ledger):
        if one.goes_on and book.may(one.plan.run):
            book.skip(one.plan.run, why, run=one.plan.run, spec=one.plan.source, waits=waits)
    with suppress(RelayError):
        base.look()  # where that cannot be, what stood there before is what was not come to
    try:
        line = queue.line(ledger, base.settings, base.commit)
    except RelayError:
        book.skip_all((entry.id, entry.spec, why, waits) for entry in queue.entries(ledger))
        return
    blocked = ((_key(one), one.spec, one.blocked or why, one.waits if one.blocked else waits) for one in line)
    book.skip_all(blocked)


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
        book.raised(stranded.told(ledger))
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

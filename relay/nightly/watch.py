"""One run on its way through a night: told like every run, its line in the book, and no fault of it ends the night."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

import msgspec

from relay import bug, nights, runner, telling
from relay.errors import Exit, Interrupted, RelayError
from relay.host import clock, term
from relay.nightly.book import Book
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import night
from relay.rules import plan as rules
from relay.terms import Item, Plan, Receipt
from relay.terms.nights import Did

PATIENCE: Final = 10.0
"""Seconds for which whoever stopped a run is given time to write that down."""

GOING: Final = frozenset({"open", "waiting", "needs-human"})
"""Outcomes of a run that can still be stopped."""


class Watch(telling.Teller):
    """Tells a run as every loop does, and keeps its line in the book."""

    def __init__(self, ledger: Ledger, book: Book, key: str, item: Item) -> None:
        self._ledger, self._book, self._key = ledger, book, key
        self._had, self._item = book.line(key) or item, item
        self._known = 0
        self.spared = False

    @property
    def run(self) -> str | None:
        """Return the run, as soon as there is one."""
        return self._item.run

    def opened(self, run: str) -> None:
        """Begin the line of a run that is there already: what was sealed before tonight does not count."""
        self._known = len(ledgers.receipts(self._ledger, run))
        self._known = len(runner.settled(self._ledger, ledgers.read_plan(self._ledger, run), telling.Teller()))
        self._note("open")

    def begun(self, plan: Plan, jail: str) -> None:  # type: ignore[override]
        """Put the run's id into the line as soon as it has one; what holds for all runs is said of the first one."""
        if self._said(plan):
            term.event("begin", run=plan.run, title=plan.title, base=plan.base)
            term.say(f"run {term.style(plan.run, 'bold')}: {plan.title}")
        else:
            telling.Teller.begun(plan, jail)
        self._book.became(self._key, plan.run)
        self._key, self._item = plan.run, msgspec.structs.replace(self._item, run=plan.run)
        self._note("open")

    def sealed(self, receipt: Receipt) -> None:  # type: ignore[override]
        """Count what a leg used, as soon as it is sealed."""
        telling.Teller.sealed(receipt)
        self._note("open")

    def _said(self, plan: Plan) -> bool:
        """Tell whether a run that began earlier tonight had the same jail: then it was said what does not hold it."""
        earlier = [item.run for item in self._book.night.items if item.did == "started" and item.run is not None]
        with suppress(RelayError, OSError):
            return any(ledgers.read_plan(self._ledger, run).jail.mode == plan.jail.mode for run in earlier)
        return False

    def passed_over(self) -> None:
        """Note that another one has the run, or the repository: the night did nothing with it."""
        self._item = msgspec.structs.replace(self._item, did="skipped")

    def spare(self) -> None:
        """Note that another process held the repository first: nothing was done, and it may be tried again."""
        self.spared = True
        self._book.spare(self._key)

    def stopped(self) -> str:
        """Wait until whoever stopped the run has sealed that, and say so; one that was over by then is not stopped."""
        over = clock.monotonic() + PATIENCE
        while (outcome := standing(self._ledger, self.run or "")[0]) in GOING and clock.monotonic() < over:
            clock.pause(0.05)
        return "a person stopped it" if outcome == "stopped" else "a person wanted to stop it"

    def settle(self, reason: str) -> None:
        """Write down how the run stands now, or why there is none."""
        run = self._item.run
        if run is None:
            self._book.put(self._key, msgspec.structs.replace(self._item, did="skipped", reason=reason))
            return
        with suppress(Exception):  # whatever ended its loop may have left a leg that nobody owns, or ends this as well
            runner.settled(self._ledger, ledgers.read_plan(self._ledger, run), telling.Teller())
        outcome, why = standing(self._ledger, run)
        self._note(outcome, reason or why)

    def _note(self, outcome: str, reason: str = "") -> None:
        """Write the line: what was used before, tonight, and what the receipts since then say."""
        legs: list[Receipt] = []
        with suppress(RelayError):
            chain = ledgers.receipts(self._ledger, self._item.run or "")
            legs = [sealed for sealed in chain[self._known :] if sealed.kind != "act"]
        money, tokens = night.used(legs)
        item = msgspec.structs.replace(
            self._item,
            outcome=outcome,
            reason=reason,
            microusd=self._had.microusd + money,
            tokens=self._had.tokens + tokens,
            seconds=round(self._had.seconds + sum(leg.seconds for leg in legs), 3),
        )
        self._book.put(self._key, item)


def standing(ledger: Ledger, run: str) -> tuple[str, str]:
    """Return how a run stands, and why it goes no further by itself."""
    try:
        plan, chain = ledgers.read_plan(ledger, run), ledgers.receipts(ledger, run)
    except (RelayError, OSError) as error:
        return "unreadable", str(error)
    step, why = rules.next_leg(plan, chain), ""
    match step:
        case rules.Human():
            why = step.text
        case rules.Wait():
            why = f"quota until {step.until}"
        case rules.Go() if chain and chain[-1].ended_by == "interrupted":
            why = chain[-1].problem or ""
    return rules.outcome(step), " ".join(why.split())


@contextmanager
def going(
    ledger: Ledger, book: Book, key: str, did: Did, *, run: str | None = None, spec: str | None = None
) -> Iterator[Watch]:
    """Take up a run inside a `with` block: its line follows it, and nothing that goes wrong there ends the night."""
    book.take(key)
    watch, reason = Watch(ledger, book, key, Item(did=did, run=run, spec=spec)), ""
    try:
        with _stoppable(ledger, watch):
            yield watch
    except runner.OccupiedError:
        watch.spare()
    except Interrupted as interrupted:
        if interrupted.signum != nights.STOP:
            raise
        reason = watch.stopped()
    except Exception as error:  # noqa: BLE001 - what goes wrong in one run is no reason to leave the others
        reason = said(error)
        if isinstance(error, RelayError) and error.exit_code == Exit.HELD:
            watch.passed_over()
    finally:
        if not watch.spared:
            watch.settle(reason)


@contextmanager
def _stoppable(ledger: Ledger, watch: Watch) -> Iterator[None]:
    """Let a person end this very run inside a `with` block, once, and the night goes on."""
    came = False

    def end(signum: int, _frame: FrameType | None) -> None:
        nonlocal came
        if not came and nights.stopped(ledger) == watch.run:
            came = True
            raise Interrupted(signum)

    before = signal.signal(nights.STOP, end)
    try:
        yield
    finally:
        signal.signal(nights.STOP, before)


def said(error: Exception) -> str:
    """Say what went wrong, on the terminal too; what nobody explains is a bug, and gets its report."""
    if not isinstance(error, RelayError):
        text = f"this is a bug in relay: {type(error).__name__}: {str(error)[:200]}"
        error = RelayError(text, hint=f"please send the report `{bug.report(error, ['nightly'])}`")
        term.error(error)
        return f"{text}; {error.hint}"
    term.error(error)
    return error.message

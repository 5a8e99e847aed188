"""`relay status`: every run, how it stands, and what it needs; only what `--watch` says of the queue asks git."""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from relay import alerts
from relay.commands import common
from relay.errors import RelayError
from relay.host import clock, lock, term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import figures
from relay.report import run as report
from relay.rules import plan as rules

if TYPE_CHECKING:
    from relay.report.board import Doing

ENDED = frozenset({"shipped", "not-accepted"})

HEADERS = ("run", "outcome", "leg", "score", "time", "cost", "used so far", "needs", "next")
"""The columns of `--watch`; those that have no room stand below each row."""

PAUSE = 1.0
"""Seconds between two looks of `--watch`."""


@click.command("status")
@click.option("-a", "--all", "everything", is_flag=True, help="List ended runs too.")
@click.option("--offline", is_flag=True, help="Do not ask what became of open proposals.")
@click.option("-w", "--watch", is_flag=True, help="Show it live, until Ctrl-C; no forge is asked.")
@common.everywhere
def command(everything: bool, offline: bool, watch: bool) -> int:  # noqa: FBT001 - options
    """List the runs of this repository, newest last; an open proposal is looked after."""
    here = common.ledger()
    if watch:
        return _watch(here, everything=everything)
    rows, hidden = [], 0
    held = _held(here)
    for run in ledgers.runs(here):
        line = _line(here, run, held=run == held)
        if not offline and str(line["outcome"]).startswith("proposed"):
            unasked = common.follow(here, ledgers.read_plan(here, run))
            line = _line(here, run, held=run == held)
            line["needs"] = unasked or line["needs"]
        if (doing := _doing(here, line)) is not None:
            line["leg"] = doing.leg
        term.event("run", **line)
        if _over(line) and not everything:
            hidden += 1
            continue
        leg = doing.told if doing is not None else line["leg"] or "-"
        cells = (leg, line["score"] or "-", figures.local(str(line["needs"])), line["next"])
        rows.append([run, _stands(line), *map(str, cells)])
    if not common.as_json():
        term.table(rows, ("run", "outcome", "leg", "score", "needs", "next") if rows else ())
    if hidden:
        term.say(f"{hidden} ended run{'s' * (hidden != 1)} not listed: relay status --all")
    for kind, text in _raised(here):
        term.event(kind, text=text)
        term.say(term.style(text, "yellow"))
    if not rows and not hidden and not common.as_json():
        term.say("no runs yet")
        term.hint("relay run SPEC")
    return 0


def _held(here: Ledger) -> str | None:
    """Return the run that a loop works on now."""
    holder = lock.holder(here.lock)
    return holder.run if holder is not None else None


def _stands(line: dict[str, object]) -> str:
    said = report.coloured(str(line["outcome"]), forced=bool(line["forced"]))
    return (term.style("breach", "red") if line["breached"] else said) + " (held)" * bool(line["held"])


def _over(line: dict[str, object]) -> bool:
    return str(line["outcome"]).split(" ", maxsplit=1)[0] in ENDED


def _raised(here: Ledger) -> Iterator[tuple[str, str]]:
    """Say what nobody may have seen: alerts that stand, and a night that did not come."""
    from relay.schedule import installed

    if standing := alerts.all(here):
        yield "alerts", f"{report.count(len(standing), 'alert')}, of which the oldest: {standing[0].what}; relay reap"
    if missed := installed.missed(here, clock.now()):
        yield "missed", f"{missed}; relay schedule status"


def _watch(here: Ledger, *, everything: bool) -> int:
    """Show all runs again and again; that the person ends it is its good end."""
    if common.as_json():
        raise RelayError("`--watch` is for people, and `--json` is for programs", hint="relay status --json")
    from relay.report import board

    lines, waiting = Lines(here), board.Waiting(here)
    try:
        with term.board() as show:
            while True:
                lines.held = _held(here)
                rows = [row for run in ledgers.runs(here) if (row := _row(lines, run, everything=everything))]
                rows.sort(key=lambda row: row[0] != lines.held)
                said = [board.night(here), waiting.told, *(term.style(text, "yellow") for _, text in _raised(here))]
                first = bool(rows) and rows[0][0] == lines.held
                show(board.screen(rows, HEADERS, [text for text in said if text], first=first))
                clock.pause(PAUSE)
    except KeyboardInterrupt:
        return 0


class Lines:
    """The lines of the runs, each derived anew when one of its receipts is, and not at every look."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.held: str | None = None
        self._known: dict[str, tuple[object, dict[str, object]]] = {}

    def of(self, run: str) -> dict[str, object]:
        """Return the line of a run."""
        stands = (run == self.held, *self._stamps(run))
        before, line = self._known.get(run, (None, {}))
        if before != stands:
            line = _line(self.ledger, run, held=run == self.held)
            self._known[run] = (stands, line)
        return line

    def _stamps(self, run: str) -> Iterator[tuple[str, int, int]]:
        """Yield what tells that a plan or a receipt is another one; both are renamed into place."""
        legs = [self.ledger.leg(run, leg) / "receipt.json" for _, leg in ledgers.numbered(self.ledger, run)]
        for path in (self.ledger.folder(run) / "plan.toml", *legs):
            with suppress(OSError):
                found = path.stat()
                yield str(path), found.st_ino, found.st_mtime_ns


def _doing(here: Ledger, line: dict[str, object]) -> "Doing | None":
    """Return the leg that is under way in the run of a line, where a loop works on it."""
    if not line["held"] or line["outcome"] == "unreadable":
        return None
    from relay.report import board

    return board.doing(here, ledgers.read_plan(here, str(line["run"])))


def _row(lines: Lines, run: str, *, everything: bool) -> list[str] | None:
    """Return a run's line on the board, None where it is over and that is not asked for."""
    line = lines.of(run)
    if _over(line) and not everything:
        return None
    doing = _doing(lines.ledger, line)
    spent = int(str(line["cost_microusd"])) + ((doing.microusd or 0) if doing is not None else 0)
    return [
        run,
        _stands(line),
        doing.told if doing is not None else str(line["leg"] or "-"),
        str(line["score"] or "-"),
        figures.span(doing.seconds if doing is not None else float(str(line["seconds"]))),
        figures.Spent(microusd=spent, unknown=not line["cost_complete"]).price,
        doing.used if doing is not None else "",
        figures.local(report.near(run, str(line["needs"]))),
        str(line["next"]),
    ]


def _line(here: Ledger, run: str, *, held: bool) -> dict[str, object]:
    """Derive one run's line from its receipts; a run that cannot be read says so instead of hiding the others."""
    try:
        plan, chain = ledgers.read(here, run)
    except RelayError as error:
        return {
            "run": run,
            "outcome": "unreadable",
            "forced": False,
            "breached": False,
            "held": held,
            "leg": None,
            "score": None,
            "rounds": 0,
            "cost_microusd": 0,
            "cost_complete": False,
            "seconds": 0.0,
            "needs": error.message,
            "next": f"relay verify {run}",
        }
    step = rules.next_leg(plan, chain)
    legs = [receipt for receipt in chain if receipt.kind != "act"]
    return {
        "run": run,
        "outcome": rules.standing(plan, step),
        "forced": report.forced(chain, step),
        "breached": isinstance(step, rules.Human) and step.reason == "breach",
        "held": held,
        "leg": chain[-1].leg if chain else None,
        "score": next((receipt.score for receipt in reversed(legs) if receipt.score), None),
        "rounds": chain[-1].round if chain else 1,
        "cost_microusd": sum(receipt.cost_microusd or 0 for receipt in legs),
        "cost_complete": all(receipt.cost_microusd is not None for receipt in legs),
        "seconds": round(sum(receipt.seconds for receipt in legs), 3),
        "needs": report.needs(step, held=held),
        "next": "" if held else common.next_command(run, step).splitlines()[0],
    }

"""`relay stats`: what all runs came to, as tables, as JSON lines, or as a page with its plot."""

import click
import msgspec

from relay.commands import common
from relay.host import files, term
from relay.record import ledger as ledgers
from relay.report import stats
from relay.report.figures import Spent
from relay.report.stats import Stats, Use


@click.command("stats")
@click.option("--html", "file", metavar="FILE", help="Write a page with a plot to FILE; `-` is stdout.")
@common.everywhere
def command(file: str | None) -> int:
    """Count over all runs: how many settle, in how many rounds, minutes and money, what findings were worth."""
    here = common.ledger()
    runs = ledgers.runs(here)
    if not runs and file is None:
        term.say("no runs yet")
        term.hint("relay run SPEC")
        return 0
    counted = stats.count(here, runs)
    if file is not None:
        from relay.report import page

        data = page.stats(here, counted).encode("utf-8", "replace")
        if file == "-":
            term.raw(data)
            return 0
        path = common.folder() / file
        files.write(path, data)
        term.say(f"wrote {path}, {len(data) / 1024:.0f} KiB")
    elif common.as_json():
        _events(counted)
    else:
        _tables(counted)
    return 0


def _tables(counted: Stats) -> None:
    """Print what was counted."""
    for line in stats.lines(counted):
        term.data(line)
    for found, what in ((counted.phases, "phase"), (counted.agents, "agent")):
        if found:
            term.data("")
            term.table(*stats.uses(found, what, counted.spent))
    if counted.tallies:
        term.data("")
        term.table(*stats.reviewers(counted.tallies))
    if counted.partial:
        term.data("")
        term.table([[one.run, one.outcome, one.score] for one in counted.partial], ("not settled", "outcome", "score"))
    if counted.breaches:
        term.data("")
        term.table(counted.breaches, ("breach in", "what"))


def _events(counted: Stats) -> None:
    """Tell all that was counted as JSON lines."""
    term.event(
        "stats",
        runs=len(counted.accounts),
        outcomes=counted.outcomes,
        decided=counted.decided,
        undecided=counted.undecided,
        settled=counted.settled,
        settled_rate=counted.settled_rate,
        forced=counted.forced,
        rounds={str(rounds): number for rounds, number in counted.rounds.items()},
        mean_rounds=counted.mean_rounds,
        review_share=counted.review_share,
        endings=counted.endings,
        **_spent(counted.spent),
    )
    for kind, uses in (("phase", counted.phases), ("agent", counted.agents)):
        for use in uses:
            _use(kind, use)
    for tally in counted.tallies:
        term.event("tally", **msgspec.to_builtins(tally))
    for one in counted.accounts:
        term.event(
            "run",
            run=one.run,
            outcome=one.outcome,
            forced=one.forced,
            breached=one.breached,
            rounds=one.rounds,
            score=one.score or None,
            **_spent(one.spent),
        )
    for leg, breach in counted.breaches:
        term.event("breach", leg=leg, what=breach)


def _use(kind: str, use: Use) -> None:
    term.event(kind, name=use.name, judge=use.judge, **_spent(use.spent))


def _spent(its: Spent) -> dict[str, object]:
    """Name the figures as they stand in every event; `cost_unknown` counts the legs that no cost is known of.

    `tokens_unknown` counts those whose tokens nobody counted; a run that cannot be read counts as one leg in both.
    """
    return {
        "legs": its.legs,
        "seconds": round(its.seconds, 3),
        "cost_microusd": its.microusd,
        "cost_unknown": its.unknown,
        "tokens": its.tokens,
        "tokens_unknown": its.uncounted,
    }

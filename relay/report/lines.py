"""What the terminal and a notice say of a night or a run: a table, and below it what needs a person, item by item."""

from collections.abc import Mapping, Sequence

from relay import aftermath
from relay.report import figures, morning
from relay.report import run as runs
from relay.report.account import Account, Command
from relay.report.morning import Morning
from relay.terms import Alert

SOME = 5
"""Runs from before a night, and alerts, that are told in lines; the others are counted."""

WIDE = 60
"""Characters of a title, or of what a run needs, that the terminal shows beside other things."""

LONG = 200
"""Characters of a question, or of what a run needs, on lines of its own."""


def asof(told: Morning) -> str:
    """Say that a night is told as it ended, and what is told as it stands now; nothing where that is the same."""
    if not told.now:
        return ""
    now = f"{figures.day(told.now)}, {figures.hour(told.now)} {figures.zone(told.now)}".rstrip()
    return f"This is how the night ended; what needs you, and each run by itself, as it stands now: {now}"


def rows(told: Morning) -> tuple[list[list[str]], list[str]]:
    """Return the table of the runs and its headers: how each stood at the end of the night, and what became of it."""
    found = []
    for one in told.accounts:
        spent, then, stands = told.shares.get(one.run, one.spent), told.then(one), one.told + _into(one)
        needs = figures.local(one.brief(WIDE), told.zone)
        if told.since(one):
            needs = "now" + f" {stands}" * (then != one.apart) + f": {needs}" * bool(needs)
            needs, stands = needs if len(needs) <= WIDE else f"{needs[:WIDE]}...", then
        found.append([one.run, stands, told.score(one) or "-", spent.price, spent.time, needs])
    return found, ["run", "outcome", "score", "cost", "time", "needs"]


def _into(one: Account) -> str:
    """Name where a run was shipped."""
    branch = morning.into(one.glance.chain) if one.stands == "shipped" and one.glance is not None else ""
    return f" into {branch}" if branch else ""


def asked(told: Morning, at: str = "") -> list[str]:
    """List each run that needs a person, with what to type; then the oldest of what was raised by itself."""
    lines = [line for one in told.yours for line in item(one, told.remarks, told.zone)]
    for alert in told.alerts[:SOME]:
        lines += [figures.local(alert.what, told.zone), f"  {alert.command}"]
    left = len(told.alerts) - SOME
    return lines + [f"and {runs.count(left, 'more alert')}: relay {at}reap"] * (left > 0)


def first(one: Account) -> Command | None:
    """Return the one thing to type for a run: a question, which is told beside it, is answered."""
    answers = (command for command in one.commands if one.question and f" answer {one.run} " in command.text)
    return next(answers, next(iter(one.commands), None))


def item(one: Account, remarks: Mapping[str, Sequence[Alert]], known: str = "") -> list[str]:
    """Tell one run that needs a person: its title; why, what it asks and what was raised; the one thing to type.

    `known` is the zone that the reader knows.
    """
    title = "" if one.glance is None else " ".join(one.title.split())[:WIDE]
    why = "" if one.needs == "approval" else one.needs if one.glance is None else figures.local(one.brief(LONG), known)
    asks = " ".join(one.question.split())[:LONG]
    said = [
        ": ".join(filter(None, (why, asks))),
        *(figures.local(each.what, known) for each in remarks.get(one.run, ())),
    ]
    command = first(one)
    return [
        f"{one.run} {one.said}" + f": {title}" * bool(title),
        *(f"  {line}" for line in said if line),
        *(f"  {line}" for line in aftermath.lines(one.left)),
        *([f"  {command.text}"] if command is not None else []),
    ]


def before(
    found: Sequence[Account], remarks: Mapping[str, Sequence[Alert]], at: str = "", known: str = ""
) -> list[str]:
    """List what waits from before a night, each run as those of the night are told."""
    if not found:
        return []
    lines = [line for one in found[:SOME] for line in item(one, remarks, known)]
    left = len(found) - SOME
    more = [f"and {left} more: relay {at}status"] * (left > 0)
    return [f"waiting from before: {runs.count(len(found), 'run')}", *lines, *more]


def passed_over(told: Morning) -> list[str]:
    """Say of each entry that was skipped why."""
    when = "not run then" if told.now else "not run"
    reasons = ((one, figures.local(one.reason, told.zone) or "no reason was recorded") for one in told.skipped)
    return [f"{when}: {one.spec or one.run}: {reason}" for one, reason in reasons]

"""`relay show [RUN[/LEG]] [WORD]`: a run, a leg, or one of their files."""

import click
import msgspec

from relay.commands import common
from relay.host import term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import figures, items, pick
from relay.report import leg as legs
from relay.report import run as runs
from relay.report.run import Glance
from relay.rules import steering

SHORT = 12
"""Digits of a hash that are shown."""


@click.command("show")
@click.argument("wanted", metavar="[RUN[/LEG]]", required=False)
@click.argument("word", metavar=f"[{'|'.join(items.WORDS)}]", type=click.Choice(items.WORDS), required=False)
@common.everywhere
def command(wanted: str | None, word: str | None) -> int:
    """Show a run, a leg, or one of its files; the newest run if none is named.

    A leg is named by its id, its number, or its phase: RUN/03-review, RUN/3, RUN/review.
    """
    here = common.ledger()
    if wanted in items.WORDS and word is None and wanted not in ledgers.runs(here):
        wanted, word = None, wanted
    run, leg = pick.split(wanted)
    run = pick.run(here, run)
    leg = pick.leg(here, run, leg) if leg is not None else None
    if word == "log":
        from relay.commands import log

        return log.show(here, run, leg)
    if word == "findings":
        return _findings(here, run)
    if word is not None:
        return _item(here, run, leg, word)
    if leg is not None:
        return _leg(here, run, leg)
    return _run(here, runs.glance(here, run))


def _item(here: Ledger, run: str, leg: str | None, word: str) -> int:
    """Print one file, or a diff."""
    if word == "diff":
        content = items.diff(here, run, leg)
        if not content:
            term.say("no changes")
    else:
        item = items.read(here, run, leg, word)
        content = item.data
        if item.warning:
            term.say(f"{term.style('warning:', 'yellow')} {item.warning}")
    if common.as_json():
        term.event(word, run=run, leg=leg, text=content.decode("utf-8", "replace"))
    else:
        term.raw(content)
    return 0


def _findings(here: Ledger, run: str) -> int:
    """Print the findings of a run over its rounds, what was objected, and what each judge's evidence was worth."""
    from relay.report import findings

    told, tallies = findings.stories(here, run), findings.tallies(ledgers.receipts(here, run))
    for story in told:
        term.event("finding", run=run, stands=story.stands, **msgspec.to_builtins(story))
    for tally in tallies:
        term.event("tally", run=run, **msgspec.to_builtins(tally))
    if common.as_json():
        return 0
    if not told:
        term.say(f"no judge of {run} named a finding")
        return 0
    term.table(*findings.table(told))
    lines = findings.objections(told)
    lines += [
        f"{one.agent}: {runs.count(one.named, 'finding')}, {one.confirmed} confirmed, {one.located} located,"
        f" {one.unfounded} unfounded"
        for one in tallies
    ]
    term.data("")
    for line in lines:
        term.data(line)
    return 0


def _leg(here: Ledger, run: str, leg: str) -> int:
    """Print what a leg's receipt says."""
    if common.as_json():
        sealed = items.sealed(here, run, leg)
        term.event("leg", run=run, leg=leg, receipt=msgspec.to_builtins(sealed), folder=str(here.leg(run, leg)))
        return 0
    lines = legs.lines(here, run, leg)
    term.data(term.style(lines[0], "bold"))
    for line in lines[1:]:
        term.data(line)
    return 0


def _run(here: Ledger, seen: Glance) -> int:
    """Print a run at a glance."""
    plan = seen.plan
    following = "" if seen.held else common.next_command(plan.run, seen.step)
    if common.as_json():
        term.event(
            "run",
            run=plan.run,
            title=plan.title,
            outcome=seen.outcome,
            forced=seen.forced,
            unchecked=plan.unchecked,
            held=seen.held,
            base=seen.base,
            head=seen.head,
            needs=seen.needs,
            next=next(iter(following.splitlines()), ""),
            criteria=msgspec.to_builtins(seen.criteria),
            findings=msgspec.to_builtins(seen.findings),
            steers=seen.steers,
            plan=msgspec.to_builtins(plan),
            receipts=msgspec.to_builtins(seen.chain),
            folder=str(here.folder(plan.run)),
        )
        return 0
    branch = plan.base_ref.removeprefix("refs/heads/") or "a detached HEAD"
    term.data(f"{term.style(plan.run, 'bold')}  {plan.title}")
    stands = runs.coloured(seen.outcome, forced=seen.forced) + " (held)" * seen.held
    term.told(f"{stands}, base {branch} at {seen.base[:12]}, head {seen.head[:12]}")
    if seen.rows:
        term.data("")
        term.table(map(msgspec.structs.astuple, seen.rows), runs.Row.__struct_fields__)
    _judged(seen)
    if seen.steers:
        term.data("\nThe change steers others, once it is accepted:")
    for line in steering.lines(seen.steers):
        term.data(f"  {line}")
    if seen.needs or following:
        term.data("")
    if seen.needs:
        term.told(f"needs: {seen.needs}")
    if following:
        term.told("next: " + following.replace("\n", "\n      "))
    return 0


def criteria(seen: Glance) -> None:
    """Print the table of criteria: who decided each, by which command, and whether it is met."""
    rows = [
        [
            one.id,
            term.style("met", "green") if one.result.met else term.style("not met", "red"),
            one.result.by,
            legs.shown(one.result),
            one.result.output_sha256[:SHORT] if one.result.output_sha256 else "",
            one.text,
        ]
        for one in seen.criteria
    ]
    term.table(rows, ("criterion", seen.judged_by, "by", "shown by", "output", "text"))


def _judged(seen: Glance) -> None:
    """Print the table of criteria and the open findings."""
    if seen.criteria:
        term.data("")
        criteria(seen)
    if seen.findings:
        term.data("")
        rows = [
            [
                one.finding.id,
                term.style("blocks", "red") if one.finding.blocks else "advice",
                one.finding.severity,
                one.finding.evidence,
                f"{figures.named(one.finding.path)}:{one.finding.line}",
                one.leg,
                one.title,
            ]
            for one in seen.findings
        ]
        term.table(rows, ("finding", "weight", "severity", "evidence", "place", "leg", "title"))

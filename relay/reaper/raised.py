"""What a pass only raises: refs and branches of runs that are gone, lost commits, and runs that wait too long."""

import re
import shlex
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import clock, git
from relay.reaper.look import Run
from relay.reaper.tally import Tally
from relay.report import account, figures
from relay.rules import history
from relay.rules import plan as rules
from relay.terms import Reap

RUN_ID: Final = re.compile(r"\d{6}-\d{4}-[a-z0-9-]+")
"""How the id of a run looks: a branch `relay/NAME` of another shape is the person's own."""

AWAITED: Final = frozenset({"accepted", "needs-human"})
"""Outcomes of a run whose notes a person is about to act on."""


def look(tally: Tally, runs: list[Run], settings: Reap) -> None:
    """Raise what only a person can settle."""
    readable = [run for run in runs if run.plan is not None and not run.copied]
    _refs(tally, {run.id for run in runs})
    _commits(tally, readable)
    _waiting(tally, readable, settings.wait_days)
    _moved(tally, readable)


def _refs(tally: Tally, known: set[str]) -> None:
    """Raise the refs of runs that the ledger does not know; they may be all that keeps a commit, so they stay."""
    kept: dict[str, int] = {}
    for name in git.refs(tally.ledger.repo, "refs/relay/"):
        run = name.split("/")[2]
        kept[run] = kept.get(run, 0) + 1
    for run, count in kept.items():
        if run not in known:
            commits = "1 ref keeps a commit" if count == 1 else f"{count} refs keep commits"
            prefix = shlex.quote(f"refs/relay/{run}/")
            command = f"git for-each-ref --format='delete %(refname)' {prefix} | git update-ref --stdin"
            tally.alert("ref", run, f"{commits} of {run}, which the ledger does not know", command, run)
    form = "--format=%(refname)%09%(upstream)%09%(worktreepath)"
    listed = git.run(tally.ledger.repo, "for-each-ref", form, "refs/heads/relay/").decode("utf-8", "surrogateescape")
    for line in listed.splitlines():
        name, _, more = line.partition("\t")
        upstream, _, at = more.partition("\t")
        run = name.removeprefix("refs/heads/relay/")
        if RUN_ID.fullmatch(run) and run not in known and not upstream:  # with one it came from another clone
            what = f"branch `relay/{run}` is of a run that the ledger does not know: look at it first, git log"
            away = f"git -C {shlex.quote(at)} switch --detach && " if Path(at).is_dir() else "git worktree prune && "
            tally.alert("branch", run, what, f"{away if at else ''}git branch -D relay/{run}", run)


def _commits(tally: Tally, runs: Iterable[Run]) -> None:
    """Raise receipts whose commits are not in the repository any more, by one call of git for all runs."""
    named = {oid: None for run in runs for one in run.chain for oid in (one.head, one.start, one.base)}
    if not named:
        return
    asked = "".join(f"{oid}\n" for oid in named).encode()
    answer = git.call(tally.ledger.repo, "cat-file", "--batch-check", stdin=asked)
    lines = answer.out.decode("utf-8", "replace").splitlines()
    if answer.code or len(lines) != len(named):
        tally.unsure("commit")
        return
    lost = {oid for oid, line in zip(named, lines, strict=True) if line.split(" ")[1:2] != ["commit"]}
    for run in runs:
        gone = [(one.leg, oid) for one in run.chain for oid in (one.head, one.start, one.base) if oid in lost]
        if gone:
            leg, oid = gone[0]
            what = f"the receipt of {run.id}/{leg} names commit `{oid[:12]}`, which is not in the repository"
            tally.alert("commit", run.id, what, f"relay verify {run.id}", run.id)


def _waiting(tally: Tally, runs: Iterable[Run], days: float) -> None:
    """Raise each run that waits longer than `days`, once for what it waits for."""
    limit = clock.now() - timedelta(days=days)
    for run in runs:
        since = run.chain[-1].ended if run.chain else run.plan.created if run.plan is not None else ""
        if run.step is None or not since or run.outcome in {"shipped", "not-accepted", "stopped"}:
            continue
        if isinstance(run.step, rules.Wait):
            since = max(since, run.step.until)
        if not run.held and clock.parse(since) <= limit:
            leg = run.chain[-1].leg if run.chain else ""
            said = " ".join(run.step.text.split()) if isinstance(run.step, rules.Human) else ""
            text = f": {said}" if said else ""
            what = f"{run.id} is {run.outcome} and waits since {since}{text}"
            tally.alert("waiting", f"{run.id}/{leg}", what, _next(run), run.id)


def _moved(tally: Tally, runs: Iterable[Run]) -> None:
    """Raise that the base changed files since, which a run that a person is about to act on changes too.

    What moved elsewhere, as with every run that is shipped, misleads nobody. The key names the base that the notes are
    about, so that after a rebase this is settled, or another thing.
    """
    tips: dict[str, str | None] = {}
    for run in runs:
        if run.plan is None or run.held or run.outcome not in AWAITED or run.plan.ship.method == "command":
            continue
        ref = run.plan.base_ref
        if ref not in tips:
            tips[ref] = git.resolve(tally.ledger.repo, ref)
        base, tip = history.base(run.plan, run.chain), tips[ref]
        if tip is None or tip == base:
            continue
        about = f"{run.id}/{base[:12]}"
        try:
            both = _paths(tally, base, history.head(run.plan, run.chain)) & _paths(tally, base, tip)
        except RelayError:  # a commit is lost, and that is raised by itself
            tally.unsure("moved", about)
            continue
        if both:
            more = f" and {len(both) - 1} more of the files" if len(both) > 1 else ""
            name, file = ref.removeprefix("refs/heads/"), figures.named(min(both))
            what = f"`{name}` changed `{file}`{more} since `{base[:12]}`, which the notes of {run.id} are about;"
            what += " the run changes it too" if len(both) == 1 else " the run changes them too"
            tally.alert("moved", about, what, _next(run), run.id)


def _paths(tally: Tally, before: str, after: str) -> set[str]:
    return {change.path for change in git.numstat(tally.ledger.repo, before, after)}


def _next(run: Run) -> str:
    """Return the one command that goes on with a run, without what is said about it."""
    if run.plan is None or run.step is None:
        return ""
    return next((command.text for command in account.commands(run.plan, run.chain, run.step)), "")

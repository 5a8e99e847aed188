"""One leg or act, told from its receipt: facts, what went wrong, and where its files are."""

from collections.abc import Iterator
from pathlib import Path

from relay import aftermath, telling
from relay.host import pids
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import figures
from relay.report import run as runs
from relay.rules import steering
from relay.terms import Change, CriterionResult, Disputed, Finding, Independence, Placed, Receipt, Start

SHORT = 12
"""Digits of a commit id that are shown."""

INDEPENDENT: dict[Independence, str] = {
    "vendor": "another vendor and model family than the worker's",
    "mechanical": "no model, so no opinion",
    "allowed": "the same vendor or model family as the worker's, as `allow_same_vendor` says",
}


def lines(ledger: Ledger, run: str, leg: str) -> list[str]:
    """Tell one leg; one that was begun and not sealed is told from its start."""
    sealed = next((receipt for receipt in ledgers.receipts(ledger, run) if receipt.leg == leg), None)
    if sealed is None:
        start = next((start for start in ledgers.unsealed(ledger, run) if start.leg == leg), None)
        told = _begun(start) if start is not None else [f"{leg} of {run}", "nothing is written about it yet"]
    elif sealed.kind == "act":
        told = _act(ledger, sealed)
    else:
        told = [*_leg(ledger, sealed)]
    return [*told, *_files(ledger, run, leg)]


def _leg(ledger: Ledger, sealed: Receipt) -> Iterator[str]:
    """Tell a sealed leg."""
    who = ", ".join(filter(None, (sealed.vendor, sealed.backend, sealed.model, sealed.version)))
    yield f"{sealed.leg} of {sealed.run}"
    yield f"{sealed.phase}, round {sealed.round}, by {sealed.agent} ({who})"
    yield f"{sealed.started} to {sealed.ended}, {sealed.seconds:.1f} s, {runs.dollars(sealed.cost_microusd)}"
    result = f": {telling.result_of(sealed)}{_claimed(sealed)}" if sealed.ended_by == "reply" else ""
    yield f"ended by {sealed.ended_by}{result}"
    commits = {"start": sealed.start, "head": sealed.head, "base": sealed.base, "tree": sealed.tree}
    yield ", ".join(f"{name} {oid[:SHORT]}" for name, oid in commits.items())
    if sealed.problem:
        yield f"problem: {sealed.problem}"
    yield from _listed("breaches", sealed.breaches)
    if sealed.breaches:
        plan, chain = ledgers.read(ledger, sealed.run)
        left = [one for one in aftermath.look(ledger, plan, chain) if one.leg == sealed.leg]
        yield from _listed("nobody has set right", aftermath.lines(left))
    yield from _listed("drift, no fault of the agent", sealed.drift)
    yield from _listed("not carried", [f"{figures.named(item.path)}: {item.why}" for item in sealed.refused])
    yield from _listed("changed", [changed(item) for item in sealed.changed])
    yield from _listed("steers others", steering.told(item.path for item in sealed.changed))
    yield from _listed("checks", [checked(sealed, index) for index in range(len(sealed.checks))])
    yield from _listed(f"criteria, {sealed.score}", [criterion(sealed, index) for index in range(len(sealed.criteria))])
    named = zip(sealed.findings, runs.titles(ledger, sealed), strict=False) if sealed.findings else ()
    yield from _listed("findings", [f"{finding(one)}  {title}".rstrip() for one, title in named])
    yield from _listed("settled", [f"{one.id} {one.how}" for one in sealed.settled])
    yield from _listed("disputed", [disputed(one) for one in sealed.disputed])
    yield from _listed("the reply rests on", [placed(one) for one in sealed.existing])
    yield from _listed("tests between base and head", swapped(sealed))
    if sealed.reviewed:
        yield f"was shown {runs.count(sealed.reviewed, 'changed line')}"
    if sealed.independence:
        yield f"independence: {INDEPENDENT[sealed.independence]}"
    yield f"crossed: {', '.join(sealed.crossed) or 'nothing'}; withheld: {', '.join(sealed.withheld) or 'nothing'}"
    usage = sealed.usage
    if usage.input or usage.output:
        least = "" if usage.complete else " at least"
        yield f"tokens:{least} {usage.input} in ({usage.cached} cached), {usage.output} out, {usage.turns} turns"
    bare = ", watched and not enforced" if sealed.jail in {None, "off"} else ""
    yield f"jail: {sealed.jail or 'off'}{bare}; network of its commands: {sealed.reach or 'not told'}"
    if sealed.settings == "user":
        yield "the person's own settings of the agent's program were read"
    if sealed.billing:
        yield f"paid by: {sealed.billing}"


def _least(ledger: Ledger, offer: Receipt) -> str:
    """Write the smallest reply that an offer takes."""
    kind = ledgers.read_plan(ledger, offer.run).phase((offer.effect or {})["phase"]).kind
    if kind == "work":
        return '{"status": "done"}'
    return '{"verdict": "approve", "nonce": "..."}, with the nonce from the prompt'


def _act(ledger: Ledger, sealed: Receipt) -> list[str]:
    """Tell an act; an offer says where the person finds and leaves what belongs to it."""
    from relay.record import evidence

    told = [f"{sealed.leg} of {sealed.run}", f"{telling.result_of(sealed)}, by {sealed.by}, at {sealed.ended}"]
    effect = sealed.effect or {}
    if sealed.act == "offer":
        reply = effect.get("reply", "")
        told += [
            f"a person takes a leg of `{effect.get('phase', '?')}`",
            f"work in   {effect.get('worktree', '')}",
            f"prompt    {effect.get('prompt', '')}",
            f"reply to  {reply}",
            f"schema    {Path(reply).parent / 'reply.schema.json'}",
            f"at least  {_least(ledger, sealed)}",
        ]
    else:
        told += [f"{name}: {' '.join(value.split())}" for name, value in sorted(effect.items())]
    if sealed.pins is not None:
        pins = sealed.pins
        told.append(f"pins head {pins.head[:SHORT]}, base {pins.base[:SHORT]}, tree {pins.tree[:SHORT]}")
    told += _listed("checks", [checked(sealed, index) for index in range(len(sealed.checks))])
    why = evidence.why_of(ledger, sealed)
    if sealed.why_sha256 is not None and not why:
        why = "(the text is not the one that the receipt names by hash)"
    return [*told, *_listed("why", why.splitlines())]


def _begun(start: Start) -> list[str]:
    """Tell a leg that was begun and not sealed."""
    alive = pids.alive(start.relay)
    agent = f", its agent is process {start.agent.pid}" if start.agent is not None and alive else ""
    return [
        f"{start.leg} of {start.run}",
        f"{start.phase or start.act}, round {start.round}, since {start.started}",
        f"in progress: process {start.relay.pid}{agent}" if alive else f"cut short: relay resume {start.run} seals it",
        f"start {start.start[:SHORT]}, base {start.base[:SHORT]}",
        f"worktree {start.worktree}" if start.worktree else "no worktree",
    ]


def _files(ledger: Ledger, run: str, leg: str) -> list[str]:
    """List the files of a leg by their paths, and its worktree where there still is one."""
    folder = ledger.leg(run, leg)
    found = [str(path) for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    worktree = ledger.worktree(run, leg)
    return [*_listed("files", found), *_listed("worktree", [str(worktree)] if worktree.is_dir() else [])]


def _listed(title: str, items: list[str] | tuple[str, ...]) -> list[str]:
    """Write a title and items below it; nothing at all where there are none."""
    return [f"{title}:", *(f"  {item}" for item in items)] if items else []


def _claimed(sealed: Receipt) -> str:
    """Say what a judge claimed where Relay derived something else."""
    if sealed.verdict is None or sealed.claimed_verdict in {None, sealed.verdict}:
        return ""
    return f" (claimed {sealed.claimed_verdict})"


def changed(item: Change) -> str:
    """Name a changed file, and say how much of it changed."""
    return f"{figures.named(item.path)} {counted(item.added, item.removed)}"


def counted(added: int, removed: int) -> str:
    """Say how much of a file changed; git counts no lines of a binary one."""
    return "(binary)" if added < 0 else f"+{added} -{removed}"


def checked(sealed: Receipt, index: int) -> str:
    """Tell one command that Relay ran, and whether it was red at the base already."""
    check = sealed.checks[index]
    ended = f"exited {check.exit}" if check.ended == "exit" else f"ended by {check.ended}"
    red = "" if check.exit == 0 else " (newly red)" if check.newly_red else " (red at the base too)"
    return f"`{check.command}` {ended}{red}, for {check.by}, {check.seconds:.1f} s"


def criterion(sealed: Receipt, index: int) -> str:
    """Tell how one criterion stands, by whom, and on what evidence."""
    result = sealed.criteria[index]
    evidence = shown(result)
    return f"{result.id} {'met' if result.met else 'not met'}, by {result.by}" + (f": {evidence}" if evidence else "")


def shown(result: CriterionResult) -> str:
    """Tell the evidence that decided a criterion."""
    if result.command:
        return f"`{result.command}` exited {result.exit}"
    return f"{figures.named(result.path)}:{result.line}" if result.path else ""


def finding(one: Finding) -> str:
    """Tell one finding in Relay's words alone: where, how grave, on what evidence, whether it blocks."""
    weight = "blocks" if one.blocks else "advice"
    place = f"{figures.named(one.path)}:{one.line}" + (
        f" (not {one.claimed_line})" if one.claimed_line is not None else ""
    )
    state = f", {one.state}" if one.state not in {None, "new"} else ""
    kept = ", kept by Relay: its repro is not green" if one.kept else ""
    return f"{one.id} {one.severity}, {one.evidence}, {weight}, {place}, since round {one.since}{state}{kept}"


def disputed(one: Disputed) -> str:
    """Tell a dispute, and what its command did when Relay ran it."""
    return one.id + (f": `{one.command}` exited {one.exit}" if one.command else ", without a command")


def placed(one: Placed) -> str:
    """Tell a place that a reply rests on."""
    path = figures.named(one.path)
    return f"{path}:{one.line}" if one.line is not None else f"{path}: what it quotes is not there"


def swapped(sealed: Receipt) -> list[str]:
    """Tell what swapping the tests between base and head showed."""
    tests = sealed.tests
    if tests is None:
        return []
    told = []
    if tests.old is not None:
        red = "" if tests.old.exit == 0 else " (red at the base too)" if not tests.old.newly_red else " (newly red)"
        free = "" if tests.binding else "; the spec lets the run change tests"
        told.append(f"the base's tests on the new code: `{tests.old.command}` exited {tests.old.exit}{red}{free}")
    if tests.new is not None:
        told.append(f"the new tests on the base's code: `{tests.new.command}` exited {tests.new.exit}")
    told += [f"{figures.named(path)} passes with and without the change: it proves nothing" for path in tests.idle]
    told.append(
        f"{runs.count(len(tests.changed), 'test file')} changed, {runs.count(tests.tests_removed, 'test')} removed,"
        f" {tests.tests_added} added, {runs.count(tests.skips_added, 'skip')} added,"
        f" assertions -{tests.assertions_removed} +{tests.assertions_added}"
    )
    return told

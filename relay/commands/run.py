"""`relay run SPEC`: freeze a spec, then drive it."""

import shlex
from pathlib import Path
from typing import Final

import click

from relay.commands import common
from relay.errors import RelayError
from relay.host import git, term
from relay.record import freeze, spec
from relay.record import ledger as ledgers
from relay.record.freeze import Frozen
from relay.record.ledger import Ledger
from relay.terms import Plan

SHOWN: Final = 10
"""How many uncommitted paths are named; git status names the others."""


@click.command("run")
@click.argument("spec_file", metavar="SPEC", type=click.Path(readable=False))
@click.option("--base", metavar="BRANCH", help="Work on this branch instead of the one checked out.")
@click.option("--agent", "agents", metavar="PHASE=AGENT", multiple=True, help="Let AGENT take the legs of PHASE.")
@click.option("--until", metavar="PHASE", help="Pause when PHASE has ended and another one is due.")
@click.option("--unchecked", is_flag=True, help="Run a spec that names no criterion.")
@click.option("--dry-run", is_flag=True, help="Show the plan and the prompts; run nothing.")
@common.everywhere
def command(
    spec_file: str,
    base: str | None,
    agents: tuple[str, ...],
    until: str | None,
    unchecked: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
) -> int:
    """Run a spec through its phases, until it is accepted or a person is needed."""
    here = common.ledger()
    path = Path(spec_file) if Path(spec_file).is_absolute() else common.folder() / spec_file
    task = spec.read(path)
    frozen = freeze.freeze(
        here.repo,
        task,
        path.name,
        base=base,
        agents=_pairs(agents),
        unchecked=unchecked,
        source=freeze.source(here.repo, path),
    )
    if until is not None and until not in {phase.name for phase in frozen.plan.phases}:
        raise RelayError(
            f"--until names no phase of this run: `{until}`", hint=", ".join(p.name for p in frozen.plan.phases)
        )
    if dry_run:
        return _shown(here, frozen)
    return _driven(here, frozen, until, path)


def _driven(here: Ledger, frozen: Frozen, until: str | None, path: Path) -> int:
    """Drive the run to where it ends or needs somebody."""
    from relay import runner
    from relay.telling import Teller

    ledgers.prepare(here)
    _unseen(here, frozen.plan, path)
    _untested(here, frozen.plan)
    try:
        run, step = runner.start(here, frozen, runner.Order(until=until), Teller())
    except runner.OccupiedError as error:
        raise RelayError(error.message, hint=_next(here, path) + error.hint, exit_code=error.exit_code) from None
    return common.finish(here, run, step, until)


def _next(here: Ledger, path: Path) -> str:
    """Say how a night that is at work takes this spec next; nothing where none is."""
    from relay import nights, queue

    if nights.going(here) is None:
        return ""
    at = "" if common.folder() == Path() else f"-C {shlex.quote(str(common.folder()))} "
    spec_file = path.relative_to(common.folder()) if path.is_relative_to(common.folder()) else path
    first = 1 + max((entry.priority for entry in queue.entries(here)), default=0)
    return f"relay {at}queue add {shlex.quote(str(spec_file))} --priority {first}    (the night takes it next)\n"


def _unseen(here: Ledger, plan: Plan, spec_file: Path) -> None:
    """Say which changes in the checkout the run will not see: it starts from the base commit."""
    top = here.repo.top or Path()
    paths = [path for path in git.dirty(here.repo) if (top / path).resolve() != spec_file.resolve()]
    if paths:
        term.say(f"the run starts from commit {plan.base[:12]} and does not see what is not committed:")
        for path in paths[:SHOWN]:
            term.say(f"  {path}")
        if len(paths) > SHOWN:
            term.say(f"  and {len(paths) - SHOWN} more: git status")


def _untested(here: Ledger, plan: Plan) -> None:
    """Say that acceptance will find no test to swap, while there is time to mend the patterns."""
    from relay import swap

    if swap.nowhere(here.repo, plan.tests.paths, plan.base):
        paths = ", ".join(plan.tests.paths)
        term.say(f"{term.style('warning:', 'yellow')} no file of the base fits `tests.paths`: {paths}")


def _pairs(agents: tuple[str, ...]) -> dict[str, str]:
    """Read `PHASE=AGENT`."""
    pairs = {}
    for pair in agents:
        phase, equals, agent = pair.partition("=")
        if not equals or not phase or not agent:
            raise RelayError(f"`--agent {pair}` is not PHASE=AGENT", hint="relay run SPEC --agent review=codex")
        pairs[phase] = agent
    return pairs


def _shown(here: Ledger, frozen: Frozen) -> int:
    """Show what would run: the line-up, the criteria and the first prompt."""
    from relay import leg, telling

    plan = frozen.plan
    rows = [
        [
            phase.name,
            phase.kind,
            phase.boundary,
            phase.agent,
            plan.agent(phase.agent).backend,
            plan.agent(phase.agent).vendor,
        ]
        for phase in plan.phases
    ]
    if common.as_json():
        term.event(
            "plan", run=plan.run, base=plan.base, phases=[row[0] for row in rows], agents=[row[3] for row in rows]
        )
    else:
        term.data(f"{plan.title}: criteria: {len(plan.criteria)}, base {plan.base_ref or 'HEAD'} at {plan.base[:12]}")
        term.table(rows, ("phase", "kind", "boundary", "agent", "backend", "vendor"))
        for criterion in plan.criteria:
            term.data(
                f"{criterion.id}  {criterion.text}"
                + (f"  `{criterion.check}`" if criterion.check else "  (a judge decides)")
            )
    if not common.as_json():
        for name, text in leg.rehearse(here, plan, frozen.files):
            term.data(f"\n{term.style(f'--- the prompt of {name} ---', 'bold')}\n{text}")
    if warning := telling.unbounded(plan):
        term.say(warning)
    term.say("nothing was run or written")
    return 0

"""Freezing a run: spec, config, phases, prompts and instructions as they stand at the base, with their hashes."""

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from relay import __version__
from relay.errors import RelayError
from relay.host import clock, files
from relay.host.repository import Repository
from relay.record import catalog, config, instructions, plan_file, prompt
from relay.record.ledger import Ledger
from relay.terms import Agent, Budget, Phase, Plan, Ship, Spec, Struct

SLUG: Final = 40
"""Characters of the part of a run's id that is made from the spec's name (pitfalls row 94)."""


class Frozen(Struct, frozen=True, kw_only=True):
    """A plan that was not written yet, and the files that go with it."""

    plan: Plan
    files: dict[str, bytes]


def freeze(
    repo: Repository,
    spec: Spec,
    name: str,
    *,
    base: str | None = None,
    agents: Mapping[str, str] = {},
    unchecked: bool = False,
    source: str | None = None,
    queued: str | None = None,
) -> Frozen:
    """Resolve everything that a run will ask for; whatever cannot be resolved is refused before anything is written.

    `name` is the spec's file name, which the run's id is made from; `agents` maps phases to agents, as `--agent` says.
    `source` says where the spec was read, `queued` which entry of the queue it is.
    """
    if not spec.criteria and not unchecked:
        raise RelayError(
            f"the spec `{name}` names no criterion, so nothing could show that it is done",
            hint="add a list under `## Acceptance`, or run it with --unchecked",
        )
    settings, base_ref, commit = config.load(repo, base or spec.base)
    phases = _with_agents(catalog.phases(repo, commit, settings, spec.phases), agents)
    catalog.check(phases, settings.agents)
    used = {phase.agent: settings.agents[phase.agent] for phase in phases}
    _judged(spec, phases[-1], used[phases[-1].agent])
    frozen = {"spec.md": spec.text.encode()}
    for phase in phases:
        frozen[f"phases/{phase.name}.toml"] = plan_file.table(phase)
        template, where = catalog.source(repo, commit, "prompts", phase.prompt)
        if not where.startswith(catalog.BUILT_IN):  # ours are checked by our own tests
            prompt.check(template, f"`{where}`")
        frozen[f"prompts/{phase.prompt}"] = template
    frozen |= {f"instructions/{path}": text for path, text in instructions.find(repo, commit).texts.items()}
    plan = _plan(spec, settings, base_ref, commit, phases, used, frozen, name, unchecked)
    return Frozen(plan=msgspec.structs.replace(plan, source=source, queued=queued), files=frozen)


def source(repo: Repository, path: Path) -> str:
    """Say where a spec was read: from the top of the checkout that it lies in, else by its absolute path."""
    real = path.resolve()
    tops = (top for top in (repo.top, repo.main_top) if top is not None and real.is_relative_to(top))
    return str(real.relative_to(top)) if (top := next(tops, None)) is not None else str(real)


def unused(ledger: Ledger, plan: Plan) -> Plan:
    """Return the plan under an id that no run has yet: its own, or that with `-2`, `-3` and so on."""
    wanted, count = plan.run, 1
    while ledger.folder(plan.run).exists():
        count += 1
        plan = plan_file.renamed(plan, f"{wanted}-{count}")
    return plan


def _plan(  # noqa: PLR0913, PLR0917 - the parts of a plan
    spec: Spec,
    settings: config.Config,
    base_ref: str,
    commit: str,
    phases: tuple[Phase, ...],
    used: Mapping[str, Agent],
    frozen: Mapping[str, bytes],
    name: str,
    unchecked: bool,  # noqa: FBT001 - as above
) -> Plan:
    """Put the plan together; what the spec says goes before what relay.toml says."""
    now = clock.now()
    return Plan(
        schema=1,
        run=f"{now:%y%m%d-%H%M}-{slug(name)}",
        title=spec.title,
        created=clock.stamp(now),
        base_ref=base_ref,
        base=commit,
        relay_version=__version__,
        spec_sha256=spec.sha256,
        files={path: files.sha256(data) for path, data in frozen.items()},
        unchecked=unchecked,
        phases=phases,
        agents=tuple(used.values()),
        criteria=spec.criteria,
        must=spec.must,
        may_touch=spec.files,
        may_change_tests=spec.may_change_tests,
        checks=settings.checks,
        tests=settings.tests,
        recovery=settings.recovery,
        budget=spec.budget or settings.budget or Budget(),
        ship=spec.ship or settings.ship or Ship(),
        jail=settings.jail,
        worktree=settings.worktree,
    )


def _judged(spec: Spec, last: Phase, agent: Agent) -> None:
    """Refuse criteria that nobody in the line-up could judge: an exit code says nothing about any one of them."""
    unread = [criterion for criterion in spec.criteria if criterion.check is None]
    if unread and (last.kind == "work" or agent.reply == "exit"):
        who = f"`{agent.name}`, which replies by its exit code" if last.kind == "judge" else "no judge"
        raise RelayError(
            f"criterion {unread[0].id} has no command, and `{last.name}` has {who}: nobody could judge it",
            hint="put a command into it as a code span, or let an agent that replies take the last phase",
        )


def _with_agents(phases: tuple[Phase, ...], agents: Mapping[str, str]) -> tuple[Phase, ...]:
    """Let `--agent PHASE=AGENT` override the line-up."""
    unknown = agents.keys() - {phase.name for phase in phases}
    if unknown:
        known = ", ".join(phase.name for phase in phases)
        raise RelayError(f"no phase `{min(unknown)}` in this run", hint=f"its phases are: {known}")
    return tuple(msgspec.structs.replace(phase, agent=agents.get(phase.name, phase.agent)) for phase in phases)


def slug(name: str) -> str:
    """Make the readable part of a run's id from a file's name: letters, digits and dashes, nothing else."""
    stem = unicodedata.normalize("NFKD", PurePosixPath(name).stem).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", stem)[:SLUG].strip("-") or "task"

"""The phases a run can have: files of the base commit before the built-in ones, then relay.toml's overrides.

Everything that can be wrong with a line-up is found here, before anything has started: a phase that nobody wrote, one
that reads what has not run, a judge that has nowhere to send the work back to, two agents of one vendor.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from relay.errors import RelayError
from relay.host import git
from relay.host.repository import Repository
from relay.record import strict
from relay.record.config import Config
from relay.terms import MECHANICAL, Act, Agent, Boundary, Done, Evidence, Kind, Phase, Struct

if TYPE_CHECKING:
    from importlib.abc import Traversable

Sort = Literal["phases", "prompts"]
SUFFIX: Final = {"phases": ".toml", "prompts": ".md"}
PHASE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
FILE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}")
RESERVED: Final = frozenset({*get_args(Act), "spec"})
"""Legs and acts share one sequence of names, so a phase cannot be called as an act is; `spec` is what phases read."""

WITHHELD: Final = ("claims",)
"""What `withhold` may name: what a note can leave out. Another word would be believed and change nothing."""


class _PhaseFile(Struct, frozen=True, kw_only=True):
    kind: Kind
    boundary: Boundary
    agent: str
    prompt: str | None = None
    reads: tuple[str, ...] = ("spec",)
    withhold: tuple[str, ...] = ()
    differs_from: str | None = None
    allow_same_vendor: bool = False
    back_to: str | None = None
    rounds: int = 3
    max_legs: int = 4
    context: float = 0.6
    done: Done = "verify"
    evidence: Evidence = "located"
    minutes: float = 60


BUILT_IN: Final = "built-in"
"""How the origin of a file begins that Relay ships."""


def builtin(kind: Sort, name: str) -> bytes:
    """Return a file that Relay ships, for instance `builtin("prompts", "review.md")`; `KeyError` if there is none."""
    if FILE_NAME.fullmatch(name):
        for folder in _shipped(kind):
            try:
                return (folder / name).read_bytes()
            except FileNotFoundError:
                continue
    raise KeyError(name)


def source(repo: Repository, base_commit: str, kind: Sort, name: str) -> tuple[bytes, str]:
    """Return the bytes of a phase or prompt file and where they come from: the base commit, else the built-in ones.

    Raises `RelayError` with what exists if nobody wrote it.
    """
    if FILE_NAME.fullmatch(name):
        for path in (f".relay/{kind}/{name}", f"{kind}/{name}"):
            data = git.blob(repo, base_commit, path) if path in _committed(repo, base_commit) else None
            if data is not None:
                return data, path
        try:
            return builtin(kind, name), f"{BUILT_IN} {kind}/{name}"
        except KeyError:
            pass
    known = known_names(repo, base_commit, kind)
    stem = name.removesuffix(SUFFIX[kind])
    text = f"there is no {kind.removesuffix('s')} `{stem}`{strict.close(stem, known)}"
    hint = f"known {kind}: {', '.join(known)}; your own go into .relay/{kind}/, committed"
    raise RelayError(text, hint=hint)


@lru_cache(maxsize=4)
def _committed(repo: Repository, commit: str) -> frozenset[str]:
    """Return the phase and prompt files of a commit, which never change: asked of git once."""
    return frozenset(git.paths(repo, commit, *(f"{place}{kind}" for kind in SUFFIX for place in (".relay/", ""))))


def known_names(repo: Repository, base_commit: str, kind: Sort) -> tuple[str, ...]:
    """Return the names of all phases or prompts, those of the base commit and the built-in ones, sorted."""
    suffix = SUFFIX[kind]
    names = {Path(path).name for path in git.paths(repo, base_commit, f".relay/{kind}", kind)}
    for folder in _shipped(kind):
        names |= {entry.name for entry in folder.iterdir()}
    return tuple(sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix)))


def phases(repo: Repository, base_commit: str, config: Config, names: Sequence[str] | None = None) -> tuple[Phase, ...]:
    """Return the phases of a run in order: those of `names` (a spec's), else those of the config.

    A judge without `back_to` gets the nearest work phase before it. `check` finds what is wrong between them.
    """
    found: list[Phase] = []
    for name in config.phases if names is None else names:
        _check_name(name)
        data, where = source(repo, base_commit, "phases", f"{name}.toml")
        phase = _overridden(parse(name, data, where), config)
        work = [one.name for one in found if one.kind == "work"]
        if phase.kind == "judge" and phase.back_to is None and work:
            phase = msgspec.structs.replace(phase, back_to=work[-1])
        found.append(phase)
    for name in sorted(set(config.phase) - {phase.name for phase in found}):
        source(repo, base_commit, "phases", f"{name}.toml")
    return tuple(found)


def parse(name: str, data: bytes, where: str) -> Phase:
    """Read one phase file; `prompt` is NAME.md where it does not say."""
    file = strict.toml(data, _PhaseFile, where)
    fields = {field: getattr(file, field) for field in _PhaseFile.__struct_fields__}
    phase = Phase(**{**fields, "name": name, "prompt": file.prompt or f"{name}.md"})
    _check_alone(phase, where)
    return phase


def check(phases: Sequence[Phase], agents: Mapping[str, Agent]) -> None:
    """Refuse a line-up that could not run: the error names the phase and what it wants."""
    if not phases:
        raise RelayError("the run has no phases", hint='phases = ["implement", "review", "acceptance"]')
    before: dict[str, Phase] = {}
    for phase in phases:
        _check_name(phase.name)
        if phase.name in before:
            raise RelayError(f"phase `{phase.name}` stands twice in `phases`", hint="name each phase once")
        _check_reads(phase, before)
        _check_back(phase, before)
        before[phase.name] = phase
    missing = [phase for phase in phases if phase.agent not in agents]
    if missing:
        wanted = ", ".join(f"`{phase.name}` wants `{phase.agent}`" for phase in missing)
        near = strict.close(missing[0].agent, agents)
        raise RelayError(f"nobody declares the agents of these phases: {wanted}{near}", hint="relay init")
    for phase in phases:
        _check_vendor(phase, before, agents)


def _shipped(kind: Sort) -> "list[Traversable]":
    """Return where the built-in files are: in the installed package, else in the checkout it runs from."""
    from importlib import resources

    packed = resources.files("relay") / "_builtin" / kind
    return [packed] if packed.is_dir() else [Path(__file__).parents[2] / kind]


def _check_name(name: str) -> None:
    if name in RESERVED:
        raise RelayError(f"`{name}` cannot be the name of a phase, Relay uses it itself", hint="rename the phase")
    if not PHASE_NAME.fullmatch(name):
        hint = "use lower-case letters, digits and `-`, 40 at most"
        raise RelayError(f"`{name}` cannot be the name of a phase", hint=hint)


def _overridden(phase: Phase, config: Config) -> Phase:
    """Apply `[phase.NAME]` of relay.toml."""
    override = config.phase.get(phase.name)
    if override is None:
        return phase
    given = {name: getattr(override, name) for name in override.__struct_fields__}
    changed = msgspec.structs.replace(phase, **{name: value for name, value in given.items() if value is not None})
    _check_alone(changed, f"relay.toml, phase.{phase.name}")
    return changed


def _check_alone(phase: Phase, where: str) -> None:
    """Refuse what is wrong with a phase whatever stands beside it."""
    if phase.kind == "judge" and phase.boundary != "verify-only":
        raise strict.refusal(where, 'a judge changes nothing, so its `boundary` must be "verify-only"')
    if phase.kind == "work" and phase.back_to is not None:
        raise strict.refusal(where, "`back_to` is for judges, a work phase sends nothing back")
    if not FILE_NAME.fullmatch(phase.prompt):
        raise strict.refusal(where, f"`prompt` is `{phase.prompt}`, it must be the name of a file in prompts/")
    for one in phase.withhold:
        if one not in WITHHELD:
            near = strict.close(one, WITHHELD)
            raise strict.refusal(
                where, f"`withhold` has `{one}`, which no note can leave out{near}", f"known: {', '.join(WITHHELD)}"
            )
    strict.amount(where, "rounds", phase.rounds, most=100)
    strict.amount(where, "max_legs", phase.max_legs, most=100)
    strict.amount(where, "context", phase.context, most=1)
    strict.amount(where, "minutes", phase.minutes, most=10_000)


def _check_reads(phase: Phase, before: Mapping[str, Phase]) -> None:
    for read in phase.reads:
        name = read.removesuffix("?")
        if name == "spec" or name in before or (read.endswith("?") and name != phase.name):
            continue
        text = f"phase `{phase.name}` reads `{name}`, which does not run before it{strict.close(name, before)}"
        raise RelayError(text, hint=f'put `{name}` before it in `phases`, or write "{name}?" if it may be absent')


def _check_back(phase: Phase, before: Mapping[str, Phase]) -> None:
    if phase.kind == "work":
        return
    work = [name for name, one in before.items() if one.kind == "work"]
    if phase.back_to is None:
        text = f"phase `{phase.name}` judges, but no work phase comes before it"
        raise RelayError(text, hint='phases = ["implement", "review", "acceptance"]')
    if phase.back_to not in work:
        near = strict.close(phase.back_to, work)
        text = f"phase `{phase.name}` goes back to `{phase.back_to}`, which is no work phase before it{near}"
        raise RelayError(text, hint=f"back_to can be: {', '.join(work) or 'nothing here'}")


def _check_vendor(phase: Phase, all_phases: Mapping[str, Phase], agents: Mapping[str, Agent]) -> None:
    """Refuse a judge of the same vendor as the worker it checks; a mechanical agent has no vendor to share."""
    if phase.differs_from is None:
        return
    other = all_phases.get(phase.differs_from)
    if other is None or other.name == phase.name:
        near = strict.close(phase.differs_from, [name for name in all_phases if name != phase.name])
        text = (
            f"phase `{phase.name}` must differ from `{phase.differs_from}`, which is no other phase of this run{near}"
        )
        raise RelayError(text, hint="name a phase that runs, or leave `differs_from` out")
    mine, theirs = agents[phase.agent], agents[other.agent]
    if phase.allow_same_vendor or mine.vendor != theirs.vendor or mine.vendor == MECHANICAL:
        return
    text = (
        f"phase `{phase.name}` must be done by another vendor than `{other.name}`, "
        f"but `{mine.name}` and `{theirs.name}` are both `{mine.vendor}`"
    )
    hint = f"[phase.{phase.name}] agent = an agent of another vendor, or allow_same_vendor = true"
    raise RelayError(text, hint=hint)

"""The agents of a repository: which phases each serves, and whether what drives it is there."""

from pathlib import Path

from relay import backends
from relay.errors import RelayError
from relay.host import files
from relay.host.repository import Repository
from relay.record import catalog, config
from relay.record.config import Config
from relay.terms import Agent, Phase, Struct


class Line(Struct, frozen=True, kw_only=True):
    """One agent: the phases it serves, and its version, or the problem that keeps it from running."""

    agent: Agent
    phases: tuple[str, ...]
    version: str = ""
    problem: str = ""


class Lineup(Struct, frozen=True, kw_only=True):
    """All agents, and the problem that kept Relay from reading relay.toml or the phases as a run would."""

    lines: tuple[Line, ...]
    problem: str = ""
    hint: str = ""


def read(repo: Repository) -> Lineup:
    """List the agents that a run would have; where relay.toml is not committed yet, those it has in the checkout."""
    problem = hint = ""
    phases: tuple[Phase, ...] = ()
    try:
        settings, _, commit = config.load(repo)
        phases = catalog.phases(repo, commit, settings)
    except RelayError as error:
        problem, hint = error.message, error.hint
        settings = _checkout(repo)
    return Lineup(
        lines=tuple(
            look(agent, tuple(phase.name for phase in phases if phase.agent == agent.name), repo.top or repo.common)
            for agent in settings.agents.values()
        ),
        problem=problem,
        hint=hint,
    )


def look(agent: Agent, phases: tuple[str, ...], where: Path) -> Line:
    """Ask an agent's backend whether it could take a leg in `where`."""
    try:
        version = backends.named(agent.backend).preflight(agent, where)
    except RelayError as error:
        return Line(agent=agent, phases=phases, problem=error.message)
    return Line(agent=agent, phases=phases, version=version)


def _checkout(repo: Repository) -> Config:
    """Read relay.toml as it stands in the checkout; one that is wrong is a `RelayError`."""
    data = b""
    if repo.top is not None:
        try:
            data = files.read_below(repo.top, config.NAME)
        except FileNotFoundError:
            data = b""
    settings = config.parse(data, config.NAME)
    agents = {**config.personal(), **settings.agents}
    return Config(agents=agents)

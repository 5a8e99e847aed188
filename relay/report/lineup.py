"""The agents of a repository: which phases each serves, and whether what drives it is there, or answers."""

from pathlib import Path

from relay import backends
from relay.backends import probes
from relay.errors import RelayError
from relay.host import files
from relay.host.repository import Repository
from relay.record import catalog, config, strict
from relay.record.config import Config
from relay.terms import Agent, Phase, Struct


class Line(Struct, frozen=True, kw_only=True):
    """One agent: the phases it serves, and its version, or the problem that keeps it from running.

    `key` says where its key is, "" for what needs none of Relay.
    """

    agent: Agent
    phases: tuple[str, ...]
    key: str = ""
    version: str = ""
    problem: str = ""


class Lineup(Struct, frozen=True, kw_only=True):
    """All agents, and the problem that kept Relay from reading relay.toml or the phases as a run would."""

    lines: tuple[Line, ...]
    problem: str = ""
    hint: str = ""


def read(repo: Repository) -> Lineup:
    """List the agents that a run would have; where relay.toml is not committed yet, those it has in the checkout."""
    settings, phases, problem, hint = _settings(repo)
    return Lineup(
        lines=tuple(
            look(agent, tuple(phase.name for phase in phases if phase.agent == agent.name), repo.top or repo.common)
            for agent in settings.agents.values()
        ),
        problem=problem,
        hint=hint,
    )


def _settings(repo: Repository) -> tuple[Config, tuple[Phase, ...], str, str]:
    """Return the config and the phases of a run; or the checkout's config, what is wrong with it, and a hint."""
    try:
        settings, _, commit = config.load(repo)
        return settings, catalog.phases(repo, commit, settings), "", ""
    except RelayError as error:
        return _checkout(repo), (), error.message, error.hint


def look(agent: Agent, phases: tuple[str, ...], where: Path) -> Line:
    """Ask an agent's backend whether it could take a leg in `where`."""
    key = ""
    try:
        probed = probes.of(agent.backend)
        key = probed.key(agent) if probed is not None else ""
        version = backends.named(agent.backend).preflight(agent, where)
    except RelayError as error:
        return Line(agent=agent, phases=phases, key=key, problem=error.message)
    return Line(agent=agent, phases=phases, key=key, version=version)


def call(repo: Repository, name: str) -> tuple[Agent, str | None]:
    """Make one tiny real call through an agent's backend; return what came of it, None where nothing can be called.

    `RelayError` for an agent that there is not, for set-up that is missing (exit 4), for a service that fails (exit 5).
    """
    agents = _settings(repo)[0].agents
    if name not in agents:
        known = ", ".join(f"`{known}`" for known in agents)
        hint = f"the agents are {known}" if known else "relay init"
        raise RelayError(f"there is no agent `{name}`{strict.close(name, agents)}", hint=hint)
    probed = probes.of(agents[name].backend)
    return agents[name], None if probed is None else probed.probe(agents[name])


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

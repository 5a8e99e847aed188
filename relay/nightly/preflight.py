"""What must be there before a night spends anything: room on the disk, the programs and logins of its agents."""

from collections.abc import Iterable
from pathlib import Path

from relay import backends
from relay.errors import RelayError
from relay.host import files
from relay.record import catalog, config
from relay.record.config import Config
from relay.record.ledger import Ledger
from relay.report import health
from relay.terms import Agent, Phase


def disk(ledger: Ledger) -> str:
    """Say that a disk is too full for a run to come to its end; an empty string where there is room."""
    state = files.state_home()
    there = next(path for path in (state, *state.parents) if path.exists())
    for look in (health.disk(ledger.repo.common), health.disk(there)):
        if look.level == "FAIL":
            return look.text
    return ""


class Agents:
    """Asks each agent once a night whether it could take a leg."""

    def __init__(self, ledger: Ledger) -> None:
        self._where: Path = ledger.repo.main_top or ledger.repo.common
        self._known: dict[Agent, str] = {}

    def missing(self, agents: Iterable[Agent]) -> str:
        """Say which of these agents cannot take a leg, and why; an empty string where all can."""
        problems = ((agent, self._problem(agent)) for agent in agents)
        return "; ".join(f"agent `{agent.name}`: {problem}" for agent, problem in problems if problem)

    def _problem(self, agent: Agent) -> str:
        if agent not in self._known:
            self._known[agent] = ""
            try:
                backends.named(agent.backend).preflight(agent, self._where)
            except RelayError as error:
                self._known[agent] = error.message
        return self._known[agent]


def used(ledger: Ledger, settings: Config, commit: str) -> tuple[Agent, ...]:
    """Return the agents of the line-up that a spec of the queue gets if it does not say otherwise."""
    try:
        phases: tuple[Phase, ...] = catalog.phases(ledger.repo, commit, settings)
    except RelayError:
        return ()  # each spec says so itself when its turn comes
    names = {phase.agent for phase in phases}
    return tuple(agent for name, agent in settings.agents.items() if name in names)


def settings(ledger: Ledger) -> tuple[Config, str]:
    """Return the config and the id of the base commit; `RelayError` where they cannot be had."""
    found, _, commit = config.load(ledger.repo)
    return found, commit

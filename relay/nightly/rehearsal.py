"""What a night would do if it began now; nothing is written, and nobody is asked but the agents' programs."""

from collections.abc import Iterator

from relay import queue
from relay.errors import RelayError
from relay.host import clock
from relay.nightly import agenda, preflight, purse, stranded
from relay.nightly.preflight import Agents
from relay.record import freeze
from relay.record.ledger import Ledger
from relay.terms import Item, Nightly
from relay.terms.nights import Did


def items(ledger: Ledger, asked: Nightly) -> Iterator[Item]:
    """Yield what a night would do, in its order; `RelayError` where it could not begin."""
    settings, commit = preflight.settings(ledger)
    end = purse.allowance(purse.of(settings.nightly, asked), clock.now()).until
    agents, waiting = Agents(ledger), []
    for one in agenda.runs(ledger):
        run, spec = one.plan.run, one.plan.source
        if one.proposed:
            yield Item(did="followed", run=run, spec=spec)
        elif one.reset is not None:
            reason = f"quota until {clock.stamp(one.reset)}"
            did: Did = "resumed" if end is not None and one.reset < end else "skipped"
            waiting.append(Item(did=did, run=run, spec=spec, reason=reason))
        elif one.goes_on:
            why = stranded.skipped(ledger, run) or agents.missing(one.plan.agents)
            yield Item(did="skipped" if why else "resumed", run=run, spec=spec, reason=why)
    for two in queue.line(ledger, settings, commit):
        reason = two.blocked
        if not reason:
            try:
                plan = freeze.freeze(ledger.repo, queue.read(ledger, two, commit), two.spec).plan
                reason = agents.missing(plan.agents)
            except RelayError as error:
                reason = error.message
        yield Item(did="skipped" if reason else "started", spec=two.spec, reason=reason)
    yield from waiting

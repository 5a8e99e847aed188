"""`relay agents`: who can take a leg here, whether one answers, and what a reply looks like."""

import json

import click

from relay.commands import common, options
from relay.host import repository, term


@click.group("agents", cls=options.Group, invoke_without_command=True)
@common.everywhere
@click.pass_context
def command(context: click.Context) -> int:
    """List the agents, call one, or print the JSON schema of a reply."""
    return listed() if context.invoked_subcommand is None else 0


@command.command("list")
@common.everywhere
def agents() -> int:
    """List the agents of relay.toml and your own, the phases each serves, where its key is, whether it could run."""
    return listed()


def listed() -> int:
    """Print a line for each agent."""
    from relay.report import lineup

    found = lineup.read(repository.discover(common.folder()))
    rows = []
    for line in found.lines:
        agent = line.agent
        term.event(
            "agent",
            name=agent.name,
            backend=agent.backend,
            model=agent.model,
            vendor=agent.vendor,
            phases=list(line.phases),
            key=line.key,
            version=line.version,
            problem=line.problem,
        )
        state = term.style(line.problem, "red") if line.problem else line.version or "-"
        shown = (agent.name, agent.backend, agent.model, agent.vendor, ", ".join(line.phases), line.key, state)
        rows.append([cell or "-" for cell in shown])
    if rows and not common.as_json():
        term.table(rows, ("agent", "backend", "model", "vendor", "phases", "key", "version"))
    if found.problem:
        term.say(f"no run could start yet: {found.problem}")
        term.hint(found.hint)
    elif not rows:
        term.say("no agents yet")
        term.hint("relay init")
    return 0


@command.command("test")
@click.argument("name")
@common.everywhere
def call(name: str) -> int:
    """Make one tiny real call through the agent NAME, and say what came back."""
    from relay.report import lineup

    agent, answer = lineup.call(repository.discover(common.folder()), name)
    term.event("test", name=agent.name, backend=agent.backend, called=answer is not None, answer=answer or "")
    if answer is None:
        term.say(f"`{agent.name}` is `{agent.backend}`: there is nothing to call")
    elif not common.as_json():
        term.data(f"{agent.name}: {answer}")
    return 0


@command.command("schema")
@click.argument("kind", type=click.Choice(["work", "judge"]), required=False)
@common.everywhere
def schema(kind: str | None) -> int:
    """Print the JSON schema of a reply: of a work leg, of a judge, or both by their names.

    A command agent writes such a reply, as JSON, to the file that RELAY_REPLY names.
    """
    from relay.record import reply

    found = {"work": reply.schema("work"), "judge": reply.schema("judge")}
    shown = found[kind] if kind is not None else found
    term.data(json.dumps(shown, indent=None if common.as_json() else 1))
    return 0

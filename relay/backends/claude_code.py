"""Claude Code takes the leg: the person's own program, asked without a terminal, in a session that nobody shares.

Success is evidence, never the exit code alone (clis.md 2.3): the program ended by itself, with 0, with a result that
is no error, and with a reply that fits. A reply that does not fit is asked for once more, in the same session.
"""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from relay.backends import claude_leg, claude_login, engine
from relay.backends.base import Lane, Needs
from relay.backends.claude_login import Loan
from relay.errors import Exit, RelayError
from relay.host import redact, scratch
from relay.terms import Agent, Ask, Limits, Taken

by_hand = False
NAME: Final = "claude"
KEPT: Final = "session.jsonl"
"""Where the session's file is after the leg, beside the reply."""
OLDEST: Final = (2, 1)
"""The oldest version that is known to work."""


def preflight(agent: Agent, where: Path) -> str:
    """Return version and digest of the program; not there, too old or nobody to pay: a `RelayError` (exit 4)."""
    del where
    program = engine.find(NAME, agent.name)
    if tuple(int(part) for part in program.version.split(".")[:2]) < OLDEST:
        problem = f"`{program.path}` is version {program.version}, and {'.'.join(map(str, OLDEST))} is needed"
        raise RelayError(problem, hint="run: claude update", exit_code=Exit.HUMAN)
    if claude_login.payer(agent).login:
        said = engine.event(engine.ask(program.path, "auth", "status", env=_whose()).text.replace("\n", " ").encode())
        if said is not None and said.get("loggedIn") is False:
            raise RelayError("claude is not logged in", hint="run: claude auth login", exit_code=Exit.HUMAN)
    return str(program)


def needs(ask: Ask) -> Needs:
    """Return the program's own files, the folder of the leg, and who it talks to."""
    place = claude_leg.place(ask)
    shown = claude_login.settings_shown() if ask.agent.settings == "user" else ()
    try:
        found, payer = engine.find(NAME, ask.agent.name), claude_login.payer(ask.agent, ask.limits.seconds)
    except RelayError:  # `take` says it
        return Needs(writable=(place.parent,))
    return Needs(readable=(*engine.readable(found), *shown), writable=(place.parent,), hosts=payer.hosts)


def take(ask: Ask, lane: Lane) -> Taken:
    """Run the program in a fresh session until it has replied, or ended otherwise."""
    try:
        program = engine.find(NAME, ask.agent.name)
    except RelayError as error:
        return Taken(ended_by="setup", problem=error.message)
    try:
        payer = claude_login.payer(ask.agent, ask.limits.seconds)
    except RelayError as error:
        return Taken(ended_by="auth", problem=error.message)
    redact.learn(claude_login.secrets(payer))
    ask = msgspec.structs.replace(ask, env=claude_login.withheld(ask.env))
    with ExitStack() as stack:
        leg = claude_leg.Leg(ask, lane, program, payer)
        if payer.lent:
            leg.loan = stack.enter_context(Loan(leg.place))
        taken = leg.run()
    usage, cost = leg.close()
    leg.keep(Path(ask.reply_path).parent / KEPT)
    return msgspec.structs.replace(
        taken,
        model=leg.heard.model or ask.agent.model,
        version=str(program),
        session=leg.session,
        usage=usage,
        cost_microusd=cost,
        billing=payer.billing,
        reach=None if lane.cell is None or lane.cell.network == "host" else "service",
        settings=ask.agent.settings,
    )


def probe(agent: Agent) -> str:
    """Have the agent say one word, really, and say who answered; `RelayError` (exit 4 or 5) when it did not."""
    with scratch.folder("probe") as folder:
        place = Path(folder).resolve()
        (place / "empty").mkdir()
        ask = Ask(
            run="probe",
            leg="probe",
            phase="probe",
            kind="work",
            boundary="verify-only",
            round=1,
            turn=1,
            nonce=os.urandom(16).hex(),
            prompt="This is a test of the connection. Reply with the word `ready`.",
            folder=str(place / "empty"),
            reply_path=str(place / "reply.json"),
            limits=Limits(seconds=120, turns=3),
            agent=agent,
            schema={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
        )
        nobody = Lane(sink=lambda _: None, told=lambda _: None, spawned=lambda _: None, unfit=lambda _: "")
        taken = take(ask, nobody)
    if taken.ended_by != "reply":
        code = Exit.HUMAN if taken.ended_by in {"setup", "auth"} else Exit.AGENT
        raise RelayError(taken.problem or taken.ended_by, hint="try it: claude -p hello", exit_code=code)
    cost = "cost unknown" if taken.cost_microusd is None else f"${taken.cost_microusd / 1_000_000:.4f}"
    return f"{taken.model} answered, {cost}, paid by {taken.billing}"


def key(agent: Agent) -> str:
    """Say who pays, by which variable or login; never its value."""
    try:
        paid = claude_login.payer(agent)
    except RelayError as error:
        return error.message
    return f"{paid.billing}, by {paid.by}"


def _whose() -> dict[str, str]:
    """Return what leads the program to the person's own folder; named without need it would write another file."""
    moved = os.environ.get("CLAUDE_CONFIG_DIR")
    return {"CLAUDE_CONFIG_DIR": moved} if moved else {}

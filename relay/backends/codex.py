"""The person's own Codex takes the leg, each in a session of its own, read and bounded by Relay.

Success is evidence: exit 0, a finished turn, an answer after the last call, and a reply that fits (clis.md 3.3).
In the open Codex confines its shells itself. In a jail, where its walls cannot stand, it only takes the network from
them, by a filter that needs no namespace: the program reaches its service, its shells reach nothing.
"""

import dataclasses
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from relay.backends import codex_faults, codex_login, codex_program, codex_schema, engine
from relay.backends.base import Lane, Needs
from relay.backends.codex_faults import Fault
from relay.backends.codex_login import Payer
from relay.backends.codex_program import Place
from relay.backends.codex_rollout import Session, billed, settle
from relay.backends.codex_session import Answer, Talker, in_turn
from relay.backends.purse import Over, Purse
from relay.errors import Exit, RelayError
from relay.host import clock, files, redact, scratch, term
from relay.host.jail.cell import Cell
from relay.terms import Agent, Ask, EndedBy, Limits, Reach, Taken

by_hand = False
KEPT: Final = "session.jsonl"
"""Where the session's file is after the leg, beside the reply."""
_NOTE: Final = """\
The room for this session is used up. Do nothing more: run no command and change no file. Answer now, as a note for a \
fresh session that goes on from the files as they stand: what you decided and why, what you tried and dropped, what is \
left to do, in `todo`, in an order that works. Answer with one JSON document that fits the schema, and nothing else."""
_AGAIN: Final = """\
Your last answer was not taken: {problem}. Do nothing more. Give your answer again as one JSON document that fits the \
schema, and nothing else."""
_SILENT: Final = "there was no answer"
_WORDS: Final = "Say ok."


def preflight(agent: Agent, where: Path) -> str:
    """Return version and hash of the program; `RelayError` (exit 4) where it, a login, or its sandbox is missing."""
    del where
    found = codex_program.find(agent)
    codex_login.payer(agent)
    if problem := codex_program.walls(found):
        hint = "Codex needs user namespaces of the kernel\ntry it: codex sandbox -P :workspace -- true"
        raise RelayError(f"the sandbox of Codex does not start here: {problem}", hint=hint, exit_code=Exit.HUMAN)
    if codex_program.by_script(found):
        term.say(f"codex: only the script `{found.path}` was found, not the program behind it")
    return str(found)


def key(agent: Agent) -> str:
    """Say where the key or the login is; never a value."""
    return codex_login.where(agent)


def needs(ask: Ask) -> Needs:
    """Return the program's package, its folder for this leg, and its service."""
    try:
        found, payer = codex_program.find(ask.agent), codex_login.payer(ask.agent)
    except RelayError:
        return Needs()  # the leg will say why
    place = _place(ask)
    own = (place.home,) if place.home == codex_login.folder() else ()
    return Needs(readable=codex_program.readable(found), writable=(*own, place.tmp.parent), hosts=payer.hosts)


def take(ask: Ask, lane: Lane) -> Taken:
    """Take one leg to its end."""
    try:
        found = codex_program.find(ask.agent)
    except RelayError as error:
        return Taken(ended_by="setup", problem=error.message, model=ask.agent.model)
    try:
        payer = codex_login.payer(ask.agent)
    except RelayError as error:
        return Taken(ended_by="auth", problem=error.message, model=ask.agent.model, version=str(found))
    redact.learn(codex_login.secrets(payer))
    if len(ask.prompt) > codex_program.LONGEST:
        problem = f"the prompt has {len(ask.prompt)} characters, and Codex takes {codex_program.LONGEST}"
        return Taken(ended_by="setup", problem=problem, model=ask.agent.model, version=str(found))
    place = _place(ask)
    try:
        with ExitStack() as lent:
            if payer.lent and place.home != codex_login.folder():
                if lane.cell is not None and not codex_login.outlives(ask.limits.seconds):
                    codex_program.renew(found, payer, ask.env)
                lent.enter_context(codex_login.Loan(place.home, jailed=lane.cell is not None))
            return _Leg(ask, lane, found, payer, place).go()
    finally:
        files.remove_tree(place.tmp.parent)


def _place(ask: Ask) -> Place:
    """Make the folders of a leg: its own CODEX_HOME, unless the person's is wanted, and a sibling for passing files.

    Codex builds no sandbox where its home lies in the folder for passing files (clis.md 0.5): here it never does.
    """
    base = Path(ask.reply_path).parent.resolve() / "codex"
    home = codex_login.folder() if ask.agent.settings == "user" else base / "home"
    tmp, schema = base / "tmp", base / "schema.json" if ask.schema else None
    for folder in (base, home, tmp):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if schema:
        files.write(schema, msgspec.json.encode(codex_schema.strict(ask.schema)))
    return Place(home=home, tmp=tmp, schema=schema)


def _quiet(cell: Cell | None, payer: Payer) -> bool:
    """Tell whether the commands of a jailed leg get no network: nothing is open in its cell but the service."""
    return cell is not None and cell.network != "host" and {*cell.allow, *cell.loopback} <= {*payer.hosts}


class _Leg:
    """One leg in progress."""

    def __init__(self, ask: Ask, lane: Lane, found: engine.Found, payer: Payer, place: Place) -> None:
        told = in_turn(lane.told)
        self._ask, self._lane, self._found, self._payer = ask, lane, found, payer
        self._purse = Purse(ask.limits, billed(ask.agent))
        share = ask.context if ask.kind == "work" else None
        self._session = Session(told, self._purse, ask.agent.window, share)
        held = msgspec.structs.replace(ask, env=codex_login.withheld(ask.env))
        self._talker = Talker(held, dataclasses.replace(lane, told=told), self._session, place.home / "sessions")
        self._place = place
        self._whole = True
        quiet = _quiet(lane.cell, payer) and codex_program.silences(found)
        self._reach: Reach = (
            "off" if quiet or lane.cell is None else "host" if lane.cell.network == "host" else "service"
        )
        self._command = codex_program.command(found, ask, payer, place, walls=lane.cell is None, quiet=quiet)

    def go(self) -> Taken:
        """Take the turns that the leg is made of."""
        try:
            return self._taken(*self._turns())
        except Over as over:  # the time of the leg is over between two turns
            return self._taken(over.ended_by, None, Fault(ended_by=over.ended_by, problem=str(over)))
        finally:
            self._session.keep(Path(self._ask.reply_path).parent / KEPT)

    def _turns(self) -> tuple[EndedBy, bytes | None, Fault | None]:
        """Say what is asked; where the room is used up, ask for a note; where an answer does not fit, ask once more."""
        ended_by: EndedBy = "reply"
        said = self._say(self._ask.prompt)
        if isinstance(said, Fault) and said.ended_by == "handover":
            ended_by = "handover"
            self._session.close()
            said = self._say(_NOTE)
        for last in (False, True):
            if isinstance(said, Fault):
                return said.ended_by, None, said
            reply = None if said is None else codex_schema.plain(said, self._ask.schema)
            problem = _SILENT if reply is None else self._lane.unfit(reply)
            if not problem:
                return ended_by, reply, None
            if last:
                break
            self._session.close()
            said = self._say(_AGAIN.format(problem=problem))
        silent = " (a refusal looks the same)" if problem == _SILENT else ""
        return "no-reply", None, Fault(ended_by="no-reply", problem=f"asked twice: {problem}{silent}")

    def _say(self, words: str) -> str | Fault | None:
        """Say something; return the answer, None where there was none, or how the leg ended."""
        env = {**self._payer.env, "CODEX_HOME": str(self._place.home), "TMPDIR": str(self._place.tmp)}
        came = self._talker.say(self._command, words, env, self._purse.left())
        if isinstance(came, Answer):
            settle(self._purse, came.usage or {})
            return came.text
        self._whole = False
        if isinstance(came, Over):
            return Fault(ended_by=came.ended_by, problem=str(came))
        if isinstance(came, Fault):
            return came
        taken = engine.taken("codex", came)
        return Fault(ended_by=taken.ended_by, problem=taken.problem or "") if taken else codex_faults.stopped(-1, "")

    def _taken(self, ended_by: EndedBy, reply: bytes | None, fault: Fault | None) -> Taken:
        usage = self._purse.usage
        problem = redact.Redactor(self._payer.env).text(fault.problem) if fault else None
        return Taken(
            ended_by=ended_by,
            reply=reply,
            problem=problem,
            until=fault.until if fault else None,
            model=self._session.model or self._ask.agent.model,
            version=str(self._found),
            session=self._talker.thread or None,
            usage=msgspec.structs.replace(usage, complete=usage.complete and self._whole),
            cost_microusd=self._purse.cost,
            billing=self._payer.billing,
            reach=self._reach,
            settings=self._ask.agent.settings,
        )


def probe(agent: Agent) -> str:
    """Make one tiny real call and say what came back; `RelayError` with exit 4 for set-up, 5 for the service."""
    codex_program.find(agent)
    codex_login.payer(agent)
    began = clock.monotonic()
    with scratch.folder("probe") as place:
        folder = Path(place, "tree")
        folder.mkdir()
        ask = Ask(
            run="probe",
            leg="00-probe",
            phase="probe",
            kind="judge",
            boundary="verify-only",
            round=1,
            turn=1,
            nonce=uuid.uuid4().hex,
            prompt=_WORDS,
            folder=str(folder),
            reply_path=str(Path(place, "io", "reply.json")),
            limits=Limits(seconds=120, turns=2),
            agent=agent,
        )
        taken = take(ask, Lane(*(lambda _: None,) * 3, unfit=lambda _: ""))
    if taken.ended_by != "reply":
        code = Exit.HUMAN if taken.ended_by == "setup" else Exit.AGENT
        hint = f"look at `[agents.{agent.name}]` in relay.toml, or try it: codex exec '{_WORDS}'"
        raise RelayError(f"codex: {taken.problem}", hint=hint, exit_code=code)
    used = taken.usage
    seconds = clock.monotonic() - began
    return f"{taken.model or 'codex'} answered in {seconds:.1f} s, {used.input} tokens in, {used.output} out"

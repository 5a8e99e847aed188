"""Notices: a person who is not looking is told once of each event, with the exact next command. Never stops a run.

By the services whose addresses stand in the person's own config.toml, through apprise (an extra), and by a command.
"""

import errno
import importlib.util
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from relay import telling
from relay.errors import Exit
from relay.host import clock, files, proc, redact, term
from relay.host.jail import cell as cells
from relay.record import config
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import plan as rules
from relay.terms import Limits, Plan, Receipt, Struct
from relay.terms.plan import NoticeEvent, Notify

SECONDS: Final = 30.0
"""How long the person's command may take, and all addresses together."""

REASONS: Final[dict[str, NoticeEvent]] = {"breach": "breach", "auth": "login-expired"}
"""Why a run needs a person, where that is an event of its own."""


Sent = Literal["sent", "needless", "failed"]
"""What became of a notice."""


class Notice(Struct, frozen=True, kw_only=True):
    """One event: `key` tells it from every other one of this repository, so that it is told once.

    `run` is empty where it is about no single one.
    """

    event: NoticeEvent
    key: str
    run: str = ""
    title: str
    text: str = ""
    verdict: str = ""
    cost: str = ""
    next: str = ""

    @property
    def subject(self) -> str:
        """Return the one line."""
        return f"relay: {self.title} - {self.event}"

    @property
    def body(self) -> str:
        """Return the rest, a line for each thing there is to say."""
        run, verdict = f"run: {self.run}" * bool(self.run), f"verdict: {self.verdict}" * bool(self.verdict)
        lines = [run, self.text, verdict, f"cost: {self.cost}"]
        return "\n".join([*filter(None, lines), *[f"next: {line}" for line in self.next.splitlines()]])


def about(ledger: Ledger, plan: Plan, step: rules.Next) -> None:
    """Send a notice of how a run stands, if that is an event, and nobody was told of it yet."""
    event = _event(plan, step)
    if event is None:
        return
    chain = ledgers.receipts(ledger, plan.run)
    last = chain[-1].leg if chain else "start"
    effect = (chain[-1].effect or {}) if chain else {}
    told = (effect.get(name, "") for name in ("url", "why"))
    text = step.text if isinstance(step, rules.Human) else ": ".join(filter(None, told))
    notice = Notice(
        event=event,
        key=f"{plan.run}.{last}.{event}",
        run=plan.run,
        title=plan.title,
        text=" ".join(text.split()),
        verdict=_verdict(chain),
        cost=_cost(chain),
        next=_next(ledger, plan, chain, step),
    )
    send(ledger, notice)


def send(ledger: Ledger, notice: Notice) -> Sent:
    """Send a notice once, whoever asks how often. What prevents it is logged.

    It is `sent` where one way to the person took it whole, and `needless` where nobody wants it, or was told before.
    """
    heard = False
    try:
        wanted = config.notices()
        if not (wanted.urls or wanted.command) or (wanted.events and notice.event not in wanted.events):
            return "needless"
        if not _first(ledger, notice.key):
            return "needless"
        subject, body = redact.own().text(notice.subject), redact.own().text(notice.body)
        called, addressed = [*_called(wanted, notice, subject, body)], [*_addressed(wanted, subject, body)]
        heard = bool((wanted.command and not called) or (wanted.urls and not addressed))
        problems = called + addressed
    except Exception as error:  # noqa: BLE001 - whatever it is: a notice never stops a run
        problems = [f"{type(error).__name__}: {error}"]
    for problem in problems:
        _log(ledger, notice, redact.own().text(problem))
    return "sent" if heard else "failed"


def _event(plan: Plan, step: rules.Next) -> NoticeEvent | None:
    match step:
        case rules.Human():
            code = rules.EXIT.get(step.reason)
            return REASONS.get(step.reason) or ("failed" if code == Exit.AGENT else "needs-human")
        case rules.Accepted() if plan.ship.approval == "manual" or plan.unchecked:
            return "approval"
        case rules.End(outcome="shipped"):
            return "shipped"
        case rules.End(outcome="proposed"):
            return "proposed"
        case _:
            return None


def _verdict(chain: tuple[Receipt, ...]) -> str:
    """Return the newest verdict with its score."""
    judged = next((leg for leg in reversed(chain) if leg.verdict is not None), None)
    scored = next((leg.score for leg in reversed(chain) if leg.score), None)
    return ", ".join(filter(None, [judged.verdict if judged is not None else None, scored and f"{scored} criteria"]))


def _cost(chain: tuple[Receipt, ...]) -> str:
    known = sum(leg.cost_microusd or 0 for leg in chain) / 1_000_000
    return "at least " * any(leg.cost_microusd is None for leg in chain) + f"${known:.2f}"


def _next(ledger: Ledger, plan: Plan, chain: tuple[Receipt, ...], step: rules.Next) -> str:
    """Say what to type, from anywhere: whoever reads it does not stand in the repository."""
    at = shlex.quote(str(ledger.repo.main_top or ledger.repo.common))
    return telling.next_command(plan.run, step, telling.raised(plan, chain)).replace("relay ", f"relay -C {at} ")


def _first(ledger: Ledger, key: str) -> bool:
    """Put down that an event is told, before it is, so that it never is twice; tell whether nobody had.

    Where the disk is full and that cannot be put down, telling it twice is better than never.
    """
    folder = ledger.root / "notices"
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        os.close(os.open(folder / key.replace("/", "-"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        files.sync_folder(folder)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return False
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
    return True


def _called(wanted: Notify, notice: Notice, subject: str, body: str) -> Iterator[str]:
    """Run the person's command: the event in its environment, the words on its input."""
    if not wanted.command:
        return
    told = {
        "RELAY_EVENT": notice.event,
        "RELAY_RUN": notice.run,
        "RELAY_VERDICT": notice.verdict,
        "RELAY_COST": notice.cost,
        "RELAY_NEXT": notice.next,
        "RELAY_SUBJECT": subject,
    }
    lent = {name: os.environ[name] for name in wanted.env if name in os.environ}
    env = cells.surroundings({**lent, **told})
    ended = proc.run(
        wanted.command,
        cwd=_home(),
        env=env,
        stdin=f"{subject}\n\n{body}\n".encode(),
        limits=Limits(seconds=SECONDS, keep=4096),
    )
    if ended.code or ended.ended != "exit":
        why = f"took longer than {SECONDS:g} s" if ended.ended == "timeout" else f"exited {ended.code}"
        said = redact.Redactor(lent).text(redact.own().text(ended.text))  # whole, since half of a secret is none
        yield f"`notify.command` {why}: {' '.join(said.split())[-200:]}"


def _home() -> str:
    """Return where the person's programs start: their home, or the root where that is no folder."""
    with suppress(OSError, RuntimeError):
        home = Path.home()
        if home.is_absolute() and home.is_dir() and os.access(home, os.X_OK):
            return str(home)
    return os.sep


def _addressed(wanted: Notify, subject: str, body: str) -> Iterator[str]:
    """Send to every address at once, in a process that ends in time; a wrong one is known by its kind alone.

    Addresses hold secrets, so they go in by the input. Without `-P` modules of Relay would hide some of Python's.
    """
    if not wanted.urls:
        return
    if importlib.util.find_spec("apprise") is None:
        yield "`notify.urls` needs apprise: pip install 'phased-relay[notify]'"
        return
    ended = proc.run(
        [sys.executable, "-P", str(Path(__file__).with_name("ring.py"))],
        cwd=_home(),
        env=os.environ,
        stdin=json.dumps({"urls": wanted.urls, "title": subject, "body": body}).encode(),
        limits=Limits(seconds=SECONDS, keep=1 << 16),
    )
    said = dict(re.findall(r"(?m)^(\d+) (\w+)$", ended.text))
    late = f"did not take it within {SECONDS:g} s" if ended.ended == "timeout" else "could not be rung"
    for number, url in enumerate(wanted.urls):
        kind = f"`{url.partition(':')[0]}://...`"
        match said.get(str(number)):
            case "sent":
                pass
            case "unknown":
                yield f"`notify.urls`: apprise does not understand the address {kind}"
            case "refused":
                yield f"`notify.urls`: {kind} did not take it"
            case _:
                yield f"`notify.urls`: {kind} {late}"


def _log(ledger: Ledger, notice: Notice, problem: str) -> None:
    """Keep what could not be sent, and say it."""
    line = f"{clock.stamp()} {notice.run} {notice.event}: {' '.join(problem.split())}"
    term.say(f"{term.style('warning:', 'yellow')} a notice was not sent: {problem}")
    with suppress(OSError):
        folder = ledger.root / "notices"
        folder.mkdir(0o700, parents=True, exist_ok=True)
        with (folder / "log").open("a", encoding="utf-8") as log:
            log.write(line + "\n")

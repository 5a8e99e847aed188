"""The account of one run, for whoever comes back to it: how it stands, what it took, what it asks, what to type."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from relay import aftermath, telling
from relay.aftermath import Left
from relay.errors import RelayError
from relay.record import evidence
from relay.record.ledger import Ledger
from relay.report import figures
from relay.report import run as runs
from relay.report.figures import Spent
from relay.report.run import Glance
from relay.rules import plan as rules
from relay.terms import Plan, Receipt, Struct

SAID: Final = {
    "accepted": ("accepted", "accepted"),
    "proposed": ("proposed", "proposed"),
    "shipped": ("shipped", "shipped"),
    "breach": ("breached its boundary", "breached their boundary"),
    "needs-human": ("needs you", "need you"),
    "waiting": ("waits for its quota", "wait for their quota"),
    "open": ("goes on", "go on"),
    "stopped": ("stopped", "stopped"),
    "proposed-by-hand": ("proposed (by hand, not accepted)", "proposed (by hand, not accepted)"),
    "shipped-by-hand": ("shipped (by hand, not accepted)", "shipped (by hand, not accepted)"),
    "not-accepted": ("not accepted", "not accepted"),
    "unreadable": ("cannot be read", "cannot be read"),
}
"""How an outcome is said of one run, and of several; what a person sent out though nothing accepted it stands apart."""

SETTLED: Final = frozenset({"accepted", "proposed", "shipped"})


class Command(Struct, frozen=True, kw_only=True):
    """What to type, and in a few words when or why, where that is not plain."""

    text: str
    note: str = ""


class Account(Struct, frozen=True, kw_only=True):
    """How a run stands. `glance` is None where its record cannot be read; then `needs` says what is wrong with it.

    `yours` says that it goes on only when a person does something, `forced` that nothing accepted what went out,
    `breached` that it stands where a leg crossed its boundary; `left` is what a breach changed and nobody set right.
    """

    run: str
    title: str
    outcome: str
    yours: bool
    needs: str = ""
    question: str = ""
    commands: tuple[Command, ...] = ()
    spent: Spent = Spent()
    rounds: int = 0
    score: str = ""
    glance: Glance | None = None
    forced: bool = False
    breached: bool = False
    left: tuple[Left, ...] = ()

    @property
    def stands(self) -> str:
        """Return the outcome without what is said beside it."""
        return self.outcome.split(" ", maxsplit=1)[0]

    @property
    def apart(self) -> str:
        """Return what it is counted as: the outcome; by itself a breach, and what went out by a person's hand alone."""
        if self.breached:
            return "breach"
        return f"{self.stands}-by-hand" if self.forced else self.stands

    @property
    def settled(self) -> bool:
        """Tell whether it was accepted, whatever became of it then; what a person forced was not."""
        return self.stands in SETTLED and not self.forced

    @property
    def told(self) -> str:
        """Return the outcome, and beside it that nothing accepted what went out, where that is so."""
        return "breach" if self.breached else runs.told(self.outcome, forced=self.forced)

    @property
    def said(self) -> str:
        """Say the outcome in words, with `(unchecked)` where nothing could check it."""
        return self.outcome.replace(self.stands, SAID[self.apart][0], 1)

    def brief(self, room: int) -> str:
        """Say what it needs in so many letters; of a record that cannot be read the file is named in any case."""
        if self.glance is not None:
            return self.needs if len(self.needs) <= room else f"{self.needs[:room]}..."
        text = runs.near(self.run, self.needs)
        return text if len(text) <= room else f"...{text[-room:]}" if text.endswith("`") else f"{text[:room]}..."


def of(ledger: Ledger, run: str, at: str = "") -> Account:
    """Give the account of a run; `at` goes behind `relay` in each command: `-C DIR ` for whoever stands elsewhere."""
    try:
        glance = runs.glance(ledger, run)
    except (RelayError, OSError) as error:
        wrong = error.message if isinstance(error, RelayError) else str(error)
        verify = Command(text=f"relay {at}verify {run}")
        lost = Spent(unknown=1, uncounted=1, unread=1)
        return Account(
            run=run, title=run, outcome="unreadable", yours=True, needs=wrong, commands=(verify,), spent=lost
        )
    chain, step = glance.chain, glance.step
    left = aftermath.look(ledger, glance.plan, chain) if not isinstance(step, rules.End) else ()
    legs = [sealed for sealed in chain if sealed.kind != "act"]
    return Account(
        run=run,
        title=glance.plan.title,
        outcome=glance.outcome,
        yours=isinstance(step, rules.Human | rules.Accepted) and not glance.held,
        needs=glance.needs,
        question=_question(ledger, chain, step),
        commands=() if glance.held else _seen(commands(glance.plan, chain, step, at), left, _reason(step)),
        spent=figures.spent(chain),
        rounds=max((sealed.round for sealed in legs), default=0),
        score=next((sealed.score for sealed in reversed(legs) if sealed.score), ""),
        glance=glance,
        forced=glance.forced,
        breached=_reason(step) == "breach",
        left=left,
    )


def commands(plan: Plan, chain: Sequence[Receipt], step: rules.Next, at: str = "") -> tuple[Command, ...]:
    """Say what to type next, one command each, so that it can be copied."""
    if _reason(step) == "budget" and (flags := telling.raised(plan, chain)):
        return (Command(text=f"relay {at}resume {plan.run}{flags}", note=telling.leaves(plan, chain)),)
    found: list[Command] = []
    for line in telling.next_command(plan.run, step).splitlines():
        text, _, note = line.partition("    (")
        for number, one in enumerate(text.split(", or relay ")):
            whole = f"relay {one}" if number else one
            said = "or" if number or (found and isinstance(step, rules.Accepted)) else note.removesuffix(")")
            found.append(Command(text=whole.replace("relay ", f"relay {at}", 1).strip(), note=said))
    return tuple(found)


def _seen(found: tuple[Command, ...], left: Sequence[Left], reason: str) -> tuple[Command, ...]:
    """Add what shows a breach: behind the first command where a person looks at it, else at the end."""
    shows = (Command(text=one.command, note=one.what) for one in left[: aftermath.SOME] if one.command)
    first = 1 if reason == "breach" else len(found)
    return (*found[:first], *shows, *found[first:])


def _reason(step: rules.Next) -> str:
    return step.reason if isinstance(step, rules.Human) else ""


def _question(ledger: Ledger, chain: Sequence[Receipt], step: rules.Next) -> str:
    """Return what an agent asks, where that is what the run waits for."""
    if not isinstance(step, rules.Human) or step.reason != "question":
        return ""
    asked = next((sealed for sealed in chain if sealed.leg == step.leg), None)
    with suppress(RelayError, OSError):
        answer = evidence.reply_of(ledger, asked) if asked is not None else None
        return (answer.question or "") if answer is not None else ""
    return ""

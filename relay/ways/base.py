"""What every way out has in common: what is sent, what became of it, and how it is said that nothing did."""

from typing import Literal, Protocol

from relay.errors import Exit, RelayError
from relay.host import clock, proc
from relay.host.repository import Repository
from relay.record.ledger import Ledger
from relay.terms import Check, Pins, Plan, Receipt, Ship, Start, Struct


class Parcel(Struct, frozen=True, kw_only=True):
    """One shipment: a commit of a run, and the full name of the branch it is for.

    `now` is where that branch stood when the commit was made; None where it is not there yet, or no longer known.
    """

    ledger: Ledger
    plan: Plan
    chain: tuple[Receipt, ...]
    leg: str
    target: str
    commit: str
    now: str | None = None

    @property
    def repo(self) -> Repository:
        """Return the repository that the run belongs to."""
        return self.ledger.repo


def intent(parcel: Parcel, leg: str, pins: Pins, head: str) -> Start:
    """Return what is written before a deed out there: of `head`, that of the run, the commit that `pins` names."""
    return Start(
        schema=1,
        run=parcel.plan.run,
        leg=leg,
        act="ship",
        kind="act",
        start=head,
        base=pins.base,
        common_dir=str(parcel.repo.common),
        nonce=parcel.target,
        started=clock.stamp(),
        relay=proc.this(),
        pins=pins,
    )


class Tip(Struct, frozen=True, kw_only=True):
    """Where a branch stands, None where it is not there yet, and what the change is to be put onto, if not the base."""

    now: str | None = None
    onto: str | None = None


class Words(Struct, frozen=True, kw_only=True):
    """What a proposal says: one line, and a page made of the receipts."""

    title: str
    body: str


class Out(Struct, frozen=True, kw_only=True):
    """What is out there: the commit by which the change is there, what else the receipt tells, and what was run."""

    commit: str
    outcome: Literal["shipped", "proposed", "failed"] = "shipped"
    told: dict[str, str] = {}
    checks: tuple[Check, ...] = ()


class RefusedError(RelayError):
    """Nothing went out, and everything is as it was."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint, exit_code=Exit.HUMAN)


class MovedError(RefusedError):
    """Nothing went out, since the branch moved after the commit was made for it: made anew it may fit."""


class UnknownError(RelayError):
    """Nobody can say now whether it went out; looking again later may tell."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint, exit_code=Exit.HUMAN)


class Way(Protocol):
    """One method of `[ship]`. What it is given was accepted, and is kept under a ref, with the intent on disk."""

    def check(self, repo: Repository, ship: Ship) -> None:
        """Refuse what could never work here, before anything is spent on a run: a `RelayError`."""

    def target(self, ledger: Ledger, plan: Plan, into: str | None) -> str:
        """Name the branch that the change is for, by its full name; `into` is what a person said just now."""

    def tip(self, ledger: Ledger, plan: Plan, target: str) -> Tip:
        """Return where the branch stands; the commits then are in this repository too.

        Raises `RefusedError` where a branch that must be there is not, or nobody can look.
        """

    def look(self, parcel: Parcel) -> Out | None:
        """Look whether the commit is out there; None where it is not. Raises `UnknownError`."""

    def send(self, parcel: Parcel, words: Words) -> Out:
        """Let it go out. Raises `RefusedError`, after which everything is as it was, and `UnknownError`."""

    def withdraw(self, parcel: Parcel) -> str:
        """Take back what a shipment that was cut short had only prepared; returns what had to stay, or nothing."""

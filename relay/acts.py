"""Acts: what a person did, or Relay towards the outside, between legs; numbered and sealed like legs."""

import os
from collections.abc import Mapping, Sequence

from relay import __version__
from relay.host import clock, files, git, redact, term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import history
from relay.terms import Act, Check, Pins, Plan, Receipt


def seal(  # noqa: PLR0913 - each a field of the receipt
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    act: Act,
    *,
    leg: str | None = None,
    why: str = "",
    pins: Pins | None = None,
    effect: Mapping[str, str] | None = None,
    by: str | None = None,
    round_: int | None = None,
    started: str | None = None,
    checks: tuple[Check, ...] = (),
) -> Receipt:
    """Seal an act under the run's lock, which the caller holds; what the person wrote stands beside, by hash.

    A secret in it is not kept, nor handed to an agent: the person is told.
    """
    given, why = why, redact.own().text(why)
    if why != given:
        term.say(f"{term.style('warning:', 'yellow')} a secret was taken out of what you wrote: it is kept nowhere")
        term.hint("an agent gets a secret by the variable that `env` names in its line of relay.toml")
    head = pins.head if pins else history.head(plan, chain)
    base = pins.base if pins else history.base(plan, chain)
    now = clock.stamp()
    sealed = Receipt(
        schema=1,
        run=plan.run,
        leg=leg or ledgers.next_leg_id(ledger, plan.run, act),
        kind="act",
        prev="",
        relay_version=__version__,
        started=started or now,
        ended=now,
        round=round_ if round_ is not None else (chain[-1].round if chain else 1),
        start=head,
        base=base,
        head=head,
        tree=pins.tree if pins else git.tree(ledger.repo, head),
        start_tree=git.tree(ledger.repo, head),
        by=by or person(),
        act=act,
        why_sha256=files.sha256(why.encode()) if why else None,
        pins=pins,
        checks=checks,
        effect=dict(effect) if effect is not None else None,
    )
    return ledgers.seal(ledger, sealed, {"why.md": why.encode()} if why else {})


def person() -> str:
    """Name who is at the keyboard, as the system knows it: an approval says who gave it."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"

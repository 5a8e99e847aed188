"""Which run and which leg a person means."""

from collections.abc import Sequence

from relay.errors import RelayError
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger


def split(wanted: str | None) -> tuple[str | None, str | None]:
    """Split `RUN/LEG`; what is not said is None."""
    run, _, leg = (wanted or "").partition("/")
    return run or None, leg or None


def run(ledger: Ledger, wanted: str | None) -> str:
    """Return the run that is meant: the one named, by a part of its id too, else the newest."""
    if wanted is not None:
        return ledgers.find(ledger, wanted)
    known = ledgers.runs(ledger)
    if not known:
        raise RelayError("there are no runs here yet", hint="relay run SPEC")
    return known[-1]


def leg(ledger: Ledger, run_: str, wanted: str) -> str:
    """Return the leg or act that is meant: by its id, by its number, or the newest of a phase."""
    return among(run_, [name for _, name in ledgers.numbered(ledger, run_)], wanted)


def among(run_: str, known: Sequence[str], wanted: str) -> str:
    """Return the leg or act that is meant, of these."""
    if wanted in known:
        return wanted
    for fits in (
        lambda name: wanted.isdecimal() and int(name.partition("-")[0]) == int(wanted),
        lambda name: name.partition("-")[2] == wanted,
    ):
        found = [name for name in known if fits(name)]
        if found:
            return found[-1]
    legs = f"its legs are: {', '.join(known)}" if known else "it has no legs yet"
    raise RelayError(f"no leg `{wanted}` in run `{run_}`: {legs}", hint=f"relay show {run_}")

"""What each run was made from, and how it stands: what is asked of a plan stands at its top, and no more is read."""

import codecs
from collections.abc import Iterable
from pathlib import Path

import msgspec

from relay.errors import RelayError
from relay.host import files
from relay.record import ledger as ledgers
from relay.record import spec as specs
from relay.record.ledger import Ledger
from relay.rules import night
from relay.rules import plan as rules
from relay.rules.night import Past
from relay.terms import Entry


class _Promise(msgspec.Struct):
    """What of a plan the queue asks for; the rest is passed over, so that many runs are read in little time."""

    spec_sha256: str
    created: str = ""
    source: str | None = None
    queued: str | None = None


def every(ledger: Ledger) -> tuple[Past, ...]:
    """Return what each run was made from, oldest first."""
    return tuple(_promise(ledger, run) for run in ledgers.runs(ledger))


def _promise(ledger: Ledger, run: str) -> Past:
    """Read what a run was made from; where its plan cannot be read, its frozen spec still says which text it was."""
    try:
        data = files.read(ledger.folder(run) / "plan.toml")
        try:  # what is wanted stands before the first table, and the rest takes ten times as long
            found = msgspec.toml.decode(data.partition(b"\n[")[0], type=_Promise)
        except (msgspec.MsgspecError, ValueError):
            found = msgspec.toml.decode(data, type=_Promise)
    except (OSError, RelayError, msgspec.MsgspecError, ValueError):
        try:
            return Past(run=run, sha256=files.sha256(files.read(ledger.folder(run) / "spec.md")))
        except (OSError, RelayError):
            return Past(run=run, sha256="")
    return Past(run=run, sha256=found.spec_sha256, source=found.source, queued=found.queued, created=found.created)


def standing(ledger: Ledger, past: Past) -> Past:
    """Add how the run stands."""
    return msgspec.structs.replace(past, outcome=outcome(ledger, past.run))


def outcome(ledger: Ledger, run: str) -> str:
    """Derive how a run stands; one that cannot be read says so."""
    try:
        return rules.outcome(rules.next_leg(ledgers.read_plan(ledger, run), ledgers.receipts(ledger, run)))
    except (RelayError, OSError):
        return "unreadable"


def by_hand(ledger: Ledger, entry: Entry, spec: Path, pasts: Iterable[Past]) -> str:
    """Return the run that a person made of an entry's spec, as it reads now, after it was queued; or nothing.

    Where it reads otherwise than when it was queued, an older run counts too: nobody asked for that text again. One
    that a person stopped or refused does not count: then the night may try.
    """
    mine = [past for past in pasts if past.source == entry.spec and past.queued != entry.id]
    if not mine:
        return ""
    try:
        now = files.sha256(files.read(spec, specs.LIMIT).removeprefix(codecs.BOM_UTF8))
    except (OSError, ValueError, RelayError):
        return ""  # its turn says so
    older = now != entry.sha256
    same = (past.run for past in mine if past.sha256 == now and (older or past.created > entry.added))
    return next((run for run in same if outcome(ledger, run) not in night.NEVER), "")

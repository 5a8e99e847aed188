"""A receipt and its note, sealed together: the note is made from the receipt, which then names it by hash."""

from collections.abc import Mapping, Sequence

import msgspec

from relay.host import files
from relay.record import evidence, note
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Plan, Receipt, Reply


def with_note(
    ledger: Ledger,
    plan: Plan,
    chain: Sequence[Receipt],
    receipt: Receipt,
    answer: Reply | None,
    beside: Mapping[str, bytes],
) -> Receipt:
    """Write the note of a receipt and seal both; the caller holds the run's lock."""
    text = note.render(plan, (*chain, receipt), answer, evidence.musts(ledger, chain)).encode("utf-8", "replace")
    receipt = msgspec.structs.replace(receipt, note_sha256=files.sha256(text))
    return ledgers.seal(ledger, receipt, {**beside, "note.md": text})

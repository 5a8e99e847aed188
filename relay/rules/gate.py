"""What must hold before a leg may start. No note, no start: anything missing is an error that names the file."""

from collections.abc import Iterator, Sequence

from relay.errors import Exit, RelayError
from relay.terms import Receipt, Struct

SKEW_SECONDS = 24 * 3600
"""How far ahead of the clock a receipt may lie: a clock is stepped back (pitfalls row 121), but not by days."""


class Seen(Struct, frozen=True, kw_only=True):
    """What the ledger and git show of one leg that crosses; a hash or a commit that is missing is None."""

    leg: str
    receipt_path: str
    note_path: str
    reply_path: str
    receipt: Receipt | None
    note_sha256: str | None
    note_run: str | None
    note_leg: str | None
    note_written_at: str | None
    note_problem: str
    reply_sha256: str | None
    head: str | None
    head_at_ref: str | None
    seconds_ahead: float


def check(seen: Sequence[Seen], run: str) -> None:
    """Refuse, with exit 6 and the file's name, unless every leg that is read is whole and matches its receipt."""
    for leg in seen:
        for path, what, wrong in _conditions(leg, run):
            if wrong:
                raise RelayError(
                    f"gate refused: {what}: `{path}`",
                    hint=f"restore the file, or `relay note rebuild {run}/{leg.leg}`;"
                    f" `relay verify {run}` shows every fault",
                    exit_code=Exit.GATE,
                )


def _conditions(leg: Seen, run: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the file at fault, what is wrong with it, and whether it is: the first that is wrong is the one to name."""
    receipt = leg.receipt
    if receipt is None:
        yield leg.receipt_path, f"leg `{leg.leg}` is read by the next one, but has no receipt", True
        return
    note, reply, sealed = leg.note_path, leg.reply_path, leg.receipt_path
    yield note, leg.note_problem or "the note is missing", leg.note_sha256 is None
    yield note, f"the note belongs to run `{leg.note_run}`", leg.note_run not in {None, run}
    yield note, "the note is not the one its receipt names by hash", leg.note_sha256 != receipt.note_sha256
    yield note, leg.note_problem, bool(leg.note_problem)
    told = (leg.note_leg, leg.note_written_at)
    yield note, "the note does not say the leg and the time that its receipt says", told != (leg.leg, receipt.ended)
    yield note, f"the note was written in the future, at {receipt.ended}", leg.seconds_ahead > SKEW_SECONDS
    yield reply, "the reply is not the one its receipt names by hash", leg.reply_sha256 != receipt.reply_sha256
    yield sealed, f"commit `{receipt.head[:12]}` that the receipt names is not in the repository", leg.head is None
    elsewhere = receipt.kind == "work" and leg.head_at_ref not in {None, receipt.head}
    yield sealed, "the leg's ref points at another commit than the receipt's", elsewhere

"""What must hold before a leg may start. No note, no start: anything missing is an error that names the file."""

from collections.abc import Sequence

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
        problem = _problem(leg, run)
        if problem:
            path, what = problem
            raise RelayError(
                f"gate refused: {what}: `{path}`",
                hint=f"restore the file, or `relay note rebuild {run}/{leg.leg}`; `relay verify {run}` shows every fault",
                exit_code=Exit.GATE,
            )


def _problem(leg: Seen, run: str) -> tuple[str, str] | None:  # noqa: PLR0911 - one return a condition
    """Return the file at fault and what is wrong with it."""
    receipt = leg.receipt
    if receipt is None:
        return leg.receipt_path, f"leg `{leg.leg}` is read by the next one, but has no receipt"
    if leg.note_sha256 is None:
        return leg.note_path, leg.note_problem or "the note is missing"
    if leg.note_run is not None and leg.note_run != run:
        return leg.note_path, f"the note belongs to run `{leg.note_run}`"
    if leg.note_sha256 != receipt.note_sha256:
        return leg.note_path, "the note is not the one its receipt names by hash"
    if leg.note_problem:
        return leg.note_path, leg.note_problem
    if leg.note_leg != leg.leg or leg.note_written_at != receipt.ended:
        return leg.note_path, "the note does not say the leg and the time that its receipt says"
    if leg.seconds_ahead > SKEW_SECONDS:
        return leg.note_path, f"the note was written in the future, at {receipt.ended}"
    if leg.reply_sha256 != receipt.reply_sha256:
        return leg.reply_path, "the reply is not the one its receipt names by hash"
    if leg.head is None:
        return leg.receipt_path, f"commit `{receipt.head[:12]}` that the receipt names is not in the repository"
    if receipt.kind == "work" and leg.head_at_ref not in {None, receipt.head}:
        return leg.receipt_path, "the leg's ref points at another commit than the receipt's"
    return None

"""A lost note, made again from what is sealed; it counts only if it is the one that its receipt names by hash."""

from pathlib import Path

from relay.errors import Exit, RelayError
from relay.host import files
from relay.record import evidence, note
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Receipt, Struct


class Rebuilt(Struct, frozen=True, kw_only=True):
    """What was done: whether a note was written, where, and where the one that stood there was put."""

    path: Path
    written: bool
    kept: Path | None = None


def rebuild(ledger: Ledger, run: str, leg: str) -> Rebuilt:
    """Write the note of a sealed leg again, unless it is whole.

    `RelayError` with exit 6 where the chain is broken, or the reply is not what it was: then no note can be believed.
    """
    plan = ledgers.read_plan(ledger, run)
    chain = ledgers.receipts(ledger, run)
    found = [index for index, one in enumerate(chain) if one.leg == leg]
    if not found:
        raise RelayError(
            f"leg `{leg}` has no receipt, so there is no note to make again",
            hint=f"relay resume {run}",
            exit_code=Exit.GATE,
        )
    upto = chain[: found[0] + 1]
    sealed = upto[-1]
    if sealed.note_sha256 is None:
        raise RelayError(f"`{leg}` is an act: it has no note", hint=f"relay show {run}/{leg}")
    path = ledger.leg(run, leg) / "note.md"
    stands = _standing(path)
    if stands is not None and files.sha256(stands) == sealed.note_sha256:
        return Rebuilt(path=path, written=False)
    _check_reply(ledger, sealed)
    text = note.render(plan, upto, evidence.reply_of(ledger, sealed), evidence.musts(ledger, upto))
    data = text.encode("utf-8", "replace")
    if files.sha256(data) != sealed.note_sha256:
        raise RelayError(
            f"the note of `{leg}` cannot be made again: what is sealed makes another one",
            hint=f"relay verify {run}, or restore `{path}` from a backup",
            exit_code=Exit.GATE,
        )
    kept = None
    if stands is not None:
        kept = path.with_name("note.replaced.md")
        files.write(kept, stands)
    files.write(path, data)
    files.sync_folder(path.parent)
    return Rebuilt(path=path, written=True, kept=kept)


def _standing(path: Path) -> bytes | None:
    try:
        return files.read(path)
    except FileNotFoundError:
        return None


def _check_reply(ledger: Ledger, sealed: Receipt) -> None:
    """Refuse where the reply is lost or is another one."""
    if sealed.reply_sha256 is None:
        return
    path = ledger.leg(sealed.run, sealed.leg) / "reply.json"
    stands = _standing(path)
    if stands is None or files.sha256(stands) != sealed.reply_sha256:
        what = "lost" if stands is None else "not the one that its receipt names by hash"
        raise RelayError(
            f"the note of `{sealed.leg}` cannot be made again: the reply is {what}: `{path}`",
            hint=f"restore the file from a backup; relay verify {sealed.run}",
            exit_code=Exit.GATE,
        )

"""What the ledger and git show of a leg whose note crosses: the facts that the gate decides by."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from relay.errors import Exit, RelayError
from relay.host import clock, files, git
from relay.record import note_lint, reply
from relay.record.ledger import Ledger
from relay.rules.gate import Seen
from relay.terms import Receipt, Reply


def look(ledger: Ledger, run: str, leg: str, chain: Sequence[Receipt]) -> Seen:
    """Collect what stands on disk and in git of one leg; nothing is judged here."""
    folder = ledger.leg(run, leg)
    sealed = next((receipt for receipt in chain if receipt.leg == leg), None)
    note, problem = _read(folder / "note.md")
    fields = {}
    if note is not None:
        try:
            fields = note_lint.front(note.decode("utf-8", "replace"))
        except ValueError as error:
            problem = f"the note cannot be read: {error}"
    answer, _ = _read(folder / "reply.json")
    written = fields.get("written_at")
    return Seen(
        leg=leg,
        receipt_path=str(folder / "receipt.json"),
        note_path=str(folder / "note.md"),
        reply_path=str(folder / "reply.json"),
        receipt=sealed,
        note_sha256=files.sha256(note) if note is not None else None,
        note_run=_text(fields.get("run")),
        note_leg=_text(fields.get("leg")),
        note_written_at=clock.stamp(written) if isinstance(written, dt.datetime) and written.tzinfo else None,
        note_problem=problem,
        reply_sha256=files.sha256(answer) if answer is not None else None,
        head=sealed.head if sealed is not None and git.exists(ledger.repo, sealed.head) else None,
        head_at_ref=git.resolve(ledger.repo, f"refs/relay/{run}/{leg}") if sealed is not None else None,
        seconds_ahead=(clock.parse(sealed.ended) - clock.now()).total_seconds() if sealed is not None else 0.0,
    )


def _read(path: Path) -> tuple[bytes | None, str]:
    """Read a file of a leg; what prevents it becomes a sentence."""
    try:
        return files.read(path), ""
    except FileNotFoundError:
        return None, ""
    except RelayError as error:
        return None, error.message


def _text(value: object) -> str | None:
    """Return a text as it is and anything else as nothing."""
    return value if isinstance(value, str) else None


def reply_of(ledger: Ledger, sealed: Receipt) -> Reply | None:
    """Read a sealed leg's reply, if it gave one that counted.

    The nonce is not asked again: the reply is the one the receipt names by hash, and it was checked before sealing.
    `RelayError` (exit 6) when the file is not that one any more.
    """
    if sealed.reply_sha256 is None or sealed.kind == "act" or sealed.ended_by not in {"reply", "handover"}:
        return None
    path = ledger.leg(sealed.run, sealed.leg) / "reply.json"
    raw, problem = _read(path)
    if raw is None or files.sha256(raw) != sealed.reply_sha256:
        what = "the reply is missing" if raw is None else "the reply is not the one its receipt names by hash"
        raise RelayError(
            f"{problem or what}: `{path}`",
            hint=f"restore the file from a backup; `relay verify {sealed.run}` shows every fault",
            exit_code=Exit.GATE,
        )
    return reply.decode(raw, sealed.kind, None)[0]


def why_of(ledger: Ledger, act: Receipt) -> str:
    """Read what a person wrote with an act, if it still is what the receipt names by hash."""
    if act.why_sha256 is None:
        return ""
    raw, _ = _read(ledger.leg(act.run, act.leg) / "why.md")
    return raw.decode("utf-8", "replace") if raw is not None and files.sha256(raw) == act.why_sha256 else ""


def musts(ledger: Ledger, chain: Sequence[Receipt]) -> tuple[str, ...]:
    """Return the reasons of people who rejected: each is a must from then on."""
    return tuple(" ".join(why_of(ledger, act).split()) for act in chain if act.act == "reject")

"""Whether a run is what its receipts say: every fault, not only the first, and each names the file it is in."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files
from relay.record import evidence, note, plan_file, receipt
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import verify_git
from relay.terms import Plan, Receipt, Start, Struct

BESIDE: Final = {
    "note.md": "note_sha256",
    "reply.json": "reply_sha256",
    "prompt.md": "prompt_sha256",
    "document.md": "document_sha256",
    "why.md": "why_sha256",
}
"""Files of a leg and the field of its receipt that names each by hash."""

Say = Callable[[Path, str], None]


class Fault(Struct, frozen=True, kw_only=True):
    """One thing that is not as it was sealed, and the file it is in."""

    path: str
    what: str


class Verified(Struct, frozen=True, kw_only=True):
    """What was found: all faults, what was looked at, and the legs that were begun and not sealed yet."""

    faults: tuple[Fault, ...]
    receipts: int
    notes: int
    unsealed: tuple[str, ...]


def verify(ledger: Ledger, run: str) -> Verified:
    """Check plan, frozen files, chain, notes, replies, prompts, commits, trees and refs of a run."""
    found: list[Fault] = []

    def say(path: Path, what: str) -> None:
        # What cannot be read names itself already.
        found.append(Fault(path=str(path), what=what.removeprefix(f"`{path}` ")))

    plan, digest = _plan(ledger, run, say)
    numbered = ledgers.numbered(ledger, run)
    _numbers(ledger, run, numbered, say)
    chain = _chain(ledger, run, [leg for _, leg in numbered], digest, say)
    sealed = [one for one in chain.values() if one is not None]
    for one in sealed:
        _beside(ledger.leg(run, one.leg), one, say)
    notes = _notes(ledger, run, plan, list(chain.values()), say)
    starts = _starts(ledger, run, [leg for _, leg in numbered], say)
    last = max((number for number, leg in numbered if leg in chain), default=0)
    unsealed = [leg for number, leg in numbered if leg in starts and leg not in chain and number > last]
    for _, leg in numbered:
        if leg in starts and leg not in chain and leg not in unsealed:
            say(ledger.leg(run, leg) / "receipt.json", "the receipt is missing, and later legs have theirs")
    verify_git.check(ledger, run, plan, sealed, starts, [*chain, *unsealed], say)
    return Verified(faults=tuple(found), receipts=len(chain), notes=notes, unsealed=tuple(unsealed))


def _read(path: Path, say: Say, missing: str) -> bytes | None:
    """Read a file; what prevents it is a fault."""
    try:
        return files.read(path)
    except FileNotFoundError:
        say(path, missing)
    except RelayError as error:
        say(path, error.message)
    except OSError as error:
        say(path, f"it cannot be read: {error.strerror}")
    return None


def _plan(ledger: Ledger, run: str, say: Say) -> tuple[Plan | None, str | None]:
    """Check the plan and the files frozen with it; return it, and the hash that the first receipt must carry."""
    path = ledger.folder(run) / "plan.toml"
    data = _read(path, say, "the plan is missing")
    if data is None:
        return None, None
    digest = files.sha256(data)
    try:
        plan = plan_file.decode(data, str(path))
    except RelayError as error:
        say(path, error.message)
        return None, digest
    if plan.run != run:
        say(path, f"the plan belongs to run `{plan.run}`")
    for name, expected in plan.files.items():
        try:
            actual = files.sha256(files.read_below(ledger.folder(run), name))
        except FileNotFoundError:
            say(ledger.folder(run) / name, "the frozen file is missing")
        except (RelayError, OSError) as error:
            say(ledger.folder(run) / name, f"the frozen file cannot be read: {error}")
        else:
            if actual != expected:
                say(ledger.folder(run) / name, "the frozen file is not what it was at the start")
    return plan, digest


def _numbers(ledger: Ledger, run: str, numbered: list[tuple[int, str]], say: Say) -> None:
    """Check that legs and acts are numbered without a gap and that no number was taken twice."""
    numbers = [number for number, _ in numbered]
    for number in range(1, max(numbers, default=0) + 1):
        if number not in numbers:
            say(ledger.legs(run), f"leg or act number {number} is missing")
    for number, leg in numbered:
        if numbers.count(number) > 1:
            say(ledger.leg(run, leg), f"number {number} is taken more than once")


def _chain(ledger: Ledger, run: str, legs: list[str], prev: str | None, say: Say) -> dict[str, Receipt | None]:
    """Check that each receipt can be read, is of this run and leg, and names the one before it by hash.

    Returns every leg that has a receipt, in order, with None for one that cannot be read.
    """
    found: dict[str, Receipt | None] = {}
    for leg in legs:
        path = ledger.leg(run, leg) / "receipt.json"
        if not path.exists() and not path.is_symlink():
            continue
        data = _read(path, say, "the receipt is missing")
        found[leg] = None
        if data is None:
            prev = None
            continue
        try:
            sealed = receipt.decode(data, Receipt, str(path))
        except RelayError as error:
            say(path, error.message)
        else:
            found[leg] = sealed
            if (sealed.run, sealed.leg) != (run, leg):
                say(path, f"the receipt is that of `{sealed.run}/{sealed.leg}`")
            if prev is not None and sealed.prev != prev:
                say(path, "the receipt does not name the one before it by hash: the chain breaks here")
            if not receipt.canonical(data):
                say(path, "the receipt is not written as Relay writes one")
        prev = files.sha256(data)
    return found


def _beside(folder: Path, sealed: Receipt, say: Say) -> None:
    """Check each file that a receipt names by hash."""
    for name, field in BESIDE.items():
        expected = getattr(sealed, field)
        if expected is None:
            continue
        kind = name.partition(".")[0]
        data = _read(folder / name, say, f"the {kind} is missing")
        if data is not None and files.sha256(data) != expected:
            say(folder / name, f"the {kind} is not the one that the receipt names by hash")
    if sealed.kind != "act" and sealed.note_sha256 is None:
        say(folder / "receipt.json", "the receipt names no note")


def _notes(ledger: Ledger, run: str, plan: Plan | None, chain: list[Receipt | None], say: Say) -> int:
    """Make every note again from plan, receipts and reply; it must have the hash that its receipt names.

    A note whose sources are at fault themselves is not made again: that fault is told where it is.
    """
    done = 0
    upto: list[Receipt] = []
    for sealed in chain:
        if sealed is None or plan is None:
            break
        upto.append(sealed)
        path = ledger.leg(run, sealed.leg) / "note.md"
        if sealed.kind == "act" or sealed.note_sha256 is None:
            continue
        done += 1
        try:
            whole = _whole(ledger, upto)
            text = note.render(plan, upto, evidence.reply_of(ledger, sealed), evidence.musts(ledger, upto))
        except (OSError, RelayError):
            continue
        except Exception as error:  # noqa: BLE001 - a receipt that was tampered with may say anything
            say(path, f"no note can be made from what its receipt says: {type(error).__name__}")
            continue
        if whole and files.sha256(text.encode("utf-8", "replace")) != sealed.note_sha256:
            say(path, "the note that its receipt names is not the one that plan, receipts and reply make")
    return done


def _whole(ledger: Ledger, upto: list[Receipt]) -> bool:
    """Tell whether everything that a note is made from beside the receipts is what those name by hash."""
    wanted = [(upto[-1], "reply.json", upto[-1].reply_sha256)]
    wanted += [(act, "why.md", act.why_sha256) for act in upto if act.act == "reject"]
    return all(
        digest is None or files.sha256(files.read(ledger.leg(one.run, one.leg) / name)) == digest
        for one, name, digest in wanted
    )


def _starts(ledger: Ledger, run: str, legs: list[str], say: Say) -> dict[str, Start]:
    """Read every start.json; one that is torn or belongs elsewhere is a fault."""
    found = {}
    for leg in legs:
        path = ledger.leg(run, leg) / "start.json"
        if not path.exists() and not path.is_symlink():
            continue
        data = _read(path, say, "the start is missing")
        if data is None:
            continue
        try:
            start = receipt.decode(data, Start, str(path))
        except RelayError as error:
            say(path, error.message)
            continue
        if (start.run, start.leg) != (run, leg):
            say(path, f"the start is that of `{start.run}/{start.leg}`")
        found[leg] = start
    return found

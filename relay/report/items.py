"""The files of a run and its legs, each by a word: what `relay show RUN/LEG WORD` prints."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.errors import Exit, RelayError
from relay.host import files
from relay.record import ledger as ledgers
from relay.record import receipt
from relay.record.ledger import Ledger
from relay.rules import history
from relay.terms import Receipt, Struct

OF_RUN: Final = {"spec": "spec.md", "plan": "plan.toml"}
OF_LEG: Final = {"note": "note.md", "receipt": "receipt.json", "prompt": "prompt.md", "reply": "reply.json"}
WORDS: Final = (*OF_LEG, "diff", "log", "findings", *OF_RUN)


class Item(Struct, frozen=True, kw_only=True):
    """A file's bytes, where it stands, and a warning where it is not what its receipt names by hash."""

    data: bytes
    path: Path
    warning: str = ""


def read(ledger: Ledger, run: str, leg: str | None, word: str) -> Item:
    """Read the file that a word means: of the leg, else of the newest that has one; `RelayError` if none does."""
    if word in OF_RUN:
        path = ledger.folder(run) / OF_RUN[word]
        with suppress(FileNotFoundError):
            return Item(data=files.read(path), path=path)
        raise RelayError(f"`{path}` is missing", hint=f"relay verify {run}", exit_code=Exit.GATE)
    name = OF_LEG[word]
    known = [one for _, one in ledgers.numbered(ledger, run)]
    for one in [leg] if leg is not None else reversed(known):
        path = ledger.leg(run, one) / name
        with suppress(FileNotFoundError):
            data = files.read(path)
            return Item(data=data, path=path, warning=_warning(ledger, run, one, word, data))
    raise _missing(ledger, run, leg, word)


def sealed(ledger: Ledger, run: str, leg: str) -> Receipt | None:
    """Read one receipt alone, whatever became of the others; None where there is none that can be read."""
    path = ledger.leg(run, leg) / "receipt.json"
    with suppress(OSError, RelayError):
        return receipt.decode(files.read(path), Receipt, str(path))
    return None


def diff(ledger: Ledger, run: str, leg: str | None) -> bytes:
    """Return what a leg changed, or the whole run: from its base to its head; an act shows what it pins."""
    from relay.host import git

    if leg is None:
        plan, chain = ledgers.read_plan(ledger, run), ledgers.receipts(ledger, run)
        return git.diff(ledger.repo, history.base(plan, chain), history.head(plan, chain))
    found = sealed(ledger, run, leg)
    if found is None:
        raise RelayError(f"leg `{leg}` is not sealed, so nothing says what it changed", hint=f"relay show {run}/{leg}")
    if found.pins is not None:
        return git.diff(ledger.repo, found.pins.base, found.pins.head)
    return git.diff(ledger.repo, found.start, found.head)


def _warning(ledger: Ledger, run: str, leg: str, word: str, data: bytes) -> str:
    """Say that a file was changed after it was sealed."""
    found = sealed(ledger, run, leg)
    named = getattr(found, f"{word}_sha256", None)
    if named is None or named == files.sha256(data):
        return ""
    return f"this {word} is not the one that its receipt names by hash: relay verify {run}"


def _missing(ledger: Ledger, run: str, leg: str | None, word: str) -> RelayError:
    """Say that there is no such file: lost, or never made."""
    if leg is None:
        return RelayError(f"no leg of run `{run}` has a {word} yet", hint=f"relay show {run}")
    path = ledger.leg(run, leg) / OF_LEG[word]
    found = sealed(ledger, run, leg)
    if getattr(found, f"{word}_sha256", None) is not None:
        hint = f"relay note rebuild {run}/{leg}" if word == "note" else f"restore it; relay verify {run}"
        return RelayError(f"the {word} of `{leg}` is lost: `{path}`", hint=hint, exit_code=Exit.GATE)
    return RelayError(f"leg `{leg}` has no {word}", hint=f"relay show {run}/{leg}")

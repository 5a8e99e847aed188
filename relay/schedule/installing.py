"""Installing a schedule and taking it away: what the record says comes first and goes last, so a kill leaves no orphan.

A file that a person edited, or that somebody else wrote, is never lost: the one is kept beside, the other refused.
"""

import itertools
import shlex
from pathlib import Path
from typing import Final

from relay.errors import Exit, RelayError
from relay.host import clock, files
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.schedule import installed, methods
from relay.schedule.installed import Installed
from relay.schedule.job import MARK, Job
from relay.terms import Struct

BESIDE: Final = ".edited"
"""What the name of a person's own version ends in; no scheduler reads such a file."""


class Done(Struct, frozen=True, kw_only=True):
    """What was done: the files written or removed, those of a person's kept beside, and the commands left to type."""

    paths: tuple[str, ...]
    kept: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()


def install(ledger: Ledger, name: methods.Name, job: Job) -> Done:
    """Write what the machine reads, remember it, and have it obeyed; what was another way, or elsewhere, goes first."""
    method = methods.METHODS[name]
    texts, _ = method.texts(job), method.entry(job)
    for path in texts:
        _mine(path)
    ledgers.prepare(ledger)
    for path in texts:
        _folder(path.parent)
    before = installed.read(ledger)
    kept: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    if before is not None and (before.method, set(before.files)) != (name, {str(path) for path in texts}):
        gone = remove(ledger, before)
        kept, todo, before = gone.kept, gone.todo, None
    kept += _entry(before)
    known = {} if before is None else before.files
    kept += tuple(_keep(path) for path, data in texts.items() if _edited(path, known.get(str(path)), data))
    hashes = {str(path): files.sha256(data) for path, data in texts.items()}
    record = Installed(method=name, job=job, installed=clock.stamp(), files=hashes)
    installed.write(ledger, record)
    for path, data in texts.items():
        files.write(path, data, 0o644)
    return Done(paths=tuple(map(str, texts)), kept=kept, todo=(*todo, *method.enable(job)))


def remove(ledger: Ledger, found: Installed) -> Done:
    """Take away exactly what was installed."""
    method = methods.METHODS[found.method]
    gone, kept = [], list(_entry(found))
    todo = method.disable(found.job)
    for path, state in installed.states(found):
        if state == "edited":
            kept.append(_keep(Path(path)))
        elif state == "whole":
            Path(path).unlink(missing_ok=True)
        if state != "gone":
            gone.append(path)
    method.forget(found.job)
    installed.forget(ledger)
    return Done(paths=tuple(gone), kept=tuple(kept), todo=tuple(todo))


def _folder(path: Path) -> None:
    """Make a folder of the person's, with those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        hint = f"see who owns it: ls -ld {shlex.quote(str(path.parent))}"
        raise RelayError(f"the folder `{path}` cannot be made: {said}", hint=hint, exit_code=Exit.HUMAN) from None


def _entry(found: Installed | None) -> tuple[str, ...]:
    """Keep a person's own version of the lines in a table, beside the file that these call; return where it is."""
    if found is None:
        return ()
    method = methods.METHODS[found.method]
    stands = method.stands(found.job)
    if stands in {"", method.entry(found.job)}:
        return ()
    path = Path(next(iter(found.files))).with_suffix(f".{found.method}{BESIDE}")
    _folder(path.parent)
    files.write(path := _free(path), stands.encode("utf-8", "surrogateescape"), 0o644)
    return (str(path),)


def _mine(path: Path) -> None:
    """Refuse to write over a file that does not say it is Relay's."""
    try:
        data = files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if MARK.encode() not in data:
        hint = f"look at it, then move it away: cat {shlex.quote(str(path))}"
        raise RelayError(f"`{path}` is there, and Relay did not write it", hint=hint, exit_code=Exit.HUMAN)


def _edited(path: Path, known: str | None, wanted: bytes) -> bool:
    """Tell whether a file would be lost: it is neither what Relay wrote, as far as it remembers, nor what it will."""
    try:
        data = files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return data != wanted and files.sha256(data) != known


def _keep(path: Path) -> str:
    """Move a file beside itself, where no scheduler reads it, and return where it is."""
    beside = _free(path.with_name(f"{path.name}{BESIDE}"))
    path.replace(beside)
    return str(beside)


def _free(path: Path) -> Path:
    """Return that path, with a number behind it where something is there already."""
    names = (f"{path.name}{f'-{count}' if count > 1 else ''}" for count in itertools.count(1))
    return next(free for name in names if not (free := path.with_name(name)).exists())

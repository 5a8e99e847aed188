"""The nights: the record of each, the lock of the one in progress, and the truth about those that were killed.

A record is rewritten as a whole whenever something happened, so that it is true whenever its night is killed.
"""

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from relay import __version__
from relay.errors import Exit, RelayError
from relay.host import clock, files, lock, proc
from relay.host.lock import Holder
from relay.record import ledger as ledgers
from relay.record import strict
from relay.record.ledger import Ledger
from relay.terms import SCHEMA, Night
from relay.terms.nights import NightEnd, Nightly

LOCK: Final = "lock"
KILLED: Final = "killed"
"""What stands as the reason of a night that nobody could end."""

STOP: Final = signal.SIGUSR1
"""What tells a night to end the run that it works on, and to go on with the next; `ASKED` says which run is meant."""
ASKED: Final = ".stop"


def every(ledger: Ledger) -> tuple[Night, ...]:
    """Return all nights, oldest first; a record that cannot be read is passed over, and `unreadable` tells of it."""
    found = (night for path in _paths(ledger) if isinstance(night := _read(path), Night))
    return tuple(sorted(found, key=lambda night: (night.started, night.id)))


def unreadable(ledger: Ledger) -> dict[Path, str]:
    """Say of each record that cannot be read what is wrong with it, by name, which is the minute of its night."""
    read_now = ((path, _read(path)) for path in _paths(ledger))
    return {path: found for path, found in read_now if isinstance(found, str)}


def _paths(ledger: Ledger) -> list[Path]:
    return sorted(path for path in ledger.nights.glob("[!.]*.json") if path.name != f"{LOCK}.json")


def real(night: Night) -> bool:
    """Tell whether a night was one: not only held off by another process, and not too late to begin."""
    return night.ended_by not in {"held", "missed"} or bool(night.items)


def newest(ledger: Ledger) -> Night | None:
    """Return the night that began last and really was one."""
    return next((night for night in reversed(every(ledger)) if real(night)), None)


def damaged(ledger: Ledger, since: str = "") -> str:
    """Say that the record of a night cannot be read which began at `since` or later, its id; `""` where none is."""
    for path, wrong in reversed(unreadable(ledger).items()):
        if path.stem >= since:
            return f"the record of a night cannot be read: {wrong}"
    return ""


def before(ledger: Ledger, night: Night) -> Night | None:
    """Return the night before one, which came to its end, so that a person was told of it."""
    found = [one for one in every(ledger) if one.id != night.id and one.started <= night.started]
    ended = [one for one in found if real(one) and one.ended and one.told and KILLED not in one.reason.split("; ")]
    return ended[-1] if ended else None


def untold(ledger: Ledger) -> tuple[Night, ...]:
    """Return the nights that are over and of which nobody was told, oldest first."""
    return tuple(night for night in every(ledger) if night.ended is not None and not night.told)


def tell(ledger: Ledger, night: Night) -> None:
    """Write down that a person was told of a night."""
    write(ledger, msgspec.structs.replace(night, told=True))


def named(ledger: Ledger, wanted: str) -> Night:
    """Return a night by its id, or by a part of it that fits only one; `RelayError` otherwise."""
    for path, wrong in unreadable(ledger).items():
        if wanted == path.stem:
            what = f"the record of a night cannot be read: {wrong}"
            raise RelayError(what, hint=seen(ledger, wanted), exit_code=Exit.GATE)
    fitting = [night for night in every(ledger) if wanted and wanted in night.id]
    exact = [night for night in fitting if night.id == wanted] or fitting
    if len(exact) == 1:
        return exact[0]
    what = f"`{wanted}` fits {len(exact)} nights" if exact else f"no night `{wanted}` here"
    raise RelayError(what, hint="relay report --night")


def going(ledger: Ledger) -> Holder | None:
    """Return who is in a night now; takes no lock."""
    return lock.holder(ledger.nights / LOCK)


def stop(ledger: Ledger, run: str) -> bool:
    """Ask the night that works on a run to end it, and to go on with the next; tell whether a night works on it."""
    night, holder = going(ledger), lock.holder(ledger.lock)
    if night is None or holder is None or holder.run != run or holder.process != night.process:
        return False
    files.write(ledger.nights / ASKED, run.encode())
    os.kill(night.process.pid, STOP)
    return True


def stopped(ledger: Ledger) -> str:
    """Return the run that a night was asked to end last."""
    try:
        return files.read(ledger.nights / ASKED).decode("utf-8", "replace")
    except (OSError, RelayError):
        return ""


def page(ledger: Ledger, night: str) -> Path:
    """Return where a night's page lies."""
    return ledger.nights / f"{night}.html"


def seen(ledger: Ledger, night: str) -> str:
    """Say what to type where the record of a night cannot be read: its page may lie there still."""
    path = page(ledger, night)
    return f"its page is there still: open {shlex.quote(str(path))}" if path.is_file() else "relay status"


@contextmanager
def hold(ledger: Ledger) -> Iterator[None]:
    """Be the one night of this repository inside a `with` block; `RelayError` (exit 75) where another one is."""
    _folder(ledger)
    with lock.hold(ledger.nights / LOCK, "relay nightly"):
        yield


def begin(ledger: Ledger, purse: Nightly, *, scheduled: bool, reason: str = "") -> Night:
    """Write the record of a night that begins; its id is the minute, with `-2` and so on where that is taken."""
    now = clock.now()
    night = Night(
        id=f"{now:%y%m%d-%H%M}",
        started=clock.stamp(now),
        reason=reason,
        scheduled=scheduled,
        told=False,
        purse=purse,
        relay=proc.this(),
        relay_version=__version__,
    )
    return _first(ledger, night)


def none(ledger: Ledger, purse: Nightly, *, scheduled: bool, ended_by: NightEnd, reason: str) -> Night:
    """Write the record of a night that was none: another one held it off, or it came too late."""
    now = clock.now()
    night = Night(
        id=f"{now:%y%m%d-%H%M}",
        started=clock.stamp(now),
        ended=clock.stamp(now),
        ended_by=ended_by,
        reason=reason,
        scheduled=scheduled,
        purse=purse,
        relay_version=__version__,
    )
    return _first(ledger, night)


def write(ledger: Ledger, night: Night) -> None:
    """Rewrite the record of a night, whole or not at all."""
    files.write(ledger.nights / f"{night.id}.json", _bytes(night))


def settle(ledger: Ledger) -> tuple[Night, ...]:
    """Write into the records of nights that were killed that they were; the caller holds the lock of the nights.

    They ended when their record was last written, as far as anybody can know. Returns them, oldest first.
    """
    killed = []
    for night in every(ledger):
        if night.ended is not None:
            continue
        last = (ledger.nights / f"{night.id}.json").stat().st_mtime
        ended = clock.stamp(max(clock.parse(night.started), datetime.fromtimestamp(last, UTC)))
        reason = _joined(night.reason, KILLED)
        over = msgspec.structs.replace(night, ended=ended, ended_by="signal", reason=reason, told=False)
        write(ledger, over)
        killed.append(over)
    return tuple(killed)


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def _folder(ledger: Ledger) -> None:
    ledgers.prepare(ledger)
    try:
        ledger.nights.mkdir(0o700, exist_ok=True)
    except OSError as error:
        hint = f"see what stands there: ls -ld {ledger.nights}"
        raise RelayError(f"`{ledger.nights}` cannot be made: {error.strerror}", hint=hint) from None


def _first(ledger: Ledger, night: Night) -> Night:
    """Write a new record under an id that no other has, whoever writes one in the same moment."""
    _folder(ledger)
    draft = ledger.nights / f".{night.id}.{os.getpid()}.new.tmp"
    wanted, count = night.id, 1
    while True:
        files.write(draft, _bytes(night))
        try:
            os.link(draft, ledger.nights / f"{night.id}.json")
        except FileExistsError:
            count += 1
            night = msgspec.structs.replace(night, id=f"{wanted}-{count}")
        else:
            files.sync_folder(ledger.nights)
            return night
        finally:
            draft.unlink(missing_ok=True)


def _bytes(night: Night) -> bytes:
    return (
        msgspec.json.format(msgspec.json.encode(_plain(msgspec.to_builtins(night)), order="sorted"), indent=1) + b"\n"
    )


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Write names of any bytes, which reasons and specs may hold, so that they can stand in JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _read(path: Path) -> Night | str:
    """Return a record, or what is wrong with it."""
    try:
        night = strict.convert(strict.load_json(files.read(path)), Night)
        clock.parse(night.started)
    except FileNotFoundError:
        return f"`{path}` is gone"
    except (OSError, ValueError, RelayError, strict.Wrong) as wrong:
        return f"`{path}`: {wrong}"
    if night.schema != SCHEMA:
        return f"`{path}` has schema `{night.schema}`, not {SCHEMA}"
    return night if night.id == path.stem else f"`{path}` says that it is `{night.id}`"

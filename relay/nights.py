"""The nights: the record of each, the lock of the one in progress, and the truth about those that were killed.

A record is rewritten as a whole whenever something happened, so that it is true whenever its night is killed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from relay import __version__
from relay.errors import RelayError
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


def every(ledger: Ledger) -> tuple[Night, ...]:
    """Return all nights, oldest first; a record that cannot be read is passed over."""
    paths = (path for path in ledger.nights.glob("[!.]*.json") if path.name != f"{LOCK}.json")
    found = (night for path in paths if (night := _read(path)) is not None)
    return tuple(sorted(found, key=lambda night: (night.started, night.id)))


def newest(ledger: Ledger) -> Night | None:
    """Return the night that began last and really was one: not one that was only held off, or came too late."""
    real = [night for night in every(ledger) if night.ended_by not in {"held", "missed"}]
    return real[-1] if real else None


def before(ledger: Ledger, night: Night) -> Night | None:
    """Return the night before one, which came to its end, so that a person was told of it."""
    found = [one for one in every(ledger) if one.id != night.id and one.started <= night.started]
    told = [
        one for one in found if one.ended_by not in {"held", "missed", None} and KILLED not in one.reason.split("; ")
    ]
    return told[-1] if told else None


def named(ledger: Ledger, wanted: str) -> Night:
    """Return a night by its id, or by a part of it that fits only one; `RelayError` otherwise."""
    fitting = [night for night in every(ledger) if wanted and wanted in night.id]
    exact = [night for night in fitting if night.id == wanted] or fitting
    if len(exact) == 1:
        return exact[0]
    what = f"`{wanted}` fits {len(exact)} nights" if exact else f"no night `{wanted}` here"
    raise RelayError(what, hint="relay report --night")


def going(ledger: Ledger) -> Holder | None:
    """Return who is in a night now; takes no lock."""
    return lock.holder(ledger.nights / LOCK)


def page(ledger: Ledger, night: str) -> Path:
    """Return where a night's page lies."""
    return ledger.nights / f"{night}.html"


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
        over = msgspec.structs.replace(night, ended=ended, ended_by="signal", reason=_joined(night.reason, KILLED))
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


def _read(path: Path) -> Night | None:
    try:
        night = strict.convert(strict.load_json(files.read(path)), Night)
    except (OSError, RelayError, strict.Wrong):
        return None
    try:
        clock.parse(night.started)
    except ValueError:
        return None
    return night if night.schema == SCHEMA and night.id == path.stem else None

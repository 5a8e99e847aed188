"""Alerts: what a person is told of once. Each is a file in the ledger, which goes when its cause is gone."""

from contextlib import suppress
from pathlib import Path

import msgspec

from relay.errors import RelayError
from relay.host import clock, files
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Alert


def new(key: str, kind: str, what: str, command: str, run: str | None = None) -> Alert:
    """Make an alert as of now; `key` says what it is about, and of one key a person is told once."""
    return Alert(key=line(key), kind=kind, what=line(what), command=_typed(command), since=clock.stamp(), run=run)


def line(text: str) -> str:
    """Write text of any bytes so that it can stand in JSON and on one line: a file's name could say the next itself."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _typed(command: str) -> str:
    """Write a command on one line that means the same to a shell: what `shlex.quote` quoted leaves its quotes."""
    return "".join(letter if letter.isprintable() else f"'$'{_bytes(letter)}''" for letter in command)


def _bytes(letter: str) -> str:
    raw = letter.encode("utf-8", "surrogateescape" if "\udc80" <= letter <= "\udcff" else "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in raw)


def all(ledger: Ledger) -> tuple[Alert, ...]:  # noqa: A001 - always called as `alerts.all`
    """Return what was raised and is not settled, oldest first; a file that cannot be read says nothing."""
    found = []
    for path in ledger.alerts.glob("*.json"):
        alert = _read(path)
        if alert is not None and path == _path(ledger, alert.key):
            found.append(alert)
    return tuple(sorted(found, key=lambda alert: (alert.since, alert.kind, alert.key)))


def _read(path: Path) -> Alert | None:
    with suppress(OSError, RelayError, msgspec.MsgspecError, UnicodeDecodeError):
        read = msgspec.json.decode(files.read(path), type=Alert)
        return msgspec.structs.replace(read, what=line(read.what), command=_typed(read.command))
    return None


def tell(ledger: Ledger, alert: Alert) -> bool:
    """Write an alert down, unless one with its key stands already; tell whether it is new."""
    path = _path(ledger, alert.key)
    if _read(path) is not None:  # one that is torn told nobody
        return False
    ledgers.prepare(ledger)
    ledger.alerts.mkdir(0o700, exist_ok=True)
    files.write(path, msgspec.json.format(msgspec.json.encode(alert, order="sorted"), indent=1) + b"\n")
    files.sync_folder(ledger.alerts)
    return True


def clear(ledger: Ledger, key: str) -> None:
    """Forget an alert whose cause is gone."""
    _path(ledger, key).unlink(missing_ok=True)


def _path(ledger: Ledger, key: str) -> Path:
    return ledger.alerts / f"{files.sha256(key.encode('utf-8', 'surrogateescape'))[:16]}.json"

"""What an agent said: the pieces of its transcript, put together again into whole lines."""

import codecs
import json
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files, pids
from relay.record import ledger as ledgers
from relay.record import receipt
from relay.record.ledger import Ledger
from relay.terms import Start

STEP: Final = 1 << 20
"""Bytes of a transcript that are read at once."""

LONGEST: Final = 64 << 10
"""Characters after which a line without an end is shown all the same."""


class Said:
    """Reads a transcript from its beginning, and goes on where it stopped; a torn last line waits for its rest."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._torn = ""
        self._line = ""

    def more(self, *, last: bool = False) -> list[str]:
        """Return the whole lines that came since; with `last` also what stands after the last line's end."""
        while data := self._next():
            *whole, self._torn = (self._torn + self._decoder.decode(data)).split("\n")
            self._line += "".join(map(_spoken, whole))
        *lines, self._line = self._line.split("\n")
        if self._line and (last or len(self._line) > LONGEST):
            lines.append(self._line)
            self._line = ""
        return lines

    def _next(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read(STEP)
        except OSError:
            return b""
        self._at += len(data)
        return data


def _spoken(line: str) -> str:
    """Return the text of one line of a transcript; a gap and a line that cannot be read are named."""
    try:
        said = json.loads(line)
        if said["type"] == "gap":
            return f"\n[{int(said['dropped'])} bytes left out]\n"
        return str(said["text"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return "\n[a line of the transcript cannot be read]\n"


def newest(ledger: Ledger, run: str) -> str:
    """Return the newest leg that an agent took or takes; `RelayError` where none has begun."""
    for _, leg in reversed(ledgers.numbered(ledger, run)):
        if (ledger.leg(run, leg) / "transcript.jsonl").exists() or is_open(ledger, run, leg):
            return leg
    raise RelayError(f"no agent has said anything in run `{run}` yet", hint=f"relay show {run}")


def is_open(ledger: Ledger, run: str, leg: str) -> bool:
    """Tell whether a leg was begun, is not sealed, and its runner is alive: more may come."""
    folder = ledger.leg(run, leg)
    if (folder / "receipt.json").exists():
        return False
    try:
        start = receipt.decode(files.read(folder / "start.json"), Start, str(folder / "start.json"))
    except (OSError, RelayError):
        return False
    return pids.alive(start.relay)

"""What an agent said: the pieces of its transcript, put together again into whole lines."""

import codecs
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from relay import live
from relay.errors import RelayError
from relay.host import files, pids
from relay.record import ledger as ledgers
from relay.record import receipt
from relay.record.ledger import Ledger
from relay.terms import Start

STEP: Final = 1 << 20
"""Bytes of a transcript that are read at once."""

SHOWN: Final = 12
"""Lines of the result of a call that are shown."""

LONGEST: Final = 64 << 10
"""Characters after which a line without an end is shown all the same."""


class Said:
    """Reads a transcript from its beginning, and goes on where it stopped; a torn last line waits for its rest.

    What programs wrote is shown as it stands, and what a backend told of an agent's turns in Relay's words; with `raw`
    only the programs' own lines, those of an agent's program among them.
    """

    def __init__(self, path: Path, *, raw: bool = False) -> None:
        self._path, self._raw = path, raw
        self._at = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._torn = ""
        self._line = ""

    def more(self, *, last: bool = False) -> list[str]:
        """Return the whole lines that came since; with `last` also what stands after the last line's end."""
        while data := self._next():
            *whole, self._torn = (self._torn + self._decoder.decode(data)).split("\n")
            for line in whole:
                self._add(_spoken(line, raw=self._raw))
        *lines, self._line = self._line.split("\n")
        if self._line and (last or len(self._line) > LONGEST):
            lines.append(self._line)
            self._line = ""
        return lines

    def _add(self, spoken: str) -> None:
        """Add what a line of the transcript says; what is told begins on a line of its own."""
        if spoken.startswith("\n"):
            spoken = spoken[1:] if not self._line or self._line.endswith("\n") else spoken
        self._line += spoken

    def _next(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read(STEP)
        except OSError:
            return b""
        self._at += len(data)
        return data


def _spoken(line: str, *, raw: bool) -> str:
    """Return the text of one line of a transcript; a gap and a line that cannot be read are named."""
    try:
        said = json.loads(line)
        kind = said["type"]
        if kind == "gap":
            return f"\n[{int(said['dropped'])} bytes left out]\n"
        if kind == "output":
            return str(said["text"])
        if raw or kind == "line":
            return f"\n{said['text']}\n" if raw and kind == "line" else ""
        return _told(kind, said)
    except (ValueError, TypeError, KeyError, RecursionError):
        return "\n[a line of the transcript cannot be read]\n"


def _told(kind: str, said: Mapping[str, object]) -> str:
    """Say what happened in a turn as a person reads it; the result of a call is shortened, its lines are indented."""
    text = str(said.get("text", "")).strip("\n")
    match kind:
        case "text":
            return f"\n{text}\n"
        case "thought":
            return f"\n(thinks) {text}\n"
        case "call":
            return f"\n$ {said['tool']} {live.about(text)}\n"
        case "result":
            lines = text.splitlines()
            more = [f"... {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
            failed = "" if said.get("ok", True) else "(failed) "
            return "\n" + "".join(
                f"    {failed if not at else ''}{line}\n" for at, line in enumerate([*lines[:SHOWN], *more])
            )
        case "wait":
            return f"\n(waits) {text}\n"
        case _:
            return ""


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

"""Measures how fast secrets are taken out: `python bench/redact.py`; figures are megabytes a second, best of five."""

import json
import random
import string
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from relay.host import redact

_MEGA = 1_000_000
_PIECE = 64 << 10


def main() -> None:
    """Print a line for each kind of text."""
    drawn = random.Random(1)  # noqa: S311  the same every time
    secrets = {f"KEY_{number}": "".join(drawn.choices(string.ascii_letters + "+/=", k=48)) for number in range(5)}
    sources = "".join(path.read_text() for path in sorted(Path(redact.__file__).parent.glob("*.py")))
    code = (sources * 30)[: 3 * _MEGA]
    lines = [json.dumps({"type": "text", "text": part}) for part in code.splitlines()]
    transcript = "\n".join(lines)[: 3 * _MEGA]
    full = transcript.replace("    ", f" {secrets['KEY_3']} ", 300)
    noise = drawn.randbytes(3 * _MEGA)
    for name, text in (("code", code), ("transcript", transcript), ("300 secrets", full)):
        _tell(name, text.encode(), secrets)
    _tell("random bytes", noise, secrets)
    _tell("code, no secret known", code.encode(), {})


def _tell(name: str, data: bytes, secrets: dict[str, str]) -> None:
    redactor = redact.Redactor(secrets)

    def stream() -> None:
        pieces = redact.Stream(redactor)
        for at in range(0, len(data), _PIECE):
            pieces.feed(data[at : at + _PIECE])
        pieces.end()

    whole, cut = _speed(lambda: redactor.bytes(data), len(data)), _speed(stream, len(data))
    sys.stdout.write(f"{name:24} whole {whole:7.1f} MB/s   in pieces {cut:7.1f} MB/s\n")


def _speed(act: Callable[[], object], size: int) -> float:
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        act()
        best = min(best, time.perf_counter() - began)
    return size / best / _MEGA


main()

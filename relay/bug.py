"""The report of a bug: what happened, ready to paste, without any secret of the environment."""

import platform
import shlex
import tempfile
import traceback
from pathlib import Path

from relay import __version__
from relay.host import clock, files, redact


def report(error: BaseException, argv: list[str]) -> Path:
    """Write a report file and return its path; where the state folder cannot be written, a temporary one."""
    text = "\n".join(
        [
            f"relay {__version__} on Python {platform.python_version()}, {platform.platform()}",
            f"at {clock.stamp()}",
            f"command: relay {shlex.join(map(redact.own().text, argv))}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    name = f"bug-{clock.now():%y%m%d-%H%M%S}.txt"
    try:
        folder = files.state_home() / "relay" / "bugs"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except Exception:  # noqa: BLE001 - a report must not fail while it reports
        folder = Path(tempfile.mkdtemp(prefix="relay-bug-"))
    path = folder / name
    path.touch(0o600)
    path.write_text(redact.own().text(text), encoding="utf-8", errors="replace")
    return path

"""The schedulers' own programs, asked for a moment: systemctl, loginctl, crontab, launchctl."""

import os
import shutil
from pathlib import Path

from relay.errors import Exit, RelayError
from relay.host import proc
from relay.host.proc import Ended
from relay.terms import Limits


def run(*words: str, stdin: bytes = b"") -> Ended:
    """Run one to its end, in English; not there is exit code 127."""
    env = {**os.environ, "LC_ALL": "C"}
    runtime = Path(f"/run/user/{os.getuid()}")
    if not env.get("XDG_RUNTIME_DIR") and runtime.is_dir():
        env["XDG_RUNTIME_DIR"] = str(runtime)  # without it, from cron or ssh, systemctl finds no bus
    return proc.run(words, cwd="/", env=env, stdin=stdin, limits=Limits(seconds=60))


def there(name: str) -> bool:
    """Tell whether a program is on PATH."""
    return shutil.which(name) is not None


def refused(what: str, ended: Ended) -> RelayError:
    """Make the error for a program that refused, with the last thing it said."""
    said = (ended.text.strip().splitlines() or [f"exit {ended.code}"])[-1]
    return RelayError(f"{what}: {said[:300]}", hint="relay schedule show", exit_code=Exit.HUMAN)

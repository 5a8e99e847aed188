"""Machines to be scheduled on: programs that only note how they were called, and the real ones in a namespace.

Where the real program can run it does: a person's systemd and cron's daemon, each in a mount namespace of its own, with
nothing of this machine's tables in sight.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.world import CHECKOUT, SAFETY

SYSTEMD: Final = next(
    (path for path in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if Path(path).exists()), ""
)
ODD: Final = "odd %h %% $HOME ${HOME} `x` \"q\" 'a' é;#"
"""A folder's name with a letter for every way in which a format can go wrong, but for the backslash."""


CRONTAB: Final = """
table={folder}/table
case $1 in
  -l) [ -f $table ] || {{ echo "no crontab for ada" >&2; exit 1; }}; cat $table ;;
  -r) rm $table ;;
  -) new=$(cat; echo .); printf %s "${{new%.}}" >$table ;;
esac
"""
"""A crontab that keeps its table in a file."""


def programs(folder: Path, *real: str, **noted: str) -> Path:
    """Make a folder for PATH with links to real programs, and ones that note their words and then run lines of shell.

    What a program is called with stands in `NAME.log`, one call a line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in real:
        found = shutil.which(name)
        assert found, f"{name} is not here"
        (folder / name).symlink_to(found)
    for name, text in noted.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\necho "$*" >>{folder}/{name}.log\n{text}\n', encoding="utf-8")
        path.chmod(0o755)
    return folder


def calls(folder: Path, name: str) -> list[str]:
    """Return how a program that notes was called."""
    log = folder / f"{name}.log"
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


@cache
def namespaces() -> str:
    """Say why no mount namespace can be made here, `""` where one can."""
    if os.geteuid() != 0:
        return "only root may mount a table of its own"
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "mount", "-t", "tmpfs", "t", "/run"],
        capture_output=True,
        check=False,
        timeout=SAFETY,
    )
    return done.stderr.decode(errors="replace").strip()


def alone(script: str, folder: Path) -> str:
    """Run lines of shell in a mount namespace of its own, in `folder`, and return what they printed.

    `$RELAY` stands for the command line there. Whatever the lines leave running ends with them.
    """
    if why := namespaces():
        pytest.skip(f"no mount namespace: {why}")
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "RELAY": f"{sys.executable} -P -m relay"}
    done = subprocess.run(
        [*"unshare -m -p -f --mount-proc --kill-child --propagation private sh -euc".split(), script],  # noqa: SIM905 - as one types it
        cwd=folder,
        env=env,
        capture_output=True,
        check=False,
        timeout=SAFETY,
    )
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{said}\n{done.stderr.decode(errors='replace')}"
    return said


def needs(name: str) -> str:
    """Return a program's path; the test is skipped aloud where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"`{name}` is not installed")
    return found


def crontab(folder: Path) -> Path:
    """Put a crontab into a folder, and return the file that is its table."""
    programs(folder, crontab=CRONTAB.format(folder=folder))
    return folder / "table"


def bare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leave nothing on PATH but git and a shell, in this folder; tests add what their machine has."""
    monkeypatch.setenv("PATH", str(programs(folder, "git", "sh", "cat", "rm")))
    return folder

"""What is started every night: one command line in one environment, whichever scheduler starts it."""

import os
import shutil
from pathlib import Path
from typing import Final, Literal

from relay.host import files
from relay.terms import Struct

MARK: Final = "Written by `relay schedule install`"
"""What every file says that Relay wrote for a scheduler; one that does not is somebody else's."""

Missed = Literal["once", "skip"]


class Job(Struct, frozen=True, kw_only=True):
    """What one repository has started; `key` is of its path, so that two with one name differ.

    `env_file` holds what a person adds to `env`, such as keys; `log` is for schedulers that keep none. `zone` None is
    the machine's. `packages` are what a fresh machine installs.
    """

    name: str
    key: str
    project: str
    folder: str
    bare: bool
    command: tuple[str, ...]
    env: dict[str, str]
    env_file: str
    log: str
    at: str
    zone: str | None
    missed: Missed
    hours: float
    packages: tuple[str, ...] = ()


def key(common: Path) -> str:
    """Return what tells the repository with that git folder from every other one of this machine."""
    return files.sha256(os.fsencode(common))[:8]


def program(name: str, job: Job) -> str | None:
    """Return where the job finds a program."""
    return shutil.which(name, path=job.env["PATH"])


def label(job: Job) -> str:
    """Name the job in a sentence."""
    return f"Relay's nights in {job.project}"


def orphaned(job: Job, undo: str) -> str:
    """Say in one line that there is no repository any more, and what to type: no command of Relay's works there."""
    said = f"no night was started: there is no `{job.folder}` any more; where it was moved, type there: "
    return f"{said}relay schedule install; else take its schedule away: {undo}"

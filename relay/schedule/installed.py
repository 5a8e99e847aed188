"""What is installed, as the ledger remembers it, and whether the last night came when it was due."""

import shlex
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

import msgspec

from relay.errors import Exit, RelayError
from relay.host import clock, files, repository
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.schedule import job as jobs
from relay.schedule.job import Job
from relay.terms import SCHEMA, Struct

GRACE: Final = timedelta(minutes=15)
"""How long after its time a night may begin: systemd draws up to ten minutes, and a machine may be busy."""

State = Literal["whole", "edited", "gone"]


class Installed(Struct, frozen=True, kw_only=True):
    """What is installed: the job, how, since when (a stamp), and the hash of each file by its path."""

    schema: int = SCHEMA
    method: Literal["systemd", "cron", "launchd", "actions"]
    job: Job
    installed: str
    files: dict[str, str]


def _path(ledger: Ledger) -> Path:
    return ledger.root / "schedule.json"


def read(ledger: Ledger) -> Installed | None:
    """Return what is installed, None where nothing is; a record that cannot be read is a `RelayError`.

    A copied repository has none: what came along with the ledger starts the nights of the other one.
    """
    path = _path(ledger)
    try:
        data = files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = msgspec.json.decode(data, type=Installed)
    except msgspec.MsgspecError as error:
        said = str(error)[:1].lower() + str(error)[1:]
        hint = f"write it anew: rm {shlex.quote(str(path))} && relay schedule install"
        raise RelayError(f"`{path}` cannot be read: {said}", hint=hint, exit_code=Exit.GATE) from None
    if found.schema != SCHEMA:
        text = f"`{path}` has schema `{found.schema}`, and this version reads {SCHEMA}"
        raise RelayError(text, hint="use the version of Relay that wrote it", exit_code=Exit.GATE)
    return None if _of_another(ledger, found.job) else _moved(ledger, found)


def _of_another(ledger: Ledger, job: Job) -> bool:
    """Tell whether the repository that a job is for stands elsewhere, with a schedule of its own: it was no move."""
    if jobs.key(ledger.repo.common) == job.key:
        return False
    try:
        there = repository.discover(Path(job.folder))
    except RelayError:
        return False
    return there.common != ledger.repo.common and _path(ledgers.at(there)).exists()


def _moved(ledger: Ledger, found: Installed) -> Installed:
    """Return a workflow where its repository is now: it moved along, as nothing else does that starts nights."""
    top = ledger.repo.main_top or ledger.repo.top
    if found.method != "actions" or top is None or Path(found.job.folder).is_dir():
        return found
    job = msgspec.structs.replace(found.job, folder=str(top))
    moved = {f"{top}{path.removeprefix(found.job.folder)}": known for path, known in found.files.items()}
    return msgspec.structs.replace(found, job=job, files=moved)


def write(ledger: Ledger, found: Installed) -> None:
    """Remember what is installed."""
    files.write(_path(ledger), msgspec.json.format(msgspec.json.encode(found, order="sorted"), indent=1) + b"\n")
    files.sync_folder(ledger.root)


def forget(ledger: Ledger) -> None:
    """Remember that nothing is installed."""
    _path(ledger).unlink(missing_ok=True)
    files.sync_folder(ledger.root)


def states(found: Installed) -> Iterator[tuple[str, State]]:
    """Yield each file with whether it still is what Relay wrote."""
    for path, expected in found.files.items():
        try:
            actual = files.sha256(files.read(Path(path)))
        except (FileNotFoundError, NotADirectoryError):
            yield path, "gone"
        except RelayError:
            yield path, "edited"
        else:
            yield path, "whole" if actual == expected else "edited"


def gone(found: Installed) -> str:
    """Name what a night needs and this machine has no more: its program, or the repository; `""` where all is there.

    What another machine starts has its own.
    """
    if found.method == "actions":
        return ""
    needed = (found.job.command[0], found.job.folder)
    return next((path for path in needed if shutil.which(path) is None and not Path(path).is_dir()), "")


def missed(ledger: Ledger, now: datetime) -> str | None:
    """Say that the last night did not run, where one was due since the schedule was installed; else None.

    A night that came too late, and so did nothing, did not run. What runs on another machine is not known here. Where
    what is installed cannot be read, that is said.
    """
    try:
        return _missed(ledger, now)
    except RelayError as error:
        return error.message
    except ValueError as error:
        return f"`{_path(ledger)}` cannot be read: {error}"


def _missed(ledger: Ledger, now: datetime) -> str | None:
    found = read(ledger)
    if found is None or found.method == "actions":
        return None
    from relay import nights
    from relay.schedule import due, zones

    here = now.astimezone(zones.of(found.job.zone))
    last = due.last(due.read(found.job.at), here - GRACE, skips=found.method == "systemd")
    if last is None or last <= clock.parse(found.installed):
        return None
    since = clock.stamp(last)
    if any(night.started >= since and night.ended_by != "missed" for night in nights.every(ledger)):
        return None
    if wrong := nights.damaged(ledger, f"{last.astimezone(UTC):%y%m%d-%H%M}"):
        return wrong
    return f"last night did not run: due {last:%Y-%m-%d %H:%M}"

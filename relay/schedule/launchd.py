"""A launch agent of the person's on a Mac (pitfalls.md, "launchd"); an agent, since a daemon has no keychain."""

import os
import plistlib
import shlex
from itertools import product
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import clock
from relay.schedule import calls, due, script
from relay.schedule.due import Line
from relay.schedule.job import MARK, Job

MOST: Final = 64
"""Times that a property list may count up; it knows neither lists nor steps."""


ENDING: Final = 36
"""What `launchctl bootout` exits with while a night is still being ended: EINPROGRESS of a Mac."""

BUSY: Final = frozenset({5, 37})
"""What `launchctl bootstrap` exits with while the name is not free yet: EIO, and EALREADY of a Mac."""

WAITS: Final = (1, 2, 4, 8)
"""Seconds between the times that it is asked then."""


def name(job: Job) -> str:
    """Return the label under which launchd knows the job."""
    return f"dev.relay.{job.name}"


def _path(job: Job) -> Path:
    return Path.home() / "Library" / "LaunchAgents" / f"{name(job)}.plist"


def texts(job: Job) -> dict[Path, bytes]:
    """Return the property list, and the script that it starts."""
    awake = ("caffeinate", "-i")  # a lid that opens for a moment would otherwise freeze the night in the middle
    wanted = {
        "Label": name(job),
        "ProgramArguments": ["/bin/sh", str(script.path(job))],
        "StartCalendarInterval": intervals(due.read(job.at)),
        "StandardInPath": os.devnull,
        "StandardOutPath": os.devnull,  # the script keeps the log, by a path that need not be there yet
        "StandardErrorPath": os.devnull,
        "ProcessType": "Background",
        "AbandonProcessGroup": False,
        "ExitTimeOut": 120,
        "SoftResourceLimits": {"NumberOfFiles": 4096},
    }
    undo = f"launchctl bootout {_domain()}/{name(job)}; rm {shlex.join(map(str, (_path(job), script.path(job))))}"
    head, mark, rest = plistlib.dumps(wanted, sort_keys=False).partition(b"<plist ")
    return {
        _path(job): head + f"<!-- {MARK} -->\n".encode() + mark + rest,
        script.path(job): script.text(job, script.before(job, awake, ("nice", "-n", "10")), undo),
    }


def entry(job: Job) -> str:
    """Return what goes into a table of others: nothing."""
    del job
    return ""


def intervals(line: Line) -> list[dict[str, int]]:
    """Count up the times of a cron line; `RelayError` where they are too many, or cannot be said."""
    hint = 'say when more simply: --at "17 4 * * *"'
    days = None if len(line.days) == 31 else line.days  # noqa: PLR2004 - days of the longest month
    weekdays = None if len(line.weekdays) == 7 else line.weekdays  # noqa: PLR2004 - days of a week
    if days and weekdays and not line.either:
        raise RelayError(f"launchd cannot say `{line.text}`: with both, either day would do", hint=hint)
    times: tuple[tuple[str, tuple[int, ...] | None], ...] = (
        ("Month", None if len(line.months) == 12 else line.months),  # noqa: PLR2004 - months of a year
        ("Hour", None if len(line.hours) == 24 else line.hours),  # noqa: PLR2004 - hours of a day
        ("Minute", None if len(line.minutes) == 60 else line.minutes),  # noqa: PLR2004 - minutes of an hour
    )
    halves = [("Day", days)] if not weekdays else [("Weekday", weekdays)]
    if line.either:
        halves = [("Day", days), ("Weekday", weekdays)]
    found = []
    for half in halves:
        said = [(key, values) for key, values in (half, *times) if values is not None]
        found += [dict(zip([key for key, _ in said], one, strict=True)) for one in product(*(v for _, v in said))]
    if len(found) > MOST:
        raise RelayError(f"launchd would have to count up {len(found)} times for `{line.text}`", hint=hint)
    return found


def stands(job: Job) -> str:
    """Return what stands in a table of others: nothing."""
    del job
    return ""


def unavailable() -> str:
    """Say why launchd cannot be had here."""
    return "" if calls.there("launchctl") else "there is no `launchctl`"


def _domain() -> str:
    return f"gui/{os.getuid()}"


def enable(job: Job) -> list[str]:
    """Have launchd read the property list; return the commands that are left to type."""
    words = ("launchctl", "bootstrap", _domain(), str(_path(job)))
    if unavailable():
        return [shlex.join(words)]
    # It goes by the old list until it is let go, and of one whose night was running it lets go some seconds later.
    gone = calls.run("launchctl", "bootout", f"{_domain()}/{name(job)}")
    ended = calls.run(*words)
    for wait in WAITS if gone.code in {0, ENDING} else ():
        if ended.code not in BUSY:
            break
        clock.pause(wait)
        ended = calls.run(*words)
    if ended.code != 0:
        raise calls.refused(f"launchd refuses `{name(job)}`", ended)
    return []


def disable(job: Job) -> list[str]:
    """Have launchd let the job go; return the commands that are left to type."""
    words = ("launchctl", "bootout", f"{_domain()}/{name(job)}")
    if unavailable():
        return [shlex.join(words)]
    ended = calls.run(*words)
    # It refuses what it does not know, too: what counts is whether it still knows the job.
    if ended.code not in {0, ENDING} and armed(job) == "active":
        raise calls.refused(f"launchd does not let `{name(job)}` go", ended)
    return []


def forget(job: Job) -> None:
    """Do nothing more: launchd has let it go."""
    del job


def armed(job: Job) -> str:
    """Say whether launchd knows the job; `""` where it cannot be asked."""
    if unavailable():
        return ""
    return "active" if calls.run("launchctl", "print", f"{_domain()}/{name(job)}").code == 0 else "not active"


def log(job: Job) -> str:
    """Say where the script keeps what the nights said."""
    return job.log


def advice(job: Job) -> list[tuple[str, str]]:
    """Say what launchd does with a night that was missed, whatever it is told."""
    del job
    said = "launchd starts a night that was slept through once on waking; one while the Mac was off it forgets"
    return [(said, "")]

"""A timer and a service of the person's own systemd (pitfalls.md, "systemd user timer"; read by systemd 244 or newer).

How each setting reads its text was looked up in systemd 252: a command is split into words that may be quoted; a plain
setting takes the rest of its line as it stands; `%` begins a specifier in both.
"""

import os
import shlex
from pathlib import Path
from typing import Final

from relay.host import files
from relay.schedule import calls, due
from relay.schedule import job as jobs
from relay.schedule.due import Line
from relay.schedule.job import MARK, Job, label

WEEKDAYS: Final = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
WEEK: Final = (1, 2, 3, 4, 5, 6, 0)
"""systemd's week begins on Monday: a range may not pass its end."""

SERVICE: Final = """\
# {mark}; what is changed here is kept beside when that runs again.
[Unit]
Description={label}

[Service]
Type=oneshot
{env}
EnvironmentFile=-{env_file}
ExecCondition=:{condition}
ExecStart=:{command}
TimeoutStartSec={minutes}min
TimeoutStopSec=2min
KillMode=mixed
OOMPolicy=continue
MemoryMax=75%
TasksMax=4096
Nice=10
IOSchedulingClass=idle
StandardInput=null
SuccessExitStatus=75
"""

TIMER: Final = """\
# {mark}; what is changed here is kept beside when that runs again.
[Unit]
Description=When {label} start

[Timer]
{calendar}
Persistent={persistent}
{delay}AccuracySec=1min

[Install]
WantedBy=timers.target
"""

DELAY: Final = "RandomizedDelaySec=10min\nFixedRandomDelay=true\n"
"""Two repositories of one person do not begin in the same minute; each keeps its own."""


STANDS: Final = 'test -d "$1" || { printf \'%s\\n\' "$2"; exit 1; }'
"""What a shell asks first: without its repository a night is skipped, and the journal says what to type."""

DONE: Final = {
    "is-active": {"inactive", "failed", "unknown"},
    "is-enabled": {"disabled", "masked", "masked-runtime", "static", "not-found"},
}
"""What systemd says of a timer that starts nothing any more."""


def texts(job: Job) -> dict[Path, bytes]:
    """Return the two units, by the files they go to."""
    line = due.read(job.at)
    folder = files.config_home() / "systemd" / "user"
    units = tuple(folder / f"{job.name}.{kind}" for kind in ("service", "timer"))
    undo = f"systemctl --user disable --now {job.name}.timer; rm {shlex.join(map(str, units))}"
    condition = (
        "/bin/sh",
        "-c",
        STANDS,
        "sh",
        job.folder,
        jobs.orphaned(job, f"{undo}; systemctl --user daemon-reload"),
    )
    service = SERVICE.format(
        mark=MARK,
        label=label(job),
        env="\n".join(f"Environment={_quoted(f'{name}={value}')}" for name, value in job.env.items()),
        env_file=job.env_file.replace("%", "%%"),
        condition=" ".join(map(_quoted, condition)),
        command=" ".join(map(_quoted, job.command)),
        minutes=round(job.hours * 60),
    )
    timer = TIMER.format(
        mark=MARK,
        label=label(job),
        calendar="\n".join(f"OnCalendar={one}" for one in calendar(line, job.zone)),
        persistent="true" if job.missed == "once" else "false",
        delay=DELAY if len(line.hours) == len(line.minutes) == 1 else "",
    )
    return dict(zip(units, (service.encode(), timer.encode()), strict=True))


def entry(job: Job) -> str:
    """Return what goes into a table of others: nothing."""
    del job
    return ""


def _quoted(word: str) -> str:
    """Quote a word for a setting that is split; the colon before the command leaves every `$` alone."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def calendar(line: Line, zone: str | None) -> list[str]:
    """Say a cron line as OnCalendar has it; two lines where a day need match only one of its two fields."""
    every_day, every_weekday = tuple(range(1, 32)), tuple(range(7))
    halves = [(line.days, every_weekday), (every_day, line.weekdays)] if line.either else [(line.days, line.weekdays)]
    time = f"{_numbers(line.hours, range(24))}:{_numbers(line.minutes, range(60))}:00"
    return [
        f"{_weekdays(weekdays)}*-{_numbers(line.months, range(1, 13))}-{_numbers(days, range(1, 32))} {time}"
        + (f" {zone}" if zone else "")
        for days, weekdays in halves
    ]


def _numbers(values: tuple[int, ...], every: range) -> str:
    """Say the values of a field in two digits each, with ranges where three or more follow each other."""
    if len(values) == len(every):
        return "*"
    return ",".join("..".join(f"{value:02d}" for value in run) for run in _runs(values))


def _weekdays(values: tuple[int, ...]) -> str:
    if len(values) == len(WEEK):
        return ""
    places = tuple(place for place, day in enumerate(WEEK) if day in values)
    return ",".join("..".join(WEEKDAYS[WEEK[place]] for place in run) for run in _runs(places)) + " "


def _runs(values: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Cut values into single ones, and pairs of first and last where at least three follow each other."""
    groups: list[list[int]] = []
    for value in values:
        if groups and value == groups[-1][-1] + 1:
            groups[-1].append(value)
        else:
            groups.append([value])
    cut: list[tuple[int, ...]] = []
    for group in groups:
        cut += [(group[0], group[-1])] if len(group) > 2 else [(value,) for value in group]  # noqa: PLR2004 - two are no range
    return cut


def stands(job: Job) -> str:
    """Return what stands in a table of others: nothing."""
    del job
    return ""


def unavailable() -> str:
    """Say why systemd cannot be had here, `""` where the person's own is there and answers."""
    if not calls.there("systemctl"):
        return "there is no `systemctl`"
    ended = calls.run("systemctl", "--user", "show", "--property=Version")
    return "" if ended.code == 0 else (ended.text.strip().splitlines() or ["it does not answer"])[-1]


def enable(job: Job) -> list[str]:
    """Have systemd read the units and start the timer; return the commands that are left to type.

    The stamp of a timer that ran before is taken away: by it, a new time that is past today would be due at once.
    """
    timer = f"{job.name}.timer"
    words: tuple[tuple[str, ...], ...] = (("daemon-reload",), ("enable", "--now", timer))
    if unavailable():
        return [shlex.join(("systemctl", "--user", *some)) for some in words]
    calls.run("systemctl", "--user", "stop", timer)
    calls.run("systemctl", "--user", "clean", "--what=state", timer)
    for some in words:
        ended = calls.run("systemctl", "--user", *some)
        if ended.code != 0:
            raise calls.refused(f"systemd refuses `{timer}`", ended)
    return []


def disable(job: Job) -> list[str]:
    """Stop the timer, and have it started no more; return the commands that are left to type."""
    timer = f"{job.name}.timer"
    words = ("systemctl", "--user", "disable", "--now", timer)
    if unavailable():
        return [shlex.join(words), "systemctl --user daemon-reload"]
    ended = calls.run(*words)
    # It refuses where the unit's file is gone, too: what counts is whether anything still starts nights.
    if ended.code != 0 and any(_says(what, timer) not in DONE[what] for what in DONE):
        raise calls.refused(f"systemd does not let `{timer}` go", ended)
    calls.run("systemctl", "--user", "clean", "--what=state", timer)
    return []


def _says(what: str, unit: str) -> str:
    """Return systemd's word for how a unit is."""
    return calls.run("systemctl", "--user", what, unit).text.strip().partition("\n")[0]


def forget(job: Job) -> None:
    """Have systemd see that the units are gone, and let go of how they ended."""
    if not unavailable():
        calls.run("systemctl", "--user", "daemon-reload")
        calls.run("systemctl", "--user", "reset-failed", f"{job.name}.timer", f"{job.name}.service")


def armed(job: Job) -> str:
    """Say whether the timer is running; `""` where systemd cannot be asked."""
    if unavailable():
        return ""
    ended = calls.run("systemctl", "--user", "is-active", f"{job.name}.timer")
    return "active" if ended.code == 0 else "not active"


def log(job: Job) -> str:
    """Say how to read what the nights said."""
    return f"journalctl --user -u {job.name}.service"


def advice(job: Job) -> list[tuple[str, str]]:
    """Say what a person should know, with what to type: without linger a person's systemd ends when they log out."""
    del job
    import pwd

    user = pwd.getpwuid(os.getuid()).pw_name
    ended = calls.run("loginctl", "show-user", user, "--property=Linger", "--value")
    if ended.code == 0 and ended.text.strip() == "yes":
        return []
    text = "linger is off: your systemd, and the timer with it, ends when you log out and does not start at boot"
    return [(text, f"loginctl enable-linger {shlex.quote(user)}")]

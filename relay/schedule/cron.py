"""A line in the person's crontab, between marker lines; every other line there is somebody else's and stays."""

import re
import shlex
from pathlib import Path
from typing import Final

from relay.errors import Exit, RelayError
from relay.schedule import calls, script
from relay.schedule.job import Job, label

NONE: Final = "no crontab for"
"""What every crontab says, in English, where a person has none yet."""

GRACE: Final = 120
"""Seconds between the request to end and the end, where a night is longer than it may be."""

BLOCK: Final = """\
# relay nightly begin {key}
# {label}, by `relay schedule install`; `relay schedule remove` takes this out.
{at} /bin/sh {script}
# relay nightly end {key}
"""


def texts(job: Job) -> dict[Path, bytes]:
    """Return the script that the line calls."""
    limit = ("timeout", "-k", str(GRACE), str(round(job.hours * 3600)))
    path = script.path(job)
    before, undo = script.before(job, limit, ("nice", "-n", "10")), f"{_typed(job)} && rm {shlex.quote(str(path))}"
    return {path: script.text(job, before, undo)}


def entry(job: Job) -> str:
    """Return the lines between the markers, and these; `%` would end the command, and is escaped."""
    path = str(script.path(job))
    if "\\" in path:
        raise RelayError(
            f"no two crons read a backslash alike, and `{path}` has one", hint="relay schedule install --with systemd"
        )
    quoted = shlex.quote(path).replace("%", "\\%")
    return BLOCK.format(key=job.key, label=label(job), at=job.at, script=quoted)


def merged(table: str, block: str, key: str) -> str:
    """Return a crontab with the block in the place of the one before, else at its end; others' lines stay."""
    kept = without(table, key)
    # crontab refuses a table whose last line has no end.
    return f"{kept}{'' if kept.endswith(chr(10)) or not kept else chr(10)}{block}"


def without(table: str, key: str) -> str:
    """Return a crontab without the block of a key: all of it but what `block` returns."""
    before, _, after = _parted(table, key)
    return before + after


def block(table: str, key: str) -> str:
    """Return what a crontab has between the markers of a key, and these; `""` where it has none."""
    return _parted(table, key)[1]


def _parted(table: str, key: str) -> tuple[str, str, str]:
    """Return a crontab as what is before the block of a key, the block, and what is after it.

    Blanks around a marker, and an editor's CR, change nothing. One that was cut in half is refused, not guessed.
    """
    begin, end = f"# relay nightly begin {key}", f"# relay nightly end {key}"
    lines = re.split(r"(?<=\n)", table)
    plain = [line.strip() for line in lines]
    if begin not in plain and end not in plain:
        return table, "", ""
    if plain.count(begin) != 1 or plain.count(end) != 1 or plain.index(end) < plain.index(begin):
        hint = f"crontab -e, and take out Relay's lines: those with {key} in them"
        raise RelayError("the crontab has only a part of Relay's lines", hint=hint, exit_code=Exit.HUMAN)
    first, behind = plain.index(begin), plain.index(end) + 1
    return "".join(lines[:first]), "".join(lines[first:behind]), "".join(lines[behind:])


def read() -> str:
    """Return the person's crontab, `""` for none; any other trouble is a `RelayError`: nothing of it may be lost."""
    ended = calls.run("crontab", "-l")
    if ended.code == 0 and not ended.dropped:
        return (ended.head + ended.tail).decode("utf-8", "surrogateescape")
    if ended.code != 0 and NONE in ended.text:
        return ""
    raise calls.refused("the crontab cannot be read", ended)


def _write(table: str) -> None:
    ended = calls.run("crontab", "-", stdin=table.encode("utf-8", "surrogateescape"))
    if ended.code != 0:
        raise calls.refused("the crontab cannot be written", ended)


def stands(job: Job) -> str:
    """Return the lines between the markers as the crontab has them now."""
    return "" if unavailable() else block(read(), job.key)


def unavailable() -> str:
    """Say why cron cannot be had here."""
    return "" if calls.there("crontab") else "there is no `crontab`"


def enable(job: Job) -> list[str]:
    """Put the block into the crontab."""
    table = read()
    wanted = merged(table, entry(job), job.key)
    if wanted != table:
        _write(wanted)
    return []


def disable(job: Job) -> list[str]:
    """Take the block out of the crontab; one that is empty then is taken away.

    Where `crontab` is gone, that is left to type.
    """
    if unavailable():
        return [_typed(job)]
    table = read()
    left = without(table, job.key)
    if left == table:
        return []
    if left.strip():
        _write(left)
    elif (ended := calls.run("crontab", "-r")).code != 0:
        raise calls.refused("the crontab cannot be taken away", ended)
    return []


def _typed(job: Job) -> str:
    """Say what a person types to take Relay's lines out; where half of the block is gone, others' lines stay."""
    around = f"/^# relay nightly begin {job.key}/,/^# relay nightly end {job.key}/"
    return f"crontab -l | sed '{around}{{/{job.key}/d;/, by `relay schedule install`; /d;}}' | crontab -"


def forget(job: Job) -> None:
    """Do nothing more: cron looks at its tables by itself."""
    del job


def armed(job: Job) -> str:
    """Say whether the crontab still has the line as it was written; `""` where it cannot be asked."""
    if unavailable():
        return ""
    table = read()
    try:
        found = block(table, job.key)
    except RelayError:
        return "edited by hand"
    return "active" if found == entry(job) else "edited by hand" if found else "not active"


def log(job: Job) -> str:
    """Say where the script keeps what the nights said."""
    return job.log


def advice(job: Job) -> list[tuple[str, str]]:
    """Say what cron cannot do, and which line of a person's changes when it starts nights."""
    said = [("cron does not make up for a night that the machine slept through; `relay status` says so then", "")]
    zone = re.findall(r"^[ \t]*(CRON_TZ[ \t]*=.*?)[ \t\r]*$", _parted(read(), job.key)[0], re.MULTILINE)
    if zone:
        text = f"above Relay's line the crontab has `{zone[-1]}`: some crons read the time in that zone"
        said.append((text, "crontab -e, and move that line below Relay's"))
    return said

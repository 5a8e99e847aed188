"""The script that starts a night for cron and launchd, which have no file of variables, no log and no limits.

A crontab's own variables would be its other lines' as well, a command there has a thousand characters at most, and `%`
ends it; so the table calls this by a plain path, and everything else stands here (pitfalls.md, "cron").
"""

import shlex
from pathlib import Path
from typing import Final

from relay.schedule import job as jobs
from relay.schedule.job import MARK, Job, label, program

LOG: Final = 1 << 20
"""Bytes after which the log begins anew; the one before is kept."""

TEXT: Final = """\
#!/bin/sh
# {mark}; what is changed here is kept beside when that runs again.
# {label}.
{env}
# What else is needed, such as keys: lines NAME=value, quotes around the value or not, nothing in it is expanded.
env={env_file}
relay_mark=$(printf '\\357\\273\\277') relay_cr=$(printf '\\r') relay_line=0 relay_unread=
if [ -r "$env" ]; then
  while IFS= read -r line || [ -n "$line" ]; do
    relay_line=$((relay_line + 1))
    line=${{line#"$relay_mark"}}
    relay_mark=
    line=${{line%"$relay_cr"}}
    line=${{line#"${{line%%[![:blank:]]*}}"}}
    line=${{line%"${{line##*[![:blank:]]}}"}}
    case $line in '' | '#'* | ';'*) continue ;; *=*) name=${{line%%=*}} value=${{line#*=}} ;; *) name= ;; esac
    name=${{name%"${{name##*[![:blank:]]}}"}}
    value=${{value#"${{value%%[![:blank:]]*}}"}}
    case $name in '' | [!A-Za-z_]* | *[!A-Za-z0-9_]*) relay_unread="$relay_unread $relay_line"; continue ;; esac
    case $value in
      \\"*\\") value=${{value#?}} value=${{value%?}} ;;
      \\'*\\') value=${{value#?}} value=${{value%?}} ;;
    esac
    export "$name=$value"
  done <"$env"
fi

log={log}
(umask 077 && mkdir -p "${{log%/*}}" && : >>"$log")
if [ -f "$log" ] && [ "$(wc -c <"$log")" -gt {most} ]; then mv -f "$log" "$log.1"; fi
if ! [ -d {folder} ]; then
  said={said}
  [ "$(tail -n 1 "$log" 2>/dev/null)" = "$said" ] || {{ printf '%s\\n' "$said" >>"$log"; printf '%s\\n' "$said" >&2; }}
  exit 2
fi
[ -z "$relay_unread" ] || printf 'relay: %s: not NAME=value, so not read: line%s\\n' {env_file} "$relay_unread" >>"$log"
cd || cd /
exec {command} </dev/null >>"$log" 2>&1
"""


def path(job: Job) -> Path:
    """Say where the script lies: beside the person's own variables for Relay, not in the repository."""
    return Path(job.env_file).parent / "schedule" / f"{job.name}.sh"


def text(job: Job, before: tuple[str, ...], undo: str = "") -> bytes:
    """Return the script; `before` are the words of programs that start the command, such as `nice -n 10`.

    `undo` is the command that takes the schedule away where there is no repository any more: the log and cron's mail
    name it once.
    """
    env = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in job.env.items())
    command = shlex.join((*before, *job.command))
    return TEXT.format(
        mark=MARK,
        label=label(job),
        env=env,
        env_file=shlex.quote(job.env_file),
        log=shlex.quote(job.log),
        most=LOG,
        folder=shlex.quote(job.folder),
        said=shlex.quote(jobs.orphaned(job, undo)),
        command=command,
    ).encode()


def before(job: Job, *programs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of those programs that the job finds, each by its whole path."""
    found = ((program(words[0], job), words[1:]) for words in programs)
    return tuple(word for name, rest in found if name is not None for word in (name, *rest))


def variables(text: str, *, marked: bool = True) -> tuple[dict[str, str], list[int]]:
    """Read a file of variables as the script does; return them, and the numbers of the lines that are not read.

    systemd reads the same lines, but takes off no byte-order mark: for it nothing is `marked`.
    """
    found, unread = {}, []
    for number, whole in enumerate(text.removeprefix("\ufeff" * marked).split("\n"), 1):
        line = whole.removesuffix("\r").strip(" \t")
        name, equals, value = (part.strip(" \t") for part in line.partition("="))
        if equals and name.isascii() and name.isidentifier() and line[0] not in "#;":
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            found[name] = value[1:-1] if quoted else value
        elif line and line[0] not in "#;":
            unread.append(number)
    return found, unread

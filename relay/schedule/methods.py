"""The ways a machine can be made to start a night; one literal table, and which of them this machine has."""

import sys
from pathlib import Path
from typing import Final, Literal, Protocol, get_args

from relay.errors import Exit, RelayError
from relay.schedule import actions, cron, launchd, systemd
from relay.schedule.job import Job

Name = Literal["systemd", "cron", "launchd", "actions"]
NAMES: Final[tuple[Name, ...]] = get_args(Name)


class Method(Protocol):
    """What each way can do."""

    def texts(self, job: Job) -> dict[Path, bytes]:
        """Return the exact text of each file."""
        ...

    def entry(self, job: Job) -> str:
        """Return what goes into a table that others write to as well, `""` where there is none."""
        ...

    def stands(self, job: Job) -> str:
        """Return what such a table has of the job now, `""` for nothing."""
        ...

    def unavailable(self) -> str:
        """Say why it cannot be had here, `""` where it can."""
        ...

    def enable(self, job: Job) -> list[str]:
        """Have the files obeyed; return the commands that are left to type."""
        ...

    def disable(self, job: Job) -> list[str]:
        """Have the files obeyed no more, before they are removed; return the commands that are left to type."""
        ...

    def forget(self, job: Job) -> None:
        """Tidy up once the files are removed."""
        ...

    def armed(self, job: Job) -> str:
        """Say whether it would start: `active`, or why not; `""` where that cannot be asked."""
        ...

    def log(self, job: Job) -> str:
        """Say where, or how, one reads what the nights said."""
        ...

    def advice(self, job: Job) -> list[tuple[str, str]]:
        """Return what a person should know, each with what to type, or nothing."""
        ...


METHODS: Final[dict[Name, Method]] = {"systemd": systemd, "cron": cron, "launchd": launchd, "actions": actions}


DOES: Final[dict[Name, str]] = {
    "systemd": "writes these units into your home, and has your systemd start the timer",
    "cron": "writes this script, and puts these lines into your crontab",
    "launchd": "writes this script and this list, and has launchd load it",
    "actions": "writes this workflow into the checkout, for you to commit and push; this machine starts nothing",
}
"""What installing comes to, said of texts that were shown."""


def default() -> Name:
    """Return the first way that this machine has; `RelayError` where it has none."""
    return chosen()[0]


def chosen() -> tuple[Name, str]:
    """Return the first way that this machine has, and why it is that one; `RelayError` where it has none."""
    wanted: tuple[Name, ...] = ("launchd", "cron") if sys.platform == "darwin" else ("systemd", "cron")
    reasons: dict[Name, str] = {}
    for name in wanted:
        reason = METHODS[name].unavailable()
        if not reason:
            before = "; ".join(f"{other} is not to be had: {said}" for other, said in reasons.items())
            return name, before or f"{name} answers here"
        reasons[name] = reason
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    hint = "apt-get install cron, or let GitHub start them: relay schedule install --with github"
    raise RelayError(f"nothing here can start a night ({why})", hint=hint, exit_code=Exit.HUMAN)

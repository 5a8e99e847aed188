"""Run one command of a person and keep what it did as a fact."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from relay.host.jail import cell as cells
from relay.host.jail.cell import Cell
from relay.terms import Check, Limits

_KEEP: Final = 256 << 10
_FLOOD: Final = 256 << 20
_CUT_SHORT: Final = 124
"""The exit code of a command that did not end by itself, as `timeout` gives it."""


def run(
    command: str, folder: Path, *, by: str, env: Mapping[str, str], seconds: float, cell: Cell | None = None
) -> tuple[Check, str]:
    """Run `command` by the shell in `folder`; return what happened and the output, its middle left out when long.

    It runs in `cell`, where there is one, and gets what `cells.run` lets through of the environment, with `env` on top.
    Whatever it left running is ended. A command over `seconds`, or over 256 MiB of output, has exit code 124, whatever
    it said itself; a negative one names the signal that killed it.
    """
    limits = Limits(seconds=seconds, keep=_KEEP, output=_FLOOD)
    ended = cells.run(cell, command, folder=folder, env=env, limits=limits)
    check = Check(
        by=by,
        command=command,
        exit=ended.code if ended.ended == "exit" else _CUT_SHORT,
        seconds=round(ended.seconds, 3),
        output_sha256=ended.sha256,
        ended=ended.ended,
    )
    return check, ended.text

"""A copy of a folder, for writes that its original must never see: by clone where the disk can."""

from pathlib import Path
from typing import Final

from relay.errors import Exit, RelayError
from relay.host import proc
from relay.terms import Limits

_LONGEST: Final = Limits(seconds=600)


def copy(folder: Path, to: Path) -> None:
    """Copy a folder whole to where nothing is; `RelayError` when it cannot be done, with a part of it there."""
    command = ["cp", "-a", "--reflink=auto", "--", str(folder), str(to)]
    alone = proc.Guard(look=lambda _: None, gone=lambda _: True, harmless=True)  # it starts nothing
    ended = proc.run(command, cwd="/", env=proc.clean_env(), limits=_LONGEST, guard=alone)
    if ended.ended != "exit" or ended.code:
        problem = f"`{folder}` could not be copied: {ended.text.strip()[-300:]}"
        raise RelayError(problem, hint=f"see: df -h {to.parent}", exit_code=Exit.HUMAN)

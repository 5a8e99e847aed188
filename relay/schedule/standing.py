"""Whether what was installed still stands as Relay wrote it, and would start a night."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from relay.schedule import installed, methods
from relay.schedule.installed import Installed


def faults(found: Installed) -> Iterator[tuple[str, str, str]]:
    """Yield level, text and hint of whatever keeps a night from starting, or has it start otherwise.

    The hint can be typed anywhere: whoever moved a repository stands in the new place.
    """
    again = "relay schedule install"
    if gone := installed.gone(found):
        yield "FAIL", f"the schedule starts `{gone}`, which is gone", again
    for path, state in installed.states(found):
        if state == "gone":
            yield "FAIL", f"`{path}`, which starts the nights, is gone", again
        elif state == "edited":
            look = f"look at it: cat {shlex.quote(path)}; or write it anew, and keep yours beside: {again}"
            yield "warn", f"`{Path(path).name}`, which starts the nights, was edited by hand", look
    armed = methods.METHODS[found.method].armed(found.job)
    if armed == "edited by hand":
        yield "warn", f"the line that starts the nights by {found.method} was edited by hand", again
    elif armed not in {"", "active"}:
        yield "FAIL", f"no night will start: {found.method} says that `{found.job.name}` is {armed}", again

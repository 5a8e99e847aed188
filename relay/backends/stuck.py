"""Whether an agent goes round in circles: by what it calls and what comes of it, never by what it says."""

from collections import Counter
from typing import Final

SAME: Final = 3
"""So many times the same call in a row is a circle."""
WRONG: Final = 5
"""So many times the same mistake with a tool, with no success of that tool in between."""
IDLE: Final = 25
"""So many turns without a change of a file and without a call that was not made before."""


class Watch:
    """Looks at each call and each turn; what it finds is said once, then its count begins anew."""

    def __init__(self) -> None:
        self._last, self._times, self._same = ("", ""), 0, False
        self._wrong: Counter[tuple[str, str]] = Counter()
        self._seen: set[tuple[str, str]] = set()
        self._turns = 0

    def saw(self, tool: str, arguments: str, wrong: str, *, changed: bool) -> None:
        """Look at a call: `wrong` names the kind of mistake, if it was one; `changed` says that a file is another."""
        call = (tool, arguments)
        self._times = self._times + 1 if call == self._last else 1
        self._last, self._same = call, self._same or self._times >= SAME
        if changed or call not in self._seen:
            self._turns = -1  # this turn does not count
        self._seen.add(call)
        if wrong:
            self._wrong[tool, wrong] += 1
            return
        for known in [known for known in self._wrong if known[0] == tool]:
            del self._wrong[known]

    def circle(self) -> str:
        """Say at the end of a turn what goes in a circle, and nothing where nothing does."""
        self._turns += 1
        if self._same:
            self._times, self._same = 0, False
            return f"the same call of `{self._last[0]}` was made {SAME} times in a row"
        for (tool, wrong), times in self._wrong.items():
            if times >= WRONG:
                del self._wrong[tool, wrong]
                return f"`{tool}` failed {times} times in the same way: {wrong}"
        if self._turns >= IDLE:
            self._turns = 0
            return f"in {IDLE} turns no file was changed and nothing new was looked at"
        return ""

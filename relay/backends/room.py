"""The room in a model's window: how much is used, and what of old output can be left out of it."""

from typing import Final

from relay.backends.talk import Result, Talk, Turn

TRIM_AT: Final = 0.75
"""The part of a leg's share of the window at which old output is left out."""
WORTH: Final = 0.2
"""The part of that share that must come free: each trim costs the whole cache behind it, so they are few and big."""
LONG: Final = 2000
"""Characters of a result that is worth leaving out."""
KEPT: Final = 6
"""So many of the newest results stay as they are."""
LETTERS: Final = 4
"""Characters of a token, roughly; only to guess what a trim frees."""


class Room:
    """Knows the results that stand in a conversation, and leaves out the old and long ones when room gets scarce."""

    def __init__(self, talk: Talk, window: int, share: float) -> None:
        self._talk, self._share = talk, window * share
        self._long: list[tuple[str, int]] = []
        self._count = 0
        self._at: dict[str, int] = {}

    def holds(self, results: tuple[Result, ...]) -> None:
        """Note results that are now part of the conversation."""
        for result in results:
            self._count += 1
            self._at[result.id] = self._count
            if len(result.text) > LONG:
                self._long.append((result.id, len(result.text)))

    def full(self, turn: Turn) -> bool:
        """Tell whether a turn passed the share, by the service's own figures; old output is left out before that."""
        used = turn.context + turn.usage.output
        if used < self._share * TRIM_AT:
            return False
        frees = sum(size for _, size in self._old(KEPT)) / LETTERS
        if frees >= self._share * WORTH:
            self.trim(KEPT)
            used -= int(frees)
        return used >= self._share

    def trim(self, kept: int) -> bool:
        """Leave out what is long but for the newest results; False where there is nothing of the kind."""
        old = self._old(kept)
        for name, size in old:
            self._talk.trim(name, f"[{size} characters of old output were left out here; if you need them, look again]")
        self._long = [one for one in self._long if one not in old]
        return bool(old)

    def _old(self, kept: int) -> list[tuple[str, int]]:
        return [(name, size) for name, size in self._long if self._at[name] <= self._count - kept]

"""The one error a person may see, and the table of exit codes.

Everything that Relay can explain is a `RelayError`. Whatever else reaches `cli.main` is a bug and gets a report file.
"""

from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """Exit codes, as published in DESIGN section 8; an unknown one means failure."""

    OK = 0
    NOT_ACCEPTED = 1
    USAGE = 2
    BUG = 3
    HUMAN = 4
    AGENT = 5
    GATE = 6
    BREACH = 7
    HELD = 75


MEANING: Final = {
    Exit.OK: "accepted, proposed or shipped",
    Exit.NOT_ACCEPTED: "not accepted",
    Exit.USAGE: "usage, config or spec wrong",
    Exit.BUG: "a bug; a report file is named",
    Exit.HUMAN: "needs a human",
    Exit.AGENT: "an agent or its service failed, or waiting for quota",
    Exit.GATE: "gate refused: a note or receipt is missing or does not match",
    Exit.BREACH: "a boundary was breached",
    Exit.HELD: "another process holds the lock",
}


class RelayError(Exception):
    """What went wrong, what to type next, and how the program exits.

    `message` is one sentence, lower-case, without a final period; values stand in backticks.
    `hint` says what to type; it may span lines.
    """

    def __init__(self, message: str, *, hint: str = "", exit_code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


class Interrupted(BaseException):
    """A signal asked Relay to end: not an error, so nothing that catches errors may swallow it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum
        self.run = ""
        """The run that was in progress, if one was."""

"""The closed lists of words, and the base of every struct."""

from typing import Final, Literal

import msgspec

SCHEMA: Final = 1
"""The schema number of every file that Relay writes; another one is refused by name."""

MECHANICAL: Final = "mechanical"
"""The vendor of what has no model and no opinion: it costs nothing, and is independent of every other agent."""

Kind = Literal["work", "judge"]
Boundary = Literal["implement", "verify-only"]
Done = Literal["verify", "trust"]
Evidence = Literal["located", "confirmed"]
EndedBy = Literal[
    "reply",
    "handover",
    "interrupted",
    "crash",
    "timeout",
    "idle",
    "memory",
    "output",
    "disk",
    "budget",
    "stuck",
    "quota",
    "overload",
    "auth",
    "refusal",
    "breach",
    "setup",
    "no-reply",
]
Reach = Literal["off", "service", "allowed", "host"]
"""What of the network an agent's commands had: nothing, the agent's own service, hosts on a list, all of it."""
Verdict = Literal["approve", "revise", "blocked", "inconclusive"]
Act = Literal["offer", "answer", "extend", "reject", "rebase", "approve", "ship", "stop", "go"]
Outcome = Literal["open", "waiting", "needs-human", "accepted", "proposed", "shipped", "not-accepted", "stopped"]
Severity = Literal["blocker", "major", "minor", "nit"]
Proof = Literal["confirmed", "located", "unfounded"]
State = Literal["new", "persisting", "regression", "born-of-a-fix"]
"""What a finding is to the judge's rounds before: a regression was settled once, and the last has its lines from one.

A finding born of a fix is new, on lines that a repair changed.
"""
Settlement = Literal["fixed", "withdrawn"]
"""How a finding ended: its repro is green or its quote is gone; or the judge let go of it and the code still stands."""
Independence = Literal["vendor", "mechanical", "allowed"]
"""Why a judge may look at a worker's result: another vendor and model family, no opinion at all, or by permission."""
Method = Literal["merge", "fast-forward", "merge-commit", "push", "pr", "command"]


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of every struct: immutable, strict when read.

    `kw_only` is not inherited, nor does a type checker see that `frozen` is, so each struct says both.
    """

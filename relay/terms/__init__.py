"""The words of Relay as frozen structs: what crosses every seam between two rooms.

A struct is data: it knows no file, no clock and no git. Unknown fields are refused when one is read from disk.
"""

from relay.terms.asks import Ask, Limits, Taken
from relay.terms.claims import Claim, ClaimedCriterion, ClaimedFinding, Dispute, JudgeReply, Quoted, Reason, Reply, Repro, WorkReply
from relay.terms.facts import Change, Check, CriterionResult, Finding, Pins, Process, Receipt, Refused, Start, Usage
from relay.terms.plan import Agent, Budget, Criterion, Jail, Must, Phase, Plan, Ship, Spec, Tests, Worktree
from relay.terms.words import Act, Boundary, Done, EndedBy, Evidence, Kind, Method, Outcome, Proof, SCHEMA, Severity, Struct, Verdict

__all__ = [
    "Act",
    "Agent",
    "Ask",
    "Boundary",
    "Budget",
    "Change",
    "Check",
    "Claim",
    "ClaimedCriterion",
    "ClaimedFinding",
    "Criterion",
    "CriterionResult",
    "Dispute",
    "Done",
    "EndedBy",
    "Evidence",
    "Finding",
    "Jail",
    "JudgeReply",
    "Kind",
    "Limits",
    "Method",
    "Must",
    "Outcome",
    "Phase",
    "Pins",
    "Plan",
    "Process",
    "Proof",
    "Quoted",
    "Reason",
    "Receipt",
    "Refused",
    "Reply",
    "Repro",
    "SCHEMA",
    "Severity",
    "Ship",
    "Spec",
    "Start",
    "Struct",
    "Taken",
    "Tests",
    "Usage",
    "Verdict",
    "WorkReply",
    "Worktree",
]

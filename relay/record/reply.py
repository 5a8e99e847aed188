"""The one door through which an agent's text comes in: raw bytes to claims, or to a problem in words."""

import re
from typing import Any, Final

import msgspec

from relay.record import strict
from relay.terms import JudgeReply, Kind, WorkReply

LIMIT: Final = 4 << 20
"""Bytes of the largest reply: a document may be long, a transcript is no reply."""

TYPES: Final[dict[Kind, type[WorkReply] | type[JudgeReply]]] = {"work": WorkReply, "judge": JudgeReply}

CONTROLS: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC and other strings
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # what is left of C0 but tab and newline, DEL, C1
)
"""Terminal control sequences as in ECMA-48: a reply is shown to people, and must not move their cursor."""

MANY: Final = 200
"""The most findings, places or criteria of a reply that are looked at."""
LONG_PATH: Final = 4096
"""Bytes of the longest path: of any that a system takes."""
LONG_QUOTE: Final = 20_000
"""Characters of the longest quote."""

DESCRIPTIONS: Final = {
    "WorkReply.status": "`done` if the task is done, `blocked` if it cannot be; then `question` says why",
    "WorkReply.summary": "what was changed, in a few sentences; it goes into the commit message",
    "WorkReply.decisions": "choices that a reader of the diff would ask about",
    "WorkReply.dropped": "what was tried or considered and given up",
    "WorkReply.claims": "for each criterion that is met, how anybody can check it",
    "WorkReply.risks": "what could still be wrong",
    "WorkReply.todo": "what is left to do",
    "WorkReply.disputes": "findings you were given that do not hold, and why",
    "WorkReply.existing": "what is in the repository and the reply rests on, quoted; Relay looks each up",
    "WorkReply.document": "the product, in Markdown, of a phase that changes no files; else null",
    "WorkReply.question": "one question for a person, if you cannot go on without the answer; else null",
    "Reason.what": "what was decided or dropped",
    "Reason.why": "the reason",
    "Claim.criterion": "the id of the criterion, for instance `c1`",
    "Claim.how": "a command to run, or the place to look at",
    "Dispute.finding": "the id of the finding",
    "Dispute.why": "why it does not hold",
    "Dispute.command": "a command whose exit 0 shows that it does not hold; else null",
    "JudgeReply.verdict": "`approve`, `revise`, or `blocked` if you could not judge; then `question` says why",
    "JudgeReply.nonce": "the nonce from the prompt, unchanged; a reply with another one is void",
    "JudgeReply.summary": "what you looked at and what you found, in a few sentences",
    "JudgeReply.findings": "one entry for each problem; empty if there is none",
    "JudgeReply.existing": "what is in the repository and the judgement rests on, quoted; Relay looks each up",
    "JudgeReply.criteria": "your answer to each criterion you were asked about",
    "JudgeReply.question": "one question for a person, if you cannot judge without the answer; else null",
    "ClaimedFinding.severity": "`blocker` and `major` block if the evidence holds, `minor` and `nit` never do",
    "ClaimedFinding.title": "the problem in one line",
    "ClaimedFinding.path": "the file, relative to the root of the repository",
    "ClaimedFinding.line": "the line at the commit under judgement on which the quote begins, from 1",
    "ClaimedFinding.quote": "what stands there, copied without any change",
    "ClaimedFinding.why": "what goes wrong, and when",
    "ClaimedFinding.same_as": "the id of the open finding this one is the same as; else null",
    "ClaimedFinding.repro": "a command that shows the problem; Relay runs it; null if there is none",
    "Repro.command": "a shell command, run at the root of a clean checkout of the commit",
    "Repro.files": "files the command needs besides the repository's: path to content",
    "Repro.expect_exit": "the exit code that shows the problem; null if the output decides",
    "Repro.expect_output": "a part of the output that shows the problem; null if the exit code decides",
    "Quoted.path": "the file, relative to the root of the repository",
    "Quoted.quote": "what stands there, copied without any change",
    "ClaimedCriterion.id": "the id of the criterion, for instance `c1`",
    "ClaimedCriterion.met": "whether it holds",
    "ClaimedCriterion.command": "the command that shows it, if there is one; else null",
    "ClaimedCriterion.path": "the file that shows it, if no command does; else null",
    "ClaimedCriterion.quote": "what stands in that file, copied without any change; else null",
}
"""What each field means, for whoever writes a reply: struct and field name to one phrase."""


def decode(raw: bytes | None, kind: Kind, nonce: str | None) -> tuple[WorkReply | JudgeReply | None, str]:
    """Return the reply and "", or None and the problem, with the path of the value that is wrong.

    Terminal control sequences are taken out of every string. A judge's nonce must be the leg's; None asks for no
    nonce, for a reply that was sealed and is read again.
    """
    if raw is None:
        return None, "there is no reply"
    if len(raw) > LIMIT:
        return None, f"the reply has {len(raw)} bytes, the limit is {LIMIT}"
    try:
        reply = strict.convert(_plain(strict.load_json(raw), "$"), TYPES[kind], "$")
    except strict.Wrong as wrong:
        return None, f"the reply does not fit: {wrong.text}"
    except RecursionError:
        return None, "the reply does not fit: it is nested too deeply"
    problem = _too_much(reply)
    if isinstance(reply, JudgeReply) and nonce is not None and reply.nonce != nonce:
        problem = "`$.nonce` is not the nonce of this leg"
    return (None, f"the reply does not fit: {problem}") if problem else (reply, "")


def _too_much(reply: WorkReply | JudgeReply) -> str:
    """Say what no honest reply has so much of: each of them costs Relay a look, and a path goes to git by name."""
    findings, criteria = (reply.findings, reply.criteria) if isinstance(reply, JudgeReply) else ((), ())
    for name, count in (("findings", len(findings)), ("existing", len(reply.existing)), ("criteria", len(criteria))):
        if count > MANY:
            return f"`$.{name}` has {count} entries, the limit is {MANY}"
    places = [
        *((one.path, one.quote) for one in findings),
        *((one.path, one.quote) for one in reply.existing),
        *((one.path or "", one.quote or "") for one in criteria),
    ]
    for path, quote in places:
        if len(path.encode("utf-8", "replace")) > LONG_PATH:
            return f"a path is longer than {LONG_PATH} bytes"
        if len(quote) > LONG_QUOTE:
            return f"a quote is longer than {LONG_QUOTE} characters"
    return ""


def schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON schema of a reply, each field with a description."""
    whole = msgspec.json.schema(TYPES[kind])
    named: dict[str, Any] = whole["$defs"]
    for name, definition in named.items():
        del definition["title"], definition["description"]
        for field, described in definition["properties"].items():
            described.pop("default", None)
            described["description"] = DESCRIPTIONS[f"{name}.{field}"]
    return {**named.pop(TYPES[kind].__name__), "$defs": named}


def _plain(value: Any, path: str) -> Any:  # noqa: ANN401 - JSON is anything until `convert` looked at it
    """Take terminal control sequences out of all strings; a NUL, or a control character in a key, is refused."""
    if isinstance(value, str):
        if "\0" in value:
            raise strict.Wrong(f"`{path}` has a NUL character")
        return CONTROLS.sub("", value)
    if isinstance(value, list):
        return [_plain(item, f"{path}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if CONTROLS.search(key):
                raise strict.Wrong(f"`{path}` has a key with control characters")
        return {key: _plain(item, f"{path}.{key}") for key, item in value.items()}
    return value

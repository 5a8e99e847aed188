"""How a run of Claude Code ended: a reply, what is wrong with one, or a failure by the classes all agents share."""

import re
from datetime import UTC, datetime
from typing import Final

import msgspec

from relay.backends import claude_usage, engine
from relay.backends.base import Lane
from relay.backends.claude_lines import Heard
from relay.backends.claude_usage import Json
from relay.host import clock
from relay.terms import Ask, EndedBy, Taken

SHOWN: Final = 500
"""Characters of the service's own message that are shown."""
_BY_SUBTYPE: Final[dict[str, EndedBy]] = {"error_max_turns": "budget", "error_max_budget_usd": "budget"}
_UNFIT: Final = "error_max_structured_output_retries"
_BY_FAULT: Final[dict[str, EndedBy]] = {
    "authentication_failed": "auth",
    "oauth_org_not_allowed": "auth",
    "billing_error": "quota",
    "rate_limit": "quota",
    "overloaded": "overload",
    "server_error": "overload",
    "model_not_found": "setup",
    "max_output_tokens": "no-reply",
}
"""By what the program calls it, in the line where it says what failed."""
_OVERLOADED: Final = frozenset({408, 500, 502, 503, 504, 529})
_BY_STATUS: Final[dict[int, EndedBy]] = {401: "auth", 403: "auth", 402: "quota", 429: "quota", 404: "setup"}
_BY_WORDS: Final[tuple[tuple[str, EndedBy], ...]] = (
    ("not logged in", "auth"),
    ("/login", "auth"),
    ("usage policy", "refusal"),
    ("credit balance", "quota"),
    ("usage limit", "quota"),
    ("hit your", "quota"),
    ("output token maximum", "no-reply"),
    ("issue with the selected model", "setup"),
    ("unable to connect", "overload"),
)
_EPOCH: Final = re.compile(r"\|(\d{10})\b")
_REGAIN: Final = re.compile(r"(\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC")


def of(ask: Ask, lane: Lane, heard: Heard, ended: engine.Ended) -> Taken | str:
    """Return how the leg ended, or in words what is wrong with a reply that may be asked for once more."""
    cut = engine.taken("claude", ended)
    if cut is not None:
        return cut
    result = heard.result
    if result is None:
        return _silent(ended)
    subtype = str(result.get("subtype"))
    if subtype in _BY_SUBTYPE:
        return Taken(ended_by=_BY_SUBTYPE[subtype], problem=_shown("; ".join(map(str, result.get("errors") or ()))))
    if subtype == _UNFIT:
        return "it did not fit the schema"
    if result.get("is_error") is not False or subtype != "success" or ended.code != 0:
        return _failed(result, heard, ended)
    return _replied(ask, lane, result)


def _replied(ask: Ask, lane: Lane, result: Json) -> Taken | str:
    """Take the reply of a run that went well, if there is one and it fits."""
    given = result.get("structured_output")
    if given is None:
        return "there was none by the schema" if ask.schema else "there was none"
    reply = msgspec.json.encode(given)
    if wrong := lane.unfit(reply):
        return wrong
    denied = claude_usage.denied(result)
    problem = None
    if denied:
        names = ", ".join(f"`{name}`" for name in sorted(set(denied)))
        problem = f"the boundary refused {len(denied)} call{'s' * (len(denied) != 1)} of {names}"
    return Taken(ended_by="reply", reply=reply, problem=problem)


def _silent(ended: engine.Ended) -> Taken:
    """Name the end of a program that gave no result: it refused what it was asked, or somebody ended it."""
    if ended.code in {126, 127}:
        return Taken(ended_by="setup", problem=f"`claude` cannot be run: {_shown(ended.said)}")
    if ended.code == 1 and ended.said:
        return Taken(ended_by="setup", problem=f"`claude` would not start: {_shown(ended.said)}")
    return Taken(ended_by="crash", problem=f"`claude` exited {ended.code} without a result")


def _failed(result: Json, heard: Heard, ended: engine.Ended) -> Taken:
    """Name a failure by the class it has with every agent."""
    said = str(result.get("result") or "; ".join(map(str, result.get("errors") or ())))
    if result.get("terminal_reason") == "prompt_too_long" or "prompt is too long" in said.lower():
        return Taken(ended_by="crash", problem="`claude` ran over the end of its model's context")
    ended_by = _class(result, heard, said)
    problem = f"`claude` exited {ended.code}: {_shown(said) or result.get('subtype')}"
    return Taken(ended_by=ended_by, problem=problem, until=_until(heard, said) if ended_by == "quota" else None)


def _class(result: Json, heard: Heard, said: str) -> EndedBy:
    if result.get("stop_reason") == "refusal":
        return "refusal"
    if heard.fault in _BY_FAULT:
        return _BY_FAULT[heard.fault]
    status = result.get("api_error_status")
    if isinstance(status, int):
        if status in _OVERLOADED:
            return "overload"
        if status in _BY_STATUS:
            return _BY_STATUS[status]
    lower = said.lower()
    worded = next((ended_by for words, ended_by in _BY_WORDS if words in lower), None)
    if worded is None and isinstance(status, int):
        return "setup"  # what is left of the fours: something about the request is wrong
    return worded or ("overload" if "api error" in lower else "crash")


def _until(heard: Heard, said: str) -> str | None:
    """Return when a limit ends, where the service or the program told it."""
    epoch = _EPOCH.search(said)
    if heard.until is not None or epoch:
        return clock.stamp(datetime.fromtimestamp(heard.until or float(epoch[1] if epoch else 0), UTC))
    regain = _REGAIN.search(said)
    return f"{regain[1]}T{regain[2]}:00Z" if regain else None


def _shown(said: str) -> str:
    line = " ".join(said.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}..."

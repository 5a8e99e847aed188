"""What a turn of Codex failed of, in Relay's words: by the kind it writes into its session, else by its message.

The events say no more than a sentence (clis.md 3.3). The session file names a kind, which is asked first.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from relay.host import clock, term
from relay.terms import EndedBy, Struct

_KINDS: Final[dict[str, EndedBy]] = {
    "usage_limit_exceeded": "quota",
    "session_budget_exceeded": "quota",
    "unauthorized": "auth",
    "server_overloaded": "overload",
    "internal_server_error": "overload",
    "http_connection_failed": "overload",
    "response_stream_connection_failed": "overload",
    "response_stream_disconnected": "overload",
    "response_too_many_failed_attempts": "overload",
    "cyber_policy": "refusal",
    "sandbox_error": "setup",
}
_STATUS: Final[dict[int, EndedBy]] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "setup",
    408: "overload",
    429: "overload",
}
_SERVER: Final = 500
_MESSAGES: Final[tuple[tuple[str, EndedBy], ...]] = (
    (r"usage limit|quota exceeded|exceeded your current quota|insufficient_quota|billing|out of credits", "quota"),
    (r"context.window|context_length_exceeded|out of room", "crash"),
    (r"max_output_tokens", "no-reply"),
    (r"content_filter|cyber_policy|flagged", "refusal"),
    (r"model .{0,80}(?:not exist|not found|not supported|no longer)|requires a newer version", "setup"),
    (r"not logged in|log ?in again|unauthorized|forbidden|not have access|invalid.api.key|refresh token", "auth"),
    (r"missing environment variable", "auth"),
    (
        r"builder error|invalid_json_schema|unknown feature|error loading config|unknown configuration|invalid value",
        "setup",
    ),
    (
        r"at capacity|overloaded|high demand|rate limit|stream disconnected|error sending request|timed? ?out",
        "overload",
    ),
    (r"invalid_request_error|unexpected status 400", "setup"),
    (r"connection (?:failed|refused|closed|reset)|idle timeout|too many requests", "overload"),
)
_STARTS: Final = (
    r"error: unexpected argument|^usage: |error loading config|unknown feature flag|failed to read output schema"
)
_OFTEN: Final = 400


class Fault(Struct, frozen=True, kw_only=True):
    """What a turn ended by, in words, and until when nothing will do, where that was told."""

    ended_by: EndedBy
    problem: str
    until: str | None = None


def fault(message: str, kind: Any = None, *, resets_at: float | None = None) -> Fault:  # noqa: ANN401 - JSON
    """Name what a turn failed of. `kind` is `codex_error_info`; `resets_at` is in seconds since 1970."""
    said = _plain(message)
    ended_by = _named(f"{said} {message}" if message.lstrip().startswith("{") else said, kind)
    until = None
    if ended_by == "quota":
        until = clock.stamp(datetime.fromtimestamp(resets_at, UTC)) if resets_at else _told(said)
    over = re.search(_MESSAGES[1][0], f"{said} {kind}", re.IGNORECASE)
    problem = "ran over the end of its model's context" if over else said
    return Fault(ended_by=ended_by, problem=problem[:_OFTEN] or "failed without a word", until=until)


def stopped(code: int, said: str) -> Fault:
    """Name what a program ended by that said of no turn how it went: what stands last in its plain output."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and "<unknown>" not in line]
    errors = [line for line in lines if re.match(r"(?i)error\b|.*\bERROR\b", line)] or lines[-1:]
    words = _plain(errors[0] if errors else "")
    if code < 0 or code > 128:  # noqa: PLR2004  as a shell says it
        return Fault(ended_by="crash", problem=f"ended by signal {-code if code < 0 else code - 128}")
    if code == 2 or re.search(_STARTS, said, re.IGNORECASE | re.MULTILINE):  # noqa: PLR2004
        return Fault(ended_by="setup", problem=words[:_OFTEN] or f"exited {code}")
    named = fault(words)
    return Fault(ended_by=named.ended_by, problem=f"exited {code}: {named.problem}"[:_OFTEN], until=named.until)


def _named(said: str, kind: Any) -> EndedBy:  # noqa: ANN401 - JSON
    """Return the class of a failure: by a status, by the kind, by the words, in this order."""
    name, detail = next(iter(kind.items()), ("", None)) if isinstance(kind, dict) else (kind, None)
    status = detail.get("http_status_code") if isinstance(detail, dict) else None
    if status is None and (found := re.search(r"(?:unexpected|last) status:? (\d{3})", said)):
        status = int(found[1])
    by_words = next((ended for pattern, ended in _MESSAGES if re.search(pattern, said, re.IGNORECASE)), None)
    if by_words in {"quota", "setup"}:  # a 403 or 404 may say more than its number
        return by_words
    if isinstance(status, int):
        return _STATUS.get(status, "overload" if status >= _SERVER else by_words or "crash")
    return _KINDS.get(str(name)) or by_words or "crash"


def _plain(message: str) -> str:
    """Return a message in one line; some are the JSON that a service answered with."""
    found = re.search(r'"message":\s*"((?:[^"\\]|\\.)*)"', message) if message.lstrip().startswith("{") else None
    return " ".join(term.plain(found[1].replace('\\"', '"') if found else message).split())


def _told(said: str) -> str | None:
    """Return when a limit ends by its sentence: `try again at 2:47 AM`, or `at Dec 3rd, 2026 2:47 AM`; local time."""
    found = re.search(r"try again at (?:(\w{3}) (\d{1,2})\w\w, (\d{4}) )?(\d{1,2}):(\d\d) ([AP]M)", said)
    if found is None:
        return None
    month, day, year, hour, minute, half = found.groups()
    now = clock.now().astimezone()
    at = now.replace(hour=int(hour) % 12 + 12 * (half == "PM"), minute=int(minute), second=0, microsecond=0)
    if month:
        try:
            named = datetime.strptime(f"{month} {day} {year}", "%b %d %Y")  # noqa: DTZ007  only its date is used
            at = at.replace(year=named.year, month=named.month, day=named.day)
        except ValueError:
            return None
    elif at <= now:
        at += timedelta(days=1)
    return clock.stamp(at + timedelta(minutes=1))

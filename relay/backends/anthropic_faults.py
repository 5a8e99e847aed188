"""What Anthropic's service says instead of an answer, sorted by what Relay does about it.

By the type of the error, then by its words (a low balance and a long prompt come as invalid requests), then by the
status: https://docs.claude.com/en/api/errors, and the headers of https://docs.claude.com/en/api/rate-limits.
"""

import re
from collections.abc import Mapping
from typing import Final

from relay.backends import resets
from relay.backends.talk import Fault, FaultKind

_WORDS: Final[tuple[tuple[FaultKind, str], ...]] = (
    ("context", r"prompt is too long|exceeds? (?:the )?(?:model's )?(?:maximum )?context|request_too_large"),
    ("quota", r"credit balance is too low|reached your specified .*usage limits|usage limit"),
    ("refusal", r"content filtering policy|usage policy"),
)
_TYPES: Final[dict[str, FaultKind]] = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "billing_error": "quota",
    "rate_limit_error": "rate",
    "overloaded_error": "overload",
    "api_error": "overload",
    "timeout_error": "overload",
    "request_too_large": "context",
    "not_found_error": "bug",
    "invalid_request_error": "bug",
}
_STATUS: Final[dict[int, FaultKind]] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "overload",
    409: "overload",
    413: "context",
    429: "rate",
}
_SERVER: Final = 500
_REGAIN: Final = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC")
_RESET: Final = re.compile(r"anthropic-ratelimit-([\w-]+)-reset")


def of(error: Exception, host: str) -> Fault:
    """Return the fault that an exception of the SDK, or of what carries its bytes, is."""
    from anthropic import APIConnectionError, APIStatusError, APITimeoutError

    if isinstance(error, APIStatusError):
        return told(error.body, host, error.status_code, error.response.headers)
    if isinstance(error, APITimeoutError) or "Timeout" in type(error).__name__:
        return Fault("overload", f"`{host}` said nothing for too long")
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    why = " ".join(str(cause).split()) or type(cause).__name__
    how = "cannot be reached, or hung up" if isinstance(error, APIConnectionError) else "broke off"
    return Fault("overload", f"`{host}` {how}: {why}")


def told(body: object, host: str, status: int | None, headers: Mapping[str, str] = {}) -> Fault:
    """Return the fault that the service names; `body` is its document, or the data of an error in a stream."""
    error = body.get("error") if isinstance(body, dict) else None
    said: Mapping[str, object] = error if isinstance(error, dict) else {}
    sort, words = str(said.get("type") or ""), " ".join(str(said.get("message") or "").split())
    kind = _kind(sort, words, status)
    after, until = _after(headers), None
    if kind == "rate" and (end := headers.get("anthropic-ratelimit-unified-reset", "")):
        if headers.get("anthropic-ratelimit-unified-status") == "rejected":
            kind, until = "quota", resets.stamp(end)
    elif kind == "quota" and (found := _REGAIN.search(words)):
        until = resets.stamp(f"{found[1]}T{found[2]}:00+00:00")
    if not words and status is not None and 300 <= status < 400:  # noqa: PLR2004
        words = f"it sends one elsewhere, to `{headers.get('location', '')}`, and no conversation is sent there"
    named = " ".join(filter(None, ("" if status is None else str(status), sort)))
    problem = f"`{host}` answered {named or 'with an error'}: {words or 'it does not say why'}"
    return Fault(kind, problem, after=after if kind in {"rate", "overload"} else None, until=until)


def _kind(sort: str, words: str, status: int | None) -> FaultKind:
    by_type = _TYPES.get(sort)
    if by_type not in {"auth", "rate"}:
        for kind, pattern in _WORDS:
            if re.search(pattern, words, re.IGNORECASE):
                return kind
    if by_type is not None:
        return by_type
    if status is None or status >= _SERVER:
        return "overload"
    return _STATUS.get(status, "bug")


def _after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait as the headers say: how long, or when the limit that is used up begins anew."""
    if value := headers.get("retry-after", ""):
        return resets.wait(value) if re.fullmatch(r"[0-9.]+", value) else resets.left(value)
    ends = [
        resets.left(when)
        for name, when in headers.items()
        if (found := _RESET.fullmatch(name.lower())) and headers.get(f"anthropic-ratelimit-{found[1]}-remaining") == "0"
    ]
    return max((end for end in ends if end is not None), default=None)

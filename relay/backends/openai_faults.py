"""What a service that speaks OpenAI's protocols says instead of an answer, sorted by what Relay does about it.

The kinds are told apart by what the service calls the error, then by its words (local servers know few codes), then by
the status: https://platform.openai.com/docs/guides/error-codes; llama.cpp and vLLM as their own servers answer.
"""

import re
from collections.abc import Generator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from relay.backends import resets
from relay.backends.openai_service import Service
from relay.backends.talk import Fault, FaultKind
from relay.backends.wire import DONE, Wire

if TYPE_CHECKING:
    from openai import APIError

_LENGTH: Final = 600
_SHORT: Final = 60
_CODES: Final[dict[str, FaultKind]] = {
    "context_length_exceeded": "context",
    "exceed_context_size_error": "context",  # llama.cpp
    "string_above_max_length": "context",
    "insufficient_quota": "quota",
    "usage_limit_reached": "quota",
    "usage_not_included": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "insufficient_credits": "quota",
    "invalid_api_key": "auth",
    "account_deactivated": "auth",
    "content_filter": "refusal",
    "content_policy_violation": "refusal",
    "bio_policy": "refusal",
    "cyber_policy": "refusal",
    "misalignment_policy_violation": "refusal",
    "rate_limit_exceeded": "rate",
    "server_is_overloaded": "overload",
    "overloaded_error": "overload",
    "server_error": "overload",
    "model_not_found": "bug",
    "invalid_request_error": "bug",
}
_LOOSE: Final = frozenset({"bug", "overload", "rate"})
"""Kinds that services use for whatever happens: words may say more."""
_WORDS: Final[tuple[tuple[FaultKind, str], ...]] = (
    ("bug", r"requires? --jinja|--enable-auto-tool-choice|does not support tools"),
    ("context", r"maximum context length|longer than the maximum model length|context the overflows"),
    ("context", r"exceeds? (?:the |your |this )?(?:\w+ )?context (?:size|length|window)"),
    ("context", r"context (?:size|length|window) (?:has been |was |is )?exceeded"),
    ("context", r"(?:prompt|input|request) (?:is |was )?too (?:long|large)"),
    ("quota", r"exceeded your current quota|insufficient (?:balance|credits?|funds|quota)|usage limit"),
    ("refusal", r"usage polic|was flagged|content management policy"),
    ("auth", r"(?:incorrect|invalid) api key|api key not valid"),
)
_STATUS: Final[dict[int, FaultKind]] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "overload",
    409: "overload",
    413: "context",
    425: "overload",
    429: "rate",
}
_SERVER: Final = 500
_MASKED: Final = r"\S*\*{3,}\S*|\bsk-\S+"
"""A key as services show it, by its ends."""
_AGAIN: Final = r"(?i)(?:try again|retry|resets?|wait) (?:in|after|for) ((?:[\d.]+ ?(?:ms|[dhms])[a-z]* ?)+)"
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def events(wire: Wire, path: str, request: Mapping[str, Any], seconds: float, service: Service) -> Generator[Any]:
    """Send a request and yield the events of its answer, an object each, and `DONE`.

    What goes wrong with either is raised as a `Fault`, and so is an error in place of an event.
    """
    with closing(wire.events(path, request, seconds, lambda error: of(error, service))) as found:
        for event in found:
            if event is not DONE:
                if not isinstance(event, dict):
                    raise odd(f"an event that is no object, `{str(event)[:_SHORT]}`", service)
                if event.get("error"):
                    raise told(event["error"], service, None)
            yield event


def odd(what: object, service: Service) -> Fault:
    """Return the fault that whole JSON is which is no event of the protocol."""
    return Fault("overload", f"`{service.host}` sent what is no answer: {what}")


def of(error: Exception, service: Service) -> Fault:
    """Return the fault that an exception of the SDK is; none of its traceback, which has the request's headers, stays.

    What is no exception of the SDK's came of what carries the bytes, or of an event that was no whole JSON.
    """
    from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

    host = service.host
    if isinstance(error, APITimeoutError) or "Timeout" in type(error).__name__:
        return Fault("overload", f"`{host}` said nothing for too long")
    if isinstance(error, APIConnectionError):
        return Fault("overload", f"`{host}` cannot be reached, or hung up: {_cause(error)}")
    if isinstance(error, APIStatusError):
        return told(error.body, service, error.status_code, error.response.headers, _text(error))
    if isinstance(error, APIError):
        return told(error.body, service, None, {}, error.message)
    if isinstance(error, ValueError | RecursionError):
        return Fault("overload", f"`{host}` broke off in the middle of an event")
    return Fault("overload", f"`{host}` broke off: {_cause(error)}")


def told(body: object, service: Service, status: int | None, headers: Mapping[str, str] = {}, text: str = "") -> Fault:
    """Return the fault that the service names; `body` is its error object, `text` what it says where that has none."""
    said: Mapping[str, Any] = body if isinstance(body, dict) else {"message": body if isinstance(body, str) else None}
    code, sort = (str(said.get(name) or "") for name in ("code", "type"))
    words = next((str(said[name]) for name in ("message", "detail") if said.get(name)), text)
    kind = _kind(code, sort, words, status)
    after = _after(headers, words)
    until = _until(said, headers) if kind in {"rate", "quota"} else None
    if kind == "quota" and until is None and after:
        until = resets.after(after)
    if status is not None and 300 <= status < 400:  # noqa: PLR2004
        words = f"it sends one elsewhere, to `{headers.get('location', '')}`, and no conversation is sent there"
    problem = _problem(kind, code or sort, words, status, service)
    return Fault(kind, problem, after=after if kind in {"rate", "overload"} else None, until=until)


def _kind(code: str, sort: str, words: str, status: int | None) -> FaultKind:
    lowered = words.lower()
    by_code = _CODES.get(code, _CODES.get(sort))
    if by_code is not None and by_code not in _LOOSE:
        return by_code
    for kind, pattern in _WORDS:
        if re.search(pattern, lowered):
            return kind
    by_status = None if status is None else _STATUS.get(status, "overload" if status >= _SERVER else "bug")
    return by_status or by_code or "overload"


def _problem(kind: FaultKind, code: str, words: str, status: int | None, service: Service) -> str:
    if kind == "auth" and not service.variable:
        return f"`{service.host}` wants a key: name its variable by `key` in `[agents.{service.agent}]`"
    named = " ".join(filter(None, ("" if status is None else str(status), code if code != str(status) else "")))
    said = re.sub(_MASKED, "[redacted]", " ".join(words.split()))[:_LENGTH]
    hint = ""
    if status == 404 and not service.own and not re.search(r"/v\d", service.url):  # noqa: PLR2004
        hint = "; most servers want `/v1` at the end of `base_url`"
    return f"`{service.host}` answered {named or 'with an error'}: {said or 'it does not say why'}{hint}"


def _text(error: "APIError") -> str:
    """Return the words of an error without an error object; of a page for people, none."""
    return "" if "<html" in error.message.lower() or error.body is not None else error.message


def _cause(error: Exception) -> str:
    """Return what lies below an error of a connection: the SDK itself says only that there is one."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return " ".join(str(cause).split())[:_LENGTH] or type(cause).__name__


def _after(headers: Mapping[str, str], words: str) -> float | None:
    """Return the seconds to wait, as the headers say them, or else the words."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        number = re.fullmatch(r"[0-9]+(\.[0-9]+)?", value)
        found = resets.wait(float(value) * unit) if number else resets.left(value) if value else None
        if found is not None:
            return found
    again = re.search(_AGAIN, words)
    said = seconds(again[1]) if again else None
    return None if said is None else resets.wait(said)


def seconds(text: str) -> float | None:
    """Return the length of `1.5s`, `250ms`, `6m0s` or `2 hours`; None where a text has none."""
    parts = re.findall(r"(\d+(?:\.\d+)?) ?(ms|[dhms])", text.lower())
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else None


def _until(said: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """Return when a quota is there again, where the error object or a header says it."""
    at, within, reset = said.get("resets_at"), said.get("resets_in_seconds"), headers.get("x-ratelimit-reset", "")
    if at is None and re.fullmatch(r"\d{10}(\d{3})?", reset):
        at = int(reset[:10])  # OpenRouter: a moment, in milliseconds
    return resets.stamp(at) or resets.after(within)

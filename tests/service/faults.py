"""What goes wrong before an answer begins: status, headers and body as each vendor words it."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from tests.service.conversation import Json
from tests.service.script import Fault

HOUR: Final = 3600.0


class Failure(NamedTuple):
    """An answer that is an error."""

    status: int
    body: Json
    headers: dict[str, str]


class Wording(NamedTuple):
    """How a vendor says one kind of fault: `type` is Anthropic's `error.type`, OpenAI's `error.code`."""

    status: int
    type: str
    message: str
    family: str = "invalid_request_error"
    """OpenAI's `error.type`."""


_LOW = (
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase "
    "credits."
)
ANTHROPIC: Final[Mapping[str, Wording]] = {
    "rate_limit": Wording(
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50,000 input tokens per minute. Please try again "
        "later.",
    ),
    "quota": Wording(
        429, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."
    ),
    "credit": Wording(400, "invalid_request_error", _LOW),
    "spend": Wording(
        400,
        "invalid_request_error",
        "You have reached your specified API usage limits. You will regain access on {day} at {hour} UTC.",
    ),
    "auth": Wording(401, "authentication_error", "invalid x-api-key"),
    "forbidden": Wording(
        403, "permission_error", "Your API key does not have permission to use the specified resource."
    ),
    "not_found": Wording(404, "not_found_error", "model: {model}"),
    "overloaded": Wording(529, "overloaded_error", "Overloaded"),
    "server": Wording(500, "api_error", "Internal server error"),
    "context": Wording(400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
    "bad_request": Wording(400, "invalid_request_error", "messages.0.content: Input should be a valid list"),
    "status": Wording(500, "api_error", "An unexpected error has occurred"),
}

_QUOTA = Wording(
    429,
    "insufficient_quota",
    "You exceeded your current quota, please check your plan and billing details.",
    "insufficient_quota",
)
OPENAI: Final[Mapping[str, Wording]] = {
    "rate_limit": Wording(
        429,
        "rate_limit_exceeded",
        "Rate limit reached for {model} in organization org-relay on tokens per min (TPM): Limit 30000, Used 29112, "
        "Requested 2410. Please try again in {wait}s.",
        "tokens",
    ),
    "quota": _QUOTA,
    "credit": _QUOTA,
    "spend": Wording(429, "billing_hard_limit_reached", "Billing hard limit has been reached", "insufficient_quota"),
    "auth": Wording(401, "invalid_api_key", "Incorrect API key provided: {key}."),
    "forbidden": Wording(403, "model_not_found", "Project `proj_relay` does not have access to model `{model}`"),
    "not_found": Wording(404, "model_not_found", "The model `{model}` does not exist or you do not have access to it."),
    "overloaded": Wording(
        503,
        "server_is_overloaded",
        "Our servers are currently overloaded. Please try again later.",
        "service_unavailable_error",
    ),
    "server": Wording(
        500,
        "server_error",
        "The server had an error while processing your request. Sorry about that!",
        "server_error",
    ),
    "context": Wording(
        400,
        "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    "bad_request": Wording(400, "invalid_value", "Invalid value: 'input'. Please check your request and try again."),
    "status": Wording(500, "server_error", "An unexpected error has occurred", "server_error"),
}
_CHAT_CONTEXT = (
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130412 tokens. Please "
    "reduce the length of the messages."
)


def refusal(vendor: str, message: str, status: int = 400) -> Failure:
    """Return the error for a request that is wrong in itself."""
    kind = {401: "auth", 404: "not_found"}.get(status, "bad_request")
    return failure(vendor, Fault("status", status=status, type=_WORDS[vendor][kind].type, message=message), {}, "")


def failure(vendor: str, fault: Fault, headers: Mapping[str, str], model: str, *, chat: bool = False) -> Failure:
    """Word a fault as a vendor does."""
    words = _WORDS[vendor][fault.kind]
    until = fault.resets_at or time.time() + HOUR
    end = datetime.fromtimestamp(until, UTC)
    message = fault.message or (_CHAT_CONTEXT if chat and fault.kind == "context" else words.message)
    if fault.message is None:
        key = _masked(headers.get("authorization", "").removeprefix("Bearer "))
        wait = fault.retry_after if fault.retry_after is not None else 1.5
        message = message.format(model=model, key=key, wait=wait, day=f"{end:%Y-%m-%d}", hour=f"{end:%H:%M}")
    status, more = fault.status or words.status, _headers(vendor, fault, end)
    kind = fault.type or words.type
    if vendor == "anthropic":
        error: Json = {"type": kind, "message": message}
        return Failure(status, {"type": "error", "error": error, "request_id": "req_fault"}, more)
    error = {"message": message, "type": words.family, "param": None, "code": kind}
    if fault.kind == "context":
        error["param"] = "messages" if chat else "input"
    if fault.kind == "quota" and fault.resets_at is not None:
        seconds = max(0, round(until - time.time()))
        error = {"type": "usage_limit_reached", "message": fault.message or "The usage limit has been reached"}
        error |= {"plan_type": "plus", "resets_at": round(until), "resets_in_seconds": seconds}
    return Failure(status, {"error": error}, more)


def _headers(vendor: str, fault: Fault, end: datetime) -> dict[str, str]:
    """Return what the headers of a limit say about its end."""
    headers: dict[str, str] = {}
    if fault.retry_after is not None:
        headers["retry-after"] = f"{fault.retry_after:g}"
    if vendor == "anthropic" and fault.kind in {"rate_limit", "quota"}:
        what = "requests" if fault.kind == "quota" else "input-tokens"
        stem = f"anthropic-ratelimit-{what}"
        headers |= {f"{stem}-limit": "50000", f"{stem}-remaining": "0", f"{stem}-reset": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
    if vendor == "anthropic" and fault.kind == "quota":
        stem = "anthropic-ratelimit-unified"
        headers |= {f"{stem}-status": "rejected", f"{stem}-reset": str(round(end.timestamp()))}
        headers |= {f"{stem}-representative-claim": "five_hour"}
    if vendor == "openai" and fault.kind == "rate_limit":
        headers |= {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-limit-tokens": "30000"}
    return headers | dict(fault.headers)


def _masked(key: str) -> str:
    """Show a key as OpenAI does: the ends of it."""
    return f"{key[:8]}{'*' * max(0, len(key) - 12)}{key[-4:]}"


_WORDS: Final = {"anthropic": ANTHROPIC, "openai": OPENAI}

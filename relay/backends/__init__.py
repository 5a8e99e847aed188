"""Who can take a leg: one literal table of names; a backend is imported when a leg asks for it."""

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from relay.errors import RelayError

if TYPE_CHECKING:
    from relay.backends.base import Backend

BACKENDS: Final = {
    "anthropic": "relay.backends.anthropic",
    "claude-code": "relay.backends.claude_code",
    "codex": "relay.backends.codex",
    "command": "relay.backends.command",
    "human": "relay.backends.human",
    "openai": "relay.backends.openai",
    "scripted": "relay.backends.scripted",
}
"""Every backend is a module that keeps the Protocol of `relay.backends.base`; nothing else knows one by name."""


def named(name: str) -> "Backend":
    """Return the backend of that name; an unknown one is a `RelayError` that says which ones there are."""
    if name not in BACKENDS:
        near = get_close_matches(name, BACKENDS, n=1)
        known = ", ".join(f"`{known}`" for known in BACKENDS)
        hint = f"did you mean `{near[0]}`?" if near else f"the backends are {known}"
        raise RelayError(f"there is no backend `{name}`", hint=hint)
    return cast("Backend", import_module(BACKENDS[name]))

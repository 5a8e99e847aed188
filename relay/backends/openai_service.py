"""Where a service that speaks OpenAI's protocols is, which key it gets, and the client that reaches it.

`base_url` of relay.toml alone says where; `OPENAI_BASE_URL` is not read, so that a plan says where its agents were.
"""

import os
from importlib import metadata
from typing import Final
from urllib.parse import urlsplit

from relay.backends.wire import Wire, near
from relay.errors import Exit, RelayError
from relay.terms import Agent, Struct

HOME: Final = "https://api.openai.com/v1"
KEY: Final = "OPENAI_API_KEY"
MODEL: Final = "gpt-6-sol"
"""The model of an agent that names none; only OpenAI itself has it."""
NO_KEY: Final = "none"
"""What a server of one's own gets where no key is named: it ignores it, but the SDK sends nothing without one."""
_STRICT: Final = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs", "enum", "const"),
        *("title", "description", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum"),
        *("exclusiveMaximum", "minItems", "maxItems"),
    }
)
"""The words that a schema may have in strict mode."""


class Service(Struct, frozen=True, kw_only=True):
    """A service: its address, the model asked for, the variable of its key ("" for a server that needs none)."""

    url: str
    model: str
    variable: str
    agent: str

    @property
    def host(self) -> str:
        """Name it, for a message."""
        return urlsplit(self.url).netloc.rpartition("@")[2] or self.url

    @property
    def own(self) -> bool:
        """Tell whether it is OpenAI's, in any region, also as Azure runs it."""
        name = urlsplit(self.url).hostname or ""
        return f".{name}".endswith((".api.openai.com", ".openai.azure.com"))

    def key(self) -> str:
        """Return the key, or "" where its variable is not set."""
        return os.environ.get(self.variable, "").strip() if self.variable else NO_KEY

    def secrets(self) -> dict[str, str]:
        """Return the key by its variable, for whoever takes it out of a text."""
        return {self.variable: self.key()} if self.variable else {}


def of(agent: Agent) -> Service:
    """Return the service of an agent; `RelayError` (exit 4) where relay.toml does not say enough of it."""
    url = (agent.base_url or HOME).rstrip("/")
    parts = urlsplit(url)
    line = f"look at `[agents.{agent.name}]` in relay.toml"
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        problem = f"`base_url` of agent `{agent.name}` is no address: `{url}`"
        raise RelayError(problem, hint=f'{line}: base_url = "http://127.0.0.1:11434/v1"', exit_code=Exit.HUMAN)
    if agent.base_url and not agent.model:
        raise RelayError(f"agent `{agent.name}` names no model", hint=f"{line}: model = ...", exit_code=Exit.HUMAN)
    variable = agent.key or ("" if near(url) else KEY)
    return Service(url=url, model=agent.model or MODEL, variable=variable, agent=agent.name)


def ready(agent: Agent) -> Service:
    """Return the service of an agent whose key is there too; `RelayError` (exit 4) names the variable otherwise."""
    service = of(agent)
    key = service.key()
    if not key:
        hint = f"export {service.variable}=..., or name another variable by `key` in `[agents.{agent.name}]`"
        raise RelayError(f"`{service.variable}` is not set", hint=hint, exit_code=Exit.HUMAN)
    if not (key.isascii() and key.isprintable() and " " not in key):
        problem = f"`{service.variable}` holds what can be no key: it has spaces or characters that no header may have"
        raise RelayError(problem, hint=f"export {service.variable}=... again", exit_code=Exit.HUMAN)
    return service


def found(agent: Agent) -> str:
    """Say where the key is found, or that it is not; never its value."""
    service = of(agent)
    if not service.variable:
        return "none needed"
    return service.variable if service.key() else f"{service.variable} is not set"


def version() -> str:
    """Return the version of the SDK, without importing it."""
    return f"openai {metadata.version('openai')}"


def wire(service: Service) -> Wire:
    """Return what a service is reached by, for `with`."""
    import openai

    return Wire(openai, service.key(), service.url)


def fits_strictly(schema: object) -> bool:
    """Tell whether the service would take a schema in strict mode, where the model cannot but keep it.

    There each object says all its properties required and knows no others, so maps and defaults do not fit, and few
    words are known (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas).
    """
    if isinstance(schema, list):
        return all(map(fits_strictly, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties") or {}
    open_ended = schema.get("additionalProperties") is not False or set(schema.get("required") or ()) != set(properties)
    if not schema.keys() <= _STRICT or (schema.get("type") == "object" and open_ended):
        return False
    inner = [*properties.values(), *(schema.get("$defs") or {}).values()]
    return all(map(fits_strictly, [*inner, schema.get("items"), schema.get("anyOf")]))

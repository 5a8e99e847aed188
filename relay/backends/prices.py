"""What a turn costs, and how large a model's window is, by the list of prices that ships with genai-prices."""

from decimal import ROUND_HALF_UP
from functools import cache
from typing import TYPE_CHECKING, Final

from relay.backends.talk import Turn
from relay.terms import Agent

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

WINDOW: Final = 128_000
"""Tokens of the window of a model that nobody knows; `window` of the agent in relay.toml says better."""


def cost(
    provider: str, model: str, turn: Turn, own: tuple[float, float] | None = None, *, asked: str = ""
) -> int | None:
    """Return what a turn cost in millionths of a dollar, by the model that took it; None where no price is known.

    `own` is what the agent's line says: dollars for a million tokens in and out, whatever a cache had. `asked` is the
    model that was asked, whose price counts where a gateway reports one by a name that nobody knows.
    """
    if own is not None:
        return round(turn.usage.input * own[0] + turn.usage.output * own[1])
    import genai_prices  # 0.2 s

    if asked and _model(provider, model) is None:
        model = asked
    try:
        usage = genai_prices.Usage(
            input_tokens=turn.usage.input,
            cache_read_tokens=turn.usage.cached,
            cache_write_tokens=turn.written,
            output_tokens=turn.usage.output,
        )
        price = genai_prices.calc_price(usage, model, provider_id=provider)
    except (LookupError, ValueError):
        return None
    return int((price.total_price * 1_000_000).to_integral_value(ROUND_HALF_UP))


def known(provider: str, agent: Agent, model: str) -> bool:
    """Tell whether the price of a model is known."""
    return agent.price is not None or _model(provider, model) is not None


def missing(agent: Agent) -> str:
    """Name the model of an agent whose legs a bound on money would end, since nobody knows its price; "" for others."""
    provider = {"anthropic": "anthropic", "openai": "openai", "codex": "openai"}.get(agent.backend)
    return "" if provider is None or not agent.model or known(provider, agent, agent.model) else agent.model


def window(provider: str, agent: Agent, model: str) -> int:
    """Return the window of a model in tokens: what the agent says, else what is known, else `WINDOW`."""
    if agent.window is not None:
        return agent.window
    found = _model(provider, model)
    return (found.context_window if found else None) or WINDOW


@cache
def _model(provider: str, model: str) -> "ModelInfo | None":
    import genai_prices

    try:
        return genai_prices.calc_price(genai_prices.Usage(), model, provider_id=provider).model
    except (LookupError, ValueError):
        return None

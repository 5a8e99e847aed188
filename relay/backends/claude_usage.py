"""What Claude Code says that was used: by each message, by a session's file, and by the result of a run.

A result counts exactly, and prices it; a message does not yet tell all that came out of it, so what is added up from
messages is a lower bound.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from relay.backends import engine, prices
from relay.backends.talk import Turn
from relay.terms import Usage

Json = Mapping[str, Any]
SYNTHETIC: Final = "<synthetic>"
"""The model of a message that the program wrote itself, to say what failed."""
_PROVIDER: Final = "anthropic"


def used(fields: object) -> Usage:
    """Return tokens as Relay counts them: `input` is all that went in, whether a cache had it or not."""
    cached = _count(fields, "cache_read_input_tokens")
    fresh = _count(fields, "input_tokens") + _count(fields, "cache_creation_input_tokens")
    return Usage(input=fresh + cached, cached=cached, output=_count(fields, "output_tokens"))


def turn(message: Json) -> Turn:
    """Return what one message of the model used, so far."""
    fields = message.get("usage")
    usage = used(fields)
    return Turn(
        stop="calls",
        model=str(message.get("model")),
        usage=usage,
        context=usage.input + usage.output,
        written=_count(fields, "cache_creation_input_tokens"),
        id=str(message.get("id")),
    )


def recorded(lines: bytes) -> list[Turn]:
    """Return what a session used by its own file, which lacks at most the turn that was cut off."""
    found: dict[str, Turn] = {}

    def line(data: bytes) -> None:
        entry = engine.event(data) or {}
        message = entry.get("message")
        if entry.get("type") == "assistant" and isinstance(message, dict) and message.get("model") != SYNTHETIC:
            one = turn(message)
            found[one.id] = one  # the last line of a message is the one that counts

    reader = engine.Lines(line)
    reader.feed(lines)
    reader.end()
    return list(found.values())


def total(parts: Iterable[Usage]) -> Usage:
    """Add up tokens."""
    listed = list(parts)
    return Usage(
        input=sum(part.input for part in listed),
        cached=sum(part.cached for part in listed),
        output=sum(part.output for part in listed),
        turns=len(listed),
        complete=False,
    )


def price(turns: Iterable[Turn]) -> int | None:
    """Return what turns cost by the list, in millionths of a dollar; None where no price is known."""
    costs = [prices.cost(_PROVIDER, one.model, one) for one in turns]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def cost(result: Json) -> int | None:
    """Return what a result says it cost, in millionths of a dollar; None where the program only guesses."""
    dollars = result.get("total_cost_usd")
    if not isinstance(dollars, int | float) or any(model.get("costBasis") == "unknown" for model in _models(result)):
        return None
    return round(dollars * 1_000_000)


def tokens(result: Json) -> int:
    """Return all tokens that went in by the table of models: some versions count it over the whole session."""
    names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return sum(_count(model, name) for model in _models(result) for name in names)


def denied(result: Json) -> list[str]:
    """Return the names of the tools that the program refused to its model, once for each time."""
    listed = result.get("permission_denials")
    calls = listed if isinstance(listed, list) else []
    return [str(call.get("tool_name")) for call in calls if isinstance(call, dict)]


def _models(result: Json) -> list[Json]:
    table = result.get("modelUsage")
    return [model for model in table.values() if isinstance(model, dict)] if isinstance(table, dict) else []


def _count(fields: object, name: str) -> int:
    value = fields.get(name) if isinstance(fields, dict) else 0
    return value if isinstance(value, int) and value >= 0 else 0

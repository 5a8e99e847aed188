"""Whether a judge is independent of those whose work it judges: by vendor, and by the family of the model."""

import re
from collections.abc import Sequence
from typing import Final

from relay.terms import MECHANICAL, Agent, Independence, Phase, Plan, Receipt

FAMILIES: Final[dict[str, str]] = {
    "anthropic": r"claude|opus|sonnet|haiku",
    "openai": r"gpt|codex|chatgpt|davinci|o[1-9]",
    "google": r"gemini|gemma|palm",
    "meta": r"llama",
    "mistral": r"mistral|mixtral|codestral|devstral|magistral",
    "alibaba": r"qwen|qwq",
    "deepseek": r"deepseek",
    "xai": r"grok",
    "moonshot": r"kimi|moonshot",
    "zhipu": r"glm|chatglm",
    "microsoft": r"phi",
    "cohere": r"command-[ar]",
    "amazon": r"nova|titan",
}
"""Who made a model, by how its name begins, alone or after a gateway's `vendor/`, `region.vendor.` or `prefix-`."""


def family(model: str | None) -> str | None:
    """Name who made a model; None where its name does not say."""
    for vendor, names in FAMILIES.items():
        if re.search(rf"(?:^|[/.:_\s-])(?:{names})(?![a-z])", (model or "").lower()):
            return vendor
    return None


def kin(agent: Agent, resolved: str | None) -> frozenset[str]:
    """Return all that an agent counts as: its vendor, and who made the models that were asked for and that answered."""
    names = {agent.vendor, family(agent.model), family(resolved)}
    return frozenset(name for name in names if name and name != MECHANICAL)


def look(
    plan: Plan, receipts: Sequence[Receipt], phase: Phase, resolved: str | None
) -> tuple[Independence | None, str]:
    """Say why a judge is independent of the phase it must differ from, or what speaks against it.

    `resolved` is the model that the service says answered. Every leg of that phase counts whose work still stands.
    """
    if phase.kind != "judge" or phase.differs_from is None:
        return None, ""
    mine = kin(plan.agent(phase.agent), resolved)
    if not mine:
        return "mechanical", ""
    for leg in receipts:
        if leg.phase != phase.differs_from or leg.ended_by == "breach" or leg.agent is None:
            continue
        shared = mine & kin(plan.agent(leg.agent), leg.model)
        if shared and not phase.allow_same_vendor:
            answered = f"`{resolved}` answered" if resolved else f"`{phase.agent}` judges"
            who = f"`{leg.agent}`" + (f" with `{leg.model}`" if leg.model else "")
            return None, f"{answered}, and {who} did `{leg.leg}`: both are of `{min(shared)}`"
        if shared:
            return "allowed", ""
    return "vendor", ""

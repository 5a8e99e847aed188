"""Whose model a name names, and who may judge whom."""

from typing import Any

import msgspec
import pytest

from relay.rules import independence
from relay.terms import Agent, Independence
from tests.receipts import ACCEPTANCE, IMPLEMENT, REVIEW, relay, told, work

NORTH = Agent(name="north", backend="anthropic", vendor="anthropic")
SOUTH = Agent(name="south", backend="openai", vendor="openai", model="best")
LINTER = Agent(name="linter", backend="command", vendor="mechanical")
JUDGES = {agent.name: agent for agent in (NORTH, SOUTH, LINTER)}


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-5-5", "anthropic"),
        ("opus", "anthropic"),
        ("us.anthropic.claude-sonnet-4", "anthropic"),
        ("openrouter/anthropic/claude-sonnet-4", "anthropic"),
        ("Claude-Opus", "anthropic"),
        ("gpt-6-sol", "openai"),
        ("gpt4o", "openai"),
        ("o3-mini", "openai"),
        ("openai/gpt-oss-120b", "openai"),
        ("qwen3-coder", "alibaba"),
        ("meta.llama3-70b", "meta"),
        ("devstral:24b", "mistral"),
        ("gemini-3-pro", "google"),
        ("my-own-model", None),
        ("graphite", None),
        ("foo1", None),
        ("", None),
        (None, None),
    ],
)
def test_a_model_is_known_by_its_name_behind_whatever_gateway(model: str | None, family: str | None) -> None:
    assert independence.family(model) == family


def _look(judge: Agent, resolved: str | None, *, allow: bool = False, **worked: Any) -> tuple[Independence | None, str]:  # noqa: ANN401 - any field
    review = msgspec.structs.replace(REVIEW, agent=judge.name, differs_from="implement", allow_same_vendor=allow)
    implement = msgspec.structs.replace(IMPLEMENT, agent="north")
    plan = relay(implement, review, ACCEPTANCE, agents=(*JUDGES.values(),))
    return independence.look(plan, told(work(agent="north", **worked)), review, resolved)


@pytest.mark.parametrize(
    ("judge", "resolved", "why"),
    [
        (SOUTH, "gpt-6", "vendor"),
        (SOUTH, "some-model", "vendor"),
        (SOUTH, None, "vendor"),
        (LINTER, None, "mechanical"),
        (SOUTH, "claude-opus-5-5", None),
        (NORTH, None, None),
        (NORTH, "gpt-6", None),
    ],
)
def test_a_judge_is_independent_by_vendor_and_by_the_model_that_answered(
    judge: Agent, resolved: str | None, why: str | None
) -> None:
    found, against = _look(judge, resolved, model="claude-opus-5-5")
    assert found == why
    assert ("both are of `anthropic`" in against) is (why is None)


def test_the_model_that_did_the_work_counts_not_only_its_vendor() -> None:
    """A worker of another vendor's backend, behind a gateway too."""
    assert _look(SOUTH, "gpt-6", model="openai/gpt-5")[0] is None
    assert "with `openai/gpt-5` did `01-implement`" in _look(SOUTH, "gpt-6", model="openai/gpt-5")[1]


def test_permission_is_recorded_only_where_it_was_needed() -> None:
    assert _look(NORTH, None, allow=True) == ("allowed", "")
    assert _look(SOUTH, None, allow=True) == ("vendor", "")


def test_work_that_is_void_binds_nobody_and_a_phase_that_need_not_differ_is_not_asked() -> None:
    assert _look(NORTH, None, ended_by="breach")[0] == "vendor"
    assert independence.look(relay(), told(work()), ACCEPTANCE, "claude") == (None, "")

"""Prices and windows: whole millionths of a dollar, and what nobody knows is not zero."""

import pytest

from relay.backends import prices
from relay.backends.talk import Turn
from relay.terms import Agent, Usage

ANYBODY = Agent(name="a", backend="anthropic", vendor="anthropic")


def turn(model: str, *, written: int = 0, input: int = 0, cached: int = 0, output: int = 0) -> Turn:  # noqa: A002
    usage = Usage(input=input, cached=cached, output=output)
    return Turn(stop="done", model=model, usage=usage, context=input, written=written)


def test_what_is_read_from_the_cache_and_written_to_it_has_its_own_price() -> None:
    used = turn("claude-opus-5-5", input=1000, cached=500, written=200, output=100)
    assert prices.cost("anthropic", used.model, used) == 300 * 4 + 500 * 0.2 + 200 * 5 + 100 * 20


def test_a_model_is_known_by_its_dated_name_too() -> None:
    assert prices.known("anthropic", ANYBODY, "claude-opus-4-5-20251101")
    assert prices.cost("anthropic", "claude-opus-4-5-20251101", turn("", input=1000, output=10)) == 5250


def test_fractions_of_a_millionth_are_rounded() -> None:
    cost = prices.cost("anthropic", "claude-opus-5-5", turn("", input=3, cached=3))
    assert (cost, type(cost)) == (1, int)


def test_a_model_that_nobody_knows_has_no_price() -> None:
    assert prices.cost("anthropic", "of-my-own-making", turn("", input=1000)) is None
    assert not prices.known("anthropic", ANYBODY, "of-my-own-making")


def test_figures_that_contradict_each_other_have_no_price() -> None:
    assert prices.cost("anthropic", "claude-opus-5-5", turn("", input=10, cached=50)) is None


@pytest.mark.parametrize(
    ("window", "model", "tokens"),
    [(None, "claude-opus-5-5", 1_000_000), (5000, "claude-opus-5-5", 5000), (None, "of-my-own-making", prices.WINDOW)],
)
def test_a_window_is_what_the_agent_says_else_what_is_known_else_a_careful_guess(
    window: int | None, model: str, tokens: int
) -> None:
    agent = Agent(name="a", backend="anthropic", vendor="anthropic", window=window)
    assert prices.window("anthropic", agent, model) == tokens


def test_the_price_that_a_person_names_counts_for_a_model_that_nobody_knows() -> None:
    used = turn("of-my-own-making", input=1000, cached=900, output=100)
    assert prices.cost("openai", used.model, used, (2.0, 10.0)) == 3000
    assert prices.cost("openai", used.model, used, (0, 0)) == 0
    free = Agent(name="a", backend="openai", vendor="mine", price=(0, 0))
    assert prices.known("openai", free, "of-my-own-making")


def test_the_price_of_the_model_that_was_asked_counts_where_nobody_knows_the_one_that_is_named() -> None:
    used = turn("gateway/opus-of-theirs", input=1000, output=100)
    asked = prices.cost("anthropic", "claude-opus-5-5", used)
    assert asked is not None
    assert prices.cost("anthropic", used.model, used, asked="claude-opus-5-5") == asked
    cheaper = prices.cost("anthropic", "claude-haiku-4-5", used, asked="claude-opus-5-5")
    assert cheaper is not None
    assert cheaper < asked


def test_figures_below_nothing_have_no_price() -> None:
    assert prices.cost("anthropic", "claude-opus-5-5", turn("", input=-5)) is None

"""How a leg of the real Codex is ended, by whom, and that nothing is left of it."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from relay.backends import codex as backend
from relay.errors import Interrupted
from relay.host import pids
from relay.terms import Limits, Told
from tests.backends import codex
from tests.backends.codex import DONE, Leg, replied
from tests.backends.lanes import lane
from tests.service import Fault, Script, Usage, do

Opened = Callable[[Script], Leg]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Return what opens a leg on a script."""
    with codex.opened(tmp_path, monkeypatch) as open_:
        yield open_


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (Limits(seconds=100, turns=3), "all 3 turns"),
        (Limits(seconds=100, tokens=30_000), "tokens are used"),
        (Limits(seconds=100, microusd=120_000), "are spent"),
    ],
    ids=["turns", "tokens", "money"],
)
def test_relay_counts_what_codex_does_not_and_ends_it(opened: Opened, limits: Limits, says: str) -> None:
    steps = [
        do.run(f"sleep 0.4; echo {number}").but(usage=Usage(input=10_000, cached=0, output=20)) for number in range(9)
    ]
    leg = opened({"": [*steps, do.reply(DONE)]})
    taken = leg.take(leg.ask(limits=limits))
    assert (taken.ended_by, taken.reply) == ("budget", None), taken
    assert says in (taken.problem or "")
    assert 3 <= taken.usage.turns <= 6
    assert not taken.usage.complete
    assert taken.cost_microusd


def test_a_bound_on_money_needs_a_price(opened: Opened) -> None:
    leg = opened({"": [do.run("sleep 1"), do.run("sleep 60"), do.reply(DONE)]})
    taken = leg.take(leg.ask(limits=Limits(seconds=100, microusd=1_000_000), model="gpt-6.2-sol"))
    assert taken.ended_by == "budget"
    assert "the price of" in (taken.problem or "")


def test_an_answer_that_came_is_not_thrown_away_for_the_last_of_a_bound(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    assert replied(leg.take(leg.ask(limits=Limits(seconds=100, turns=1)))) == DONE


def test_a_leg_that_goes_in_circles_is_ended(opened: Opened) -> None:
    leg = opened({"": [do.run("sleep 0.2; cat calc.py")]})
    taken = leg.take(leg.ask())
    assert taken.ended_by == "stuck", taken
    assert taken.usage.turns < 20


@pytest.mark.parametrize("fault", [Fault("hang", seconds=60), Fault("stall", seconds=60)], ids=["hang", "stall"])
def test_a_service_that_says_nothing_ends_the_leg_as_idle(opened: Opened, fault: Fault) -> None:
    leg = opened({"": [do.read("calc.py"), fault, do.reply(DONE)]})
    taken = leg.take(leg.ask(limits=Limits(seconds=100, idle=2)))
    assert (taken.ended_by, taken.reply) == ("idle", None), taken
    assert (taken.usage.turns, taken.usage.complete) == (1, False)


def test_a_leg_that_takes_too_long_is_ended_with_all_that_it_started(opened: Opened) -> None:
    leg = opened({"": [do.run("sleep 300 & setsid sleep 300 & sleep 300"), do.reply(DONE)]})
    taken = leg.take(leg.ask(limits=Limits(seconds=3)))
    assert (taken.ended_by, taken.reply) == ("timeout", None), taken


def test_nothing_is_left_of_a_leg_that_went_well(opened: Opened) -> None:
    leg = opened({"": [do.run("setsid sleep 300 & sleep 300 & echo begun"), do.reply(DONE)]})
    assert replied(leg.take(leg.ask())) == DONE


def test_a_signal_to_relay_ends_the_program_and_passes_through(opened: Opened) -> None:
    leg = opened({"": [do.run("sleep 300 & setsid sleep 300 & sleep 300"), do.reply(DONE)]})
    asked = leg.ask()

    def told(one: Told) -> None:
        if "command_execution" in one.text:
            raise Interrupted(signal.SIGINT)

    with pytest.raises(Interrupted):
        backend.take(asked, lane(asked, told=told))
    assert pids.survivors(leg.nonce) == []
    assert not (leg.io / "codex").exists()


def test_what_cannot_be_told_ends_the_leg_instead_of_going_on_unseen(opened: Opened) -> None:
    leg = opened({"": [do.run("sleep 300"), do.reply(DONE)]})
    asked = leg.ask()

    def told(one: Told) -> None:
        if one.type == "call":
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        backend.take(asked, lane(asked, told=told))
    assert pids.survivors(leg.nonce) == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda value: value.name)
def test_a_program_that_somebody_ended_has_not_replied(opened: Opened, signum: signal.Signals) -> None:
    leg = opened({"": [do.run("sleep 300"), do.reply(DONE)]})
    asked = leg.ask()
    begun: list[Told] = []

    def told(one: Told) -> None:
        if "command_execution" in one.text and not begun:
            begun.append(one)
            for pid in pids.survivors(leg.nonce):
                with suppress(OSError):
                    if b"exec\0--json" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        os.kill(pid, signum)

    taken = leg.take(asked, told=told)
    assert (taken.ended_by, taken.reply) == ("crash", None), taken
    assert not taken.usage.complete

"""What every backend does: scripted, command, each protocol of an API, and the vendors' own programs.

What one of them cannot do by its nature stands in `UNABLE`, with the reason; it is not skipped.
"""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from relay.backends import BACKENDS
from relay.errors import Interrupted
from relay.host import pids
from relay.terms import Limits, Usage
from tests.backends import conforming
from tests.backends.conforming import SORTS, Leg, Sleepers
from tests.service import Fault, Turn, do, nonce, say
from tests.service import Usage as Used

Opened = Callable[..., Leg]

DONE: Final = {"status": "done", "summary": "made it"}
APPROVE: Final = {"verdict": "approve", "nonce": nonce, "summary": "looked at it"}
FLOOD: Final = 50_000_000
"""Bytes."""
TOLD: Final = 2 << 20
"""Characters of one thing that is told, at most."""

_ONE_PIECE: Final = "it is one program from beginning to end: Relay sees no turns in it"
_A_PERSON: Final = "a person takes the leg, and Relay only reads the reply (tests/backends/test_human.py)"
_SEEN: Final = "its commands are the shell's: in the open nothing holds them, and Relay sees the change afterwards"
UNABLE: Final = {
    ("scripted", "turns"): _ONE_PIECE,
    ("command", "turns"): _ONE_PIECE,
    ("scripted", "walls"): _SEEN,
    ("command", "walls"): _SEEN,
    ("anthropic", "walls"): _SEEN,
    ("responses", "walls"): _SEEN,
    ("chat", "walls"): _SEEN,
    ("chat", "price"): "nobody knows the price of a model of one's own",
}
"""Sort and ability, and why it has none."""
BY_HAND: Final = {"human": _A_PERSON}
"""Backends for which no step can be written down."""

everyone = pytest.mark.parametrize("sort", SORTS)
in_turns = pytest.mark.parametrize("sort", [name for name in SORTS if (name, "turns") not in UNABLE])
in_one_piece = pytest.mark.parametrize("sort", [name for name in SORTS if (name, "turns") in UNABLE])
anywhere = pytest.mark.parametrize("jailed", [False, True], ids=["open", "jailed"])


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Return what makes a leg of a sort."""
    with conforming.opened(tmp_path, monkeypatch) as make:
        yield make


def ended(leg: Leg, sleepers: Sleepers) -> None:
    """Require that nothing of a leg is left."""
    assert sleepers.alive() == []
    assert pids.survivors(leg.nonce) == []
    assert leg.spawned
    assert not any(pids.alive(process) for process in leg.spawned)


def test_no_backend_is_left_out() -> None:
    assert {sort.backend for sort in SORTS.values()} | set(BY_HAND) == set(BACKENDS)
    assert {name for name, _ in UNABLE} <= set(SORTS)


@everyone
@anywhere
def test_a_worker_changes_its_tree_runs_commands_and_replies_and_nothing_of_it_is_left(
    opened: Opened, sort: str, *, jailed: bool
) -> None:
    sleepers = Sleepers(jailed=jailed)
    steps = [do.write("made.txt", "made\n"), do.run("cat made.txt && echo more >> made.txt"), do.run(sleepers.begin)]
    leg = opened(sort, *steps, do.reply(DONE))
    taken = leg.take(jailed=jailed)
    found = leg.replied(taken)
    assert found is not None, taken
    assert found.summary == "made it"
    assert (leg.tree / "made.txt").read_text() == "made\nmore\n"
    assert leg.changed() == ["made.txt"]
    assert "made" in leg.heard()
    ended(leg, sleepers)


@everyone
def test_a_judge_in_a_jail_may_run_everything_and_what_it_writes_vanishes(opened: Opened, sort: str) -> None:
    tries = "echo broken > calc.py; touch planted; git add -A; echo seen: $(cat calc.py)"
    leg = opened(sort, do.run(tries), do.reply(APPROVE), kind="judge")
    taken = leg.take(jailed=True)
    assert leg.replied(taken) is not None, taken
    assert "seen: broken" in leg.heard()
    assert leg.changed() == []


@everyone
def test_a_judge_in_the_open_is_held_by_its_program_or_leaves_what_can_be_seen(opened: Opened, sort: str) -> None:
    leg = opened(sort, do.run("echo broken > calc.py"), do.reply(APPROVE), kind="judge")
    taken = leg.take()
    assert leg.replied(taken) is not None, taken
    assert leg.changed() == (["calc.py"] if (sort, "walls") in UNABLE else [])
    offered = {str(tool.get("name")) for request in leg.service.requests for tool in request.body.get("tools", ())}
    assert {"write", "edit", "Write", "Edit", "NotebookEdit"}.isdisjoint(offered)


@everyone
def test_a_verdict_with_the_nonce_of_another_leg_does_not_count(opened: Opened, sort: str) -> None:
    leg = opened(sort, do.reply({**APPROVE, "nonce": "0" * 32}), kind="judge")
    assert leg.replied(leg.take()) is None


@everyone
def test_a_leg_whose_time_is_over_is_ended_with_all_it_began(opened: Opened, sort: str) -> None:
    sleepers = Sleepers(jailed=False)
    leg = opened(sort, do.run(f"{sleepers.begin} sleep 300"), do.reply(DONE))
    taken = leg.take(Limits(seconds=SORTS[sort].begun))
    assert (taken.ended_by, taken.reply) == ("timeout", None), taken
    ended(leg, sleepers)


@everyone
def test_a_leg_in_which_nothing_happens_is_idle(opened: Opened, sort: str) -> None:
    leg = opened(sort, Fault("hang", seconds=300), do.reply(DONE))
    taken = leg.take(Limits(seconds=100, idle=SORTS[sort].begun / 2))
    assert (taken.ended_by, taken.reply) == ("idle", None), taken
    assert pids.survivors(leg.nonce) == []


@everyone
@anywhere
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # it may come between `open` and `with`
def test_a_signal_to_relay_passes_through_once_the_agent_has_ended(opened: Opened, sort: str, *, jailed: bool) -> None:
    sleepers = Sleepers(jailed=jailed)
    leg = opened(sort, do.run(f"{sleepers.begin} sleep 300"), do.reply(DONE))
    with sleepers.interrupting(), pytest.raises(Interrupted) as caught:
        leg.take(jailed=jailed)
    assert caught.value.signum == signal.SIGINT
    ended(leg, sleepers)


@everyone
def test_a_flood_is_borne_and_told_in_part(opened: Opened, sort: str) -> None:
    leg = opened(sort, do.run(f"yes flood | head -c {FLOOD}; echo after"), do.reply(DONE))
    taken = leg.take()
    assert leg.replied(taken) is not None, taken
    assert all(len(one.text) < TOLD for one in leg.told)
    assert all(request.size < TOLD for request in leg.service.requests)
    assert "flood" in leg.heard()


@in_turns
@pytest.mark.parametrize(
    "limits", [Limits(seconds=100, turns=3), Limits(seconds=100, tokens=30_000)], ids=["turns", "tokens"]
)
def test_a_leg_that_used_what_it_may_is_ended(opened: Opened, sort: str, limits: Limits) -> None:
    used = Used(input=10_000, cached=0, output=20)
    wait = "sleep 0.4; " if SORTS[sort].program else ""  # Relay reads beside it what it used
    steps = [do.run(f"{wait}echo {number}").but(usage=used) for number in range(9)]
    leg = opened(sort, *steps, do.reply(DONE))
    taken = leg.take(limits)
    assert (taken.ended_by, taken.reply) == ("budget", None), taken
    assert 3 <= taken.usage.turns <= 6
    assert taken.usage.input >= 30_000


@in_turns
def test_what_happens_is_told_turn_by_turn_with_what_it_used(opened: Opened, sort: str) -> None:
    used = Used(input=1000, cached=0, output=100)
    look = Turn(say("I look."), do.run("echo $((6 * 7))"), thinking="hm")
    leg = opened(sort, look.but(usage=used), do.reply(DONE).but(usage=used))
    taken = leg.take()
    assert leg.replied(taken) is not None, taken
    told = [one for one in leg.told if one.type in {"text", "call", "result"}]
    assert [one.type for one in told[:3]] == ["text", "call", "result"]
    assert told[0].text == "I look."
    assert "42" in told[2].text
    assert [one.id for one in leg.of("call")] == [one.id for one in leg.of("result")]
    assert [one.turn for one in leg.of("usage")] == [1, 2]
    assert (taken.usage.input, taken.usage.output, taken.usage.turns) == (2000, 200, 2)
    assert taken.usage.complete
    assert (taken.cost_microusd is None) == ((sort, "price") in UNABLE)
    assert taken.cost_microusd != 0
    assert (taken.billing, taken.model) == ("api", SORTS[sort].model)
    assert taken.session
    assert taken.version


@in_one_piece
def test_one_program_from_beginning_to_end_has_no_turns_to_count_or_to_end_it_by(opened: Opened, sort: str) -> None:
    leg = opened(sort, do.run("echo one"), do.run("echo two"), do.run("echo three"), do.reply(DONE))
    taken = leg.take(Limits(seconds=100, turns=1, tokens=1))
    assert leg.replied(taken) is not None, taken
    assert msgspec.structs.replace(taken.usage, complete=True) == Usage()
    assert leg.told == []
    assert leg.said.split()[-1] == b"three"
    assert taken.version

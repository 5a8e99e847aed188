"""The attack list, as root and as an ordinary user, in each access: nothing outside changes, nothing is learnt."""

import os
import platform
from collections.abc import Iterator
from typing import Any

import pytest

from relay.host.jail import seccomp
from relay.host.jail.mounts import Access
from relay.host.jail.rungs import Rung
from relay.terms import Limits
from tests.host.jail import attacks, cell
from tests.host.jail.cell import Cell

EVERY = "RELAY_EVERY_ATTACK" in os.environ
"""Whether each attack is made in each access; else in the widest, and every third one in the two narrower ones."""


def _made(known: dict[str, Any]) -> list[Any]:
    """Pair the attacks with the accesses they are made in."""
    return [
        pytest.param(attack, access, id=f"{name}-{access.value}")
        for number, (name, attack) in enumerate(known.items())
        for turn, access in enumerate(Access)
        if EVERY or access is Access.WRITE or number % 3 == turn
    ]


MINE = "user" if os.geteuid() else "root"


def words(attack: str | list[str], held: Cell) -> str | list[str]:
    if isinstance(attack, str):
        return attack
    return [word.replace("$PY", cell.python_of(held.uid)) for word in attack]


@pytest.fixture
def clean(held: Cell) -> Iterator[Cell]:
    """Return the home with a worktree as it was leased."""
    yield held
    held.restore()


@pytest.mark.parametrize(("attack", "access"), _made(attacks.SEEN))
def test_an_attack_does_nothing_from_inside(clean: Cell, attack: str | list[str], access: Access) -> None:
    _, wrong = clean.run(words(attack, clean), access)
    assert wrong == []


@pytest.mark.parametrize("access", Access, ids=lambda access: access.value)
@pytest.mark.parametrize("attack", attacks.SYSTEM.values(), ids=attacks.SYSTEM.keys())
def test_an_attack_on_the_machine_does_nothing_from_inside(clean: Cell, attack: str, access: Access) -> None:
    _, wrong = clean.run(attack, access)
    assert wrong == []


def test_a_change_of_the_tree_would_be_seen(clean: Cell) -> None:
    _, wrong = clean.run("echo x >> a.py", Access.READ, rung=Rung(name="off"))
    assert wrong == [f"it changed {clean.tree / 'a.py'}"]


@pytest.mark.parametrize("script", attacks.CALLS.values(), ids=attacks.CALLS.keys())
def test_the_kernel_refuses_what_no_build_needs(clean: Cell, script: str) -> None:
    ended, wrong = clean.run([cell.python_of(clean.uid), "-c", attacks.python(script)], Access.WRITE)
    assert "refused" in ended.text
    assert "GOT" not in ended.text
    assert wrong == []


@pytest.mark.parametrize("name", attacks.REFUSED)
def test_the_filter_refuses_by_number(clean: Cell, name: str) -> None:
    script = attacks.python(f"call({seccomp.MACHINES[platform.machine()].denied[name]}, 0, 0, 0, 0, 0)")
    ended, wrong = clean.run([cell.python_of(clean.uid), "-c", script], Access.READ)
    assert ended.text == "refused EPERM\n"
    assert wrong == []


@pytest.mark.parametrize("access", [Access.SCRATCH, Access.WRITE], ids=lambda access: access.value)
@pytest.mark.parametrize("filling", attacks.FILLING.values(), ids=attacks.FILLING.keys())
def test_what_takes_too_much_is_ended_by_name(clean: Cell, filling: tuple[str, frozenset[str]], access: Access) -> None:
    script, endings = filling
    if "os.fork" in script and not cell.rung_of(clean.uid).counts:
        pytest.skip("root cannot make a control group here, so a fork bomb would hurt the machine before it is ended")
    limits = Limits(seconds=2 if "timeout" in endings else 15, idle=1 if "idle" in endings else None, output=8 << 20)
    ended, wrong = clean.run(script, access, limits=limits)
    assert ended.ended in endings, ended.text
    assert ended.ended != "exit" or ended.code == 9, ended.text
    assert wrong == []


@pytest.mark.parametrize("attack", attacks.SEEN.values(), ids=attacks.SEEN.keys())
def test_the_same_attack_does_harm_where_there_is_no_jail(attack: str | list[str]) -> None:
    with cell.built(MINE) as open_cell:
        _, wrong = open_cell.run(words(attack, open_cell), Access.WRITE, rung=Rung(name="off"))
    assert wrong != []

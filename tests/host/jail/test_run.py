"""One command: what it is given, what it reaches, and how it ends."""

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from relay.errors import Interrupted
from relay.host import jail, pids
from relay.host.jail import run
from relay.host.jail.mounts import Access, Mounts
from relay.host.jail.rungs import Rung
from relay.terms import Limits, Process
from tests.host.jail import cell
from tests.host.jail.cell import LIMITS

OFF = Rung(name="off")


@pytest.fixture(params=["bwrap", "off", "external"])
def rung(request: pytest.FixtureRequest) -> Rung:
    """Return each rung of the ladder."""
    if request.param != "bwrap":
        return Rung(name=request.param)
    return cell.rung_of(os.geteuid())


@pytest.fixture
def mounts(tmp_path: Path) -> Mounts:
    """Return a tree in a home."""
    (tmp_path / "home/tree").mkdir(parents=True)
    return Mounts(tree=tmp_path / "home/tree", access=Access.WRITE, home=tmp_path / "home")


def test_a_command_is_run_in_its_tree_with_its_input_and_its_code(rung: Rung, mounts: Mounts) -> None:
    heard: list[bytes] = []
    ended = jail.jailed(rung, "cat; pwd; exit 3", mounts, env={}, limits=LIMITS, stdin=b"given\n", sink=heard.append)
    assert (ended.code, ended.ended, ended.text) == (3, "exit", f"given\n{mounts.tree}\n")
    assert b"".join(heard) == ended.head + ended.tail


def test_a_program_that_is_not_there_is_127(rung: Rung, mounts: Mounts) -> None:
    assert jail.jailed(rung, ["no-such-program"], mounts, env={}, limits=LIMITS).code == 127


def test_a_command_gets_what_is_named_and_no_key_that_happens_to_be_set(
    rung: Rung, mounts: Mounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("PATH", f"bin::{os.environ['PATH']}")
    ended = jail.jailed(rung, "env", mounts, env={"RELAY_LEG": "01", "MINE": "yes"}, limits=LIMITS)
    got = dict(line.split("=", 1) for line in ended.text.splitlines())
    assert {
        "RELAY_LEG": "01",
        "MINE": "yes",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "GIT_OPTIONAL_LOCKS": "0",
    }.items() <= got.items()
    assert not {"ANTHROPIC_API_KEY", "GIT_DIR"} & got.keys()
    assert all(entry.startswith("/") for entry in got["PATH"].split(":"))


def test_a_limit_ends_it_by_name(rung: Rung, mounts: Mounts) -> None:
    assert jail.jailed(rung, "sleep 60", mounts, env={}, limits=Limits(seconds=0.3)).ended == "timeout"


def test_memory_is_bounded_on_every_rung(rung: Rung, mounts: Mounts) -> None:
    hog = "(head -c 300M /dev/zero; sleep 60) | tail -c 299M >/dev/null"  # it holds them while it waits
    ended = jail.jailed(rung, hog, mounts, env={}, limits=LIMITS, bounds=jail.Bounds(memory=50 << 20))
    assert ended.ended == "memory"


def test_an_interruption_ends_it_and_goes_on(rung: Rung, mounts: Mounts) -> None:
    known: list[Process] = []

    def heard(_: bytes) -> None:
        raise Interrupted(15)

    with pytest.raises(Interrupted):
        jail.jailed(rung, "echo x; sleep 60", mounts, env={}, limits=LIMITS, sink=heard, spawned=known.append)
    assert not pids.alive(known[0])


def test_memory_that_many_share_is_counted_once(mounts: Mounts) -> None:
    share = (
        "import os, time\nx = bytearray(60 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\n"
        "for n in range(9):\n if os.fork() == 0: time.sleep(1.2); os._exit(0)\nfor n in range(9): os.wait()\n"
    )
    bounds = jail.Bounds(memory=300 << 20)
    python = cell.python_of(os.geteuid())
    assert jail.jailed(OFF, [python, "-c", share], mounts, env={}, limits=LIMITS, bounds=bounds).ended == "exit"


def test_a_file_that_was_there_before_is_not_counted_as_filled_disk(mounts: Mounts) -> None:
    (mounts.tree / "old").write_bytes(bytes(8 << 20))
    while time.time() < (mounts.tree / "old").stat().st_ctime + 0.1:
        time.sleep(0.02)
    bounds = jail.Bounds(disk=16 << 20)
    ended = jail.jailed(OFF, "head -c 10M /dev/zero > new; sleep 0.6", mounts, env={}, limits=LIMITS, bounds=bounds)
    assert ended.ended == "exit"


class Way:
    """A door that shows a file, sets a variable and goes before the command."""

    share = False
    env = {"WAY": "open", "NAMED": "by the door"}

    def __init__(self, shown: Path) -> None:
        self.mounts = ((str(shown), "/run/way/shown"),)

    def wrap(self, argv: Sequence[str]) -> list[str]:
        return ["/bin/sh", "-c", 'echo "$WAY $NAMED"; cat /run/way/shown; exec "$@"', "sh", *argv]


def test_a_door_shows_what_it_needs_and_goes_before_the_command(mounts: Mounts, tmp_path: Path) -> None:
    (tmp_path / "shown").write_text("shown\n", encoding="utf-8")
    ended = jail.jailed(
        cell.rung_of(os.geteuid()),
        "echo then; echo x > /run/way/shown",
        mounts,
        env={"NAMED": "by the caller"},
        network=Way(tmp_path / "shown"),
        limits=LIMITS,
    )
    assert ended.text.startswith("open by the caller\nshown\nthen\n")
    assert (tmp_path / "shown").read_text(encoding="utf-8") == "shown\n"


@pytest.mark.parametrize("network", jail.Network, ids=lambda network: network.value)
def test_the_machine_is_reached_where_it_was_asked_for_and_said(
    network: jail.Network, mounts: Mounts, capsys: pytest.CaptureFixture[str]
) -> None:
    run._tell.cache_clear()  # noqa: SLF001  it is said once in a process
    with socket.create_server(("127.0.0.1", 0)) as server:
        reach = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 3)"
        command = [cell.python_of(os.geteuid()), "-c", reach]
        tools = jail.readable(os.environ["PATH"], mounts.home)
        seeing = Mounts(tree=mounts.tree, access=Access.READ, home=mounts.home, readable=tools)
        ended = jail.jailed(cell.rung_of(os.geteuid()), command, seeing, env={}, network=network, limits=LIMITS)
    assert (ended.code == 0) == (network is jail.Network.HOST)
    assert ("127.0.0.1" in capsys.readouterr().err) == (network is jail.Network.HOST)

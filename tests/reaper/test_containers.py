"""A Relay in a container has a number that means nobody here: what it works on is alive all the same."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from relay.host import repository
from relay.reaper import look
from relay.record import ledger as ledgers
from tests.loop import dusk
from tests.loop.faults import through
from tests.reaper.scenes import reap, repaired
from tests.world import CHECKOUT, SAFETY, World

APART = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")
WAITING = "touch {folder}/working; while ! test -e {folder}/go; do sleep 0.1; done"


@contextmanager
def in_a_container(world: World, *argv: str) -> Iterator[Callable[[], int]]:
    """Keep a command in the middle of what waits in it inside a `with` block; what it yields lets it end."""
    with subprocess.Popen(
        [*APART, sys.executable, "-m", "relay", *argv],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:

        def go_on() -> int:
            (world.folder / "go").touch()
            running.communicate(timeout=SAFETY)
            return running.returncode

        over = time.monotonic() + SAFETY
        while not (world.folder / "working").exists() and running.poll() is None and time.monotonic() < over:
            time.sleep(0.05)
        if running.poll() is not None:
            _, said = running.communicate()
            assert b"unshare" in said, said
            pytest.skip(f"no namespace can be made here: {said!r}")
        try:
            yield go_on
        finally:
            go_on()


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_what_confirms_a_shipment_in_a_container_is_not_ended(world: World, options: tuple[str, ...]) -> None:
    world.save(ship={"verify": [WAITING.format(folder=world.folder)]})
    through(world.relay("run", world.spec()))
    with in_a_container(world, "approve", world.only_run()) as go_on:
        assert repaired(reap(world, *options)) == []
        ledger = ledgers.at(repository.discover(world.root))
        assert look.locked(ledger.leg_lock(world.only_run(), "05-ship"))
        assert go_on() == 0
    shipped = world.receipts()[-1]
    assert (shipped["act"], shipped["effect"]["outcome"]) == ("ship", "shipped")


def test_a_night_in_a_container_is_not_taken_for_one_that_was_killed(world: World) -> None:
    world.agents, world.phases = {}, {}
    mend = f"{WAITING.format(folder=world.folder)}; sed -i 's/a - b/a + b/' calc.py"
    world.shell("worker", mend, phase="implement", reply="exit")
    world.save(phases=["implement"])
    through(world.relay("queue", "add", world.spec()))
    with in_a_container(world, "nightly") as go_on:
        assert "night" not in repaired(reap(world, "--dry-run"))
        assert "night" not in repaired(reap(world))
        assert go_on() == 0
    assert dusk.newest(world)["ended_by"] != "signal"

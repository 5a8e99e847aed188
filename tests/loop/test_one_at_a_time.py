"""One run in a repository at a time, from wherever it is started; who comes second is told who holds it, at once."""

import contextlib
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

import pytest

from tests.loop.faults import refused, sober, through, untouched, worktrees
from tests.world import CHECKOUT, FIXED, SAFETY, Ran, World

AT_ONCE = 2.0
"""Seconds within which the second one must be told."""


FIX = f"printf {shlex.quote(FIXED.replace(chr(10), chr(92) + 'n'))} > calc.py"
"""A line of shell that mends the bug."""


class Gate:
    """An implementer that says when it works, and goes on when it is let."""

    def __init__(self, world: World) -> None:
        self.world = world
        working, go = world.folder / "working", world.folder / "go"
        for path in (working, go):
            os.mkfifo(path)
        self._working, self._go = os.open(working, os.O_RDWR), os.open(go, os.O_RDWR)  # so that nobody waits to open
        world.shell("implementer", f"echo > {working}\nread _ < {go}\n{FIX}", phase="implement", reply="exit")
        world.save()

    def wait(self) -> None:
        """Wait until the agent works."""
        assert select.select([self._working], [], [], SAFETY)[0], "no agent began"
        os.read(self._working, 1)

    def open(self) -> None:
        """Let the agent go on."""
        os.write(self._go, b"\n")

    def close(self) -> None:
        """Give the pipes back."""
        os.close(self._working)
        os.close(self._go)


@pytest.fixture
def gate(world: World) -> Iterator[Gate]:
    with contextlib.closing(Gate(world)) as made:
        yield made


def _places(world: World) -> dict[str, Path]:
    """Return every way to the same repository."""
    (world.root / "sub" / "folder").mkdir(parents=True)
    (world.folder / "by-link").symlink_to(world.root)
    world.git("worktree", "add", "-q", "--detach", str(world.folder / "linked"))
    return {
        "root": world.root,
        "subfolder": world.root / "sub" / "folder",
        "link": world.folder / "by-link",
        "linked worktree": world.folder / "linked",
        "git directory": world.root / ".git",
    }


def _ended(world: World, process: "subprocess.Popen[bytes]") -> Ran:
    try:
        out, err = process.communicate(timeout=SAFETY)
    finally:
        process.kill()
    return Ran(("run",), world.root, process.returncode, out.decode(), err.decode())


def test_of_many_runs_started_at_once_one_goes_through_and_the_others_leave_nothing(gate: Gate) -> None:
    world = gate.world
    spec = world.spec()
    started = [world.start("run", "--base", "main", spec, folder=folder) for folder in _places(world).values()]
    with ThreadPoolExecutor(len(started)) as pool:
        running: list[Future[Ran]] = [pool.submit(_ended, world, process) for process in started]
        try:
            gate.wait()
            losers = [done.result() for done in islice(as_completed(running, timeout=SAFETY), len(started) - 1)]
        finally:
            gate.open()
        [winner] = [done.result() for done in running if done.result() not in losers]
    through(winner)
    run = world.only_run()
    for loser in losers:
        refused(loser, 75, "holds", "hint: ")
    assert world.legs(run)[-1].name == "03-acceptance"
    assert {ref.split("/")[2] for ref in world.refs("refs/relay/")} == {run}
    assert worktrees() == []
    assert not list(world.runs.glob(".*"))


def test_the_second_one_is_told_at_once_who_holds_it_wherever_it_is_started(gate: Gate) -> None:
    world = gate.world
    places = _places(world)
    first = world.start("run", world.spec())
    gate.wait()
    run = world.only_run()
    with untouched(world):
        for folder in places.values():
            began = time.monotonic()
            ran = world.inside("run", "--base", "main", world.spec(name="other.md"), folder=folder)
            assert time.monotonic() - began < AT_ONCE
            message = refused(ran, 75, f"relay stop {run}")
            assert message.count(run) == 1, "it is named once"
            assert f"process {first.pid}" in message
            assert "since 2" in message
    assert world.only_run() == run
    assert [line["held"] for line in world.inside("status", "--json").events] == [True]
    gate.open()
    through(_ended(world, first))
    assert [line["held"] for line in world.inside("status", "--json").events] == [False]


@pytest.mark.parametrize("verb", ["resume", "approve", "reject", "answer"])
def test_a_run_in_progress_cannot_be_driven_or_decided_by_another(gate: Gate, verb: str) -> None:
    world = gate.world
    first = world.start("run", world.spec())
    gate.wait()
    words = {"reject": ["--why", "no"], "answer": ["yes"]}.get(verb, [])
    with untouched(world):
        refused(world.relay(verb, world.only_run(), *words), 75, "hint: ")
    gate.open()
    through(_ended(world, first))
    assert len(world.receipts()) == 3


def test_a_run_that_stands_can_be_approved_while_another_one_works(world: World) -> None:
    through(world.relay("run", world.spec()))
    accepted = world.only_run()
    with contextlib.closing(Gate(world)) as gate:
        second = world.start("run", world.spec(name="other.md"))
        gate.wait()
        through(world.relay("approve", accepted))
        assert world.show("main", "calc.py") == FIXED
        gate.open()
        sober(_ended(world, second))


def test_a_killed_holder_holds_nothing_and_its_agent_does_not_outlive_the_next_one(gate: Gate) -> None:
    world = gate.world
    first = world.start("run", world.spec())
    gate.wait()
    run = world.only_run()
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=SAFETY)
    resumed = world.start("resume", run)
    gate.wait()  # only a second agent opens it again; the first one waits for `go` and must not take it
    gate.open()
    through(_ended(world, resumed))
    assert [receipt["ended_by"] for receipt in world.receipts()] == ["interrupted", "reply", "reply", "reply"]


def test_a_lock_file_that_was_deleted_lets_nobody_in(gate: Gate) -> None:
    world = gate.world
    first = world.start("run", world.spec())
    gate.wait()
    (world.runs.parent / "lock").unlink()
    refused(world.relay("run", world.spec(name="other.md")), 75, f"process {first.pid}")
    gate.open()
    through(_ended(world, first))
    world.only_run()


def test_a_lock_record_that_is_nonsense_holds_nobody_up(world: World) -> None:
    through(world.relay("run", "--until", "implement", world.spec()))
    (world.runs.parent / "lock.json").write_bytes(b"{torn")
    through(world.relay("resume"))


def _relay(*words: str | Path) -> str:
    """Return a line of shell that calls Relay as an agent would find it."""
    command = shlex.join([sys.executable, "-m", "relay", *map(str, words)])
    return f"PYTHONPATH={shlex.quote(str(CHECKOUT))} {command}"


def _answers(world: World) -> Iterator[str]:
    yield from (world.folder / "answers").read_text().splitlines()


def test_an_agent_that_starts_a_run_in_its_own_repository_is_told_that_it_is_held(world: World) -> None:
    said = world.folder / "answers"
    inner = _relay("run", "--base", "main", world.spec(name="inner.md"))
    world.shell("implementer", f"{inner} > {said} 2>&1; echo $? >> {said}; {FIX}", phase="implement", reply="exit")
    world.save()
    with untouched(world):
        through(world.relay("run", world.spec()))
    answers = list(_answers(world))
    assert answers[-1] == "75"
    assert world.only_run() in answers[0]
    assert len(world.receipts()) == 3


def test_an_agent_that_ends_its_own_run_is_stopped_and_nothing_is_lost(world: World) -> None:
    said = world.folder / "answers"
    stop = _relay("stop")
    world.shell("implementer", f"echo half > calc.py\n{stop} > {said} 2>&1", phase="implement", reply="exit")
    world.save()
    with untouched(world):
        ran = world.relay("run", world.spec())
    sober(ran)
    assert ran.code == 128 + signal.SIGTERM
    assert "relay resume" in ran.err
    run = world.only_run()
    assert world.show(f"refs/relay/{run}/01-implement.cut", "calc.py") == "half\n"
    assert world.receipts()[0]["ended_by"] == "interrupted"

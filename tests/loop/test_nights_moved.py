"""A run that was begun before its repository was moved cannot go on: a person is told once, with what settles it."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from relay import alerts
from tests.loop import dusk
from tests.loop.doomed import await_that
from tests.loop.dusk import Bell, items, newest, records, runs, task, went
from tests.loop.test_queue import ledger
from tests.world import CHECKOUT, SAFETY, World

LEFT = pytest.mark.parametrize(("signum", "kind"), [(signal.SIGTERM, "stranded"), (signal.SIGKILL, "run")])
"""How the run was left: sealed, or in the middle of a leg, which the reaper finds first."""


def moved(world: World, signum: signal.Signals) -> str:
    """Begin a run of a spec of the repository, and move that; return the run."""
    seen = dusk.slow(world)
    world.commit({"tasks/one.md": task("One")})
    running = world.start("run", "tasks/one.md")
    await_that(seen.exists, "the worker never began")
    run = world.only_run()
    running.send_signal(signum)
    running.communicate(timeout=SAFETY)
    if signum is signal.SIGKILL:  # the agent lives on, and would after the test
        os.killpg(os.getpgid(int(seen.read_text())), signal.SIGKILL)
    world.root = world.root.rename(world.folder / "elsewhere")
    return run


@LEFT
def test_a_run_from_before_a_move_is_told_of_once_and_passed_over_with_the_reason(
    world: World, tmp_path: Path, signum: signal.Signals, kind: str
) -> None:
    bell, was = Bell(tmp_path), world.root / ".git"
    run = moved(world, signum)
    assert [event["did"] for event in world.inside("nightly", "--dry-run", "--json").events] == ["skipped"]
    for _ in range(3):
        went(world.inside("nightly", "--scheduled"))
        [item] = newest(world)["items"]
        assert (item["did"], item["run"]) == ("skipped", run)
        assert item["reason"] == f"it was begun in `{was}`, before the repository was moved or copied"
    assert bell.events == ["night"]
    assert [night["alerts"] for night in records(world)] == [[f"{kind}:{run}"], [], []]


@LEFT
def test_the_command_of_that_alert_settles_it_and_the_next_night_runs_the_spec_anew(
    world: World, signum: signal.Signals, kind: str
) -> None:
    run = moved(world, signum)
    went(world.inside("nightly"))
    [alert] = [alert for alert in alerts.all(ledger(world)) if alert.run == run]
    typed = alert.command.replace("relay -C", f"{shlex.quote(sys.executable)} -m relay -C")
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(["sh", "-c", typed], cwd=world.folder, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (ledger(world).root / "moved" / run / "plan.toml").is_file(), "nothing is removed"
    went(world.inside("nightly"))
    assert items(world) == [("started", "one", "accepted")]
    assert [alert for alert in alerts.all(ledger(world)) if alert.kind == kind] == []
    assert runs(world) == ["one"]

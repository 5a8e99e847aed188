"""Legs and programs that nobody owns are put right; what a living loop holds, or could notice, is left alone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.loop import doomed
from tests.loop.crash import Crasher, Death
from tests.loop.faults import through, untouched
from tests.reaper.scenes import NOTHING, again, alerts, at_work, killed, reap, repaired, state, worktrees
from tests.world import FIXED, World

LEG = "01-implement"


def test_a_leg_whose_runner_was_killed_is_sealed_its_agent_ended_and_its_work_kept(tmp_path: Path) -> None:
    world = doomed.build(tmp_path / "world")
    pids = killed(world)
    try:
        with untouched(world):
            events = reap(world)
        assert not any(doomed.alive(pid) for pid in pids)
    finally:
        doomed.end(pids)
    assert alerts(events) == []
    assert repaired(events).count("process") == len(pids)
    assert {"leg", "worktree", "lock"} <= set(repaired(events))
    assert world.receipts()[0]["ended_by"] == "interrupted"
    assert world.show(f"refs/relay/{world.only_run()}/{LEG}.cut", "calc.py") == doomed.HALF + "\n"
    assert doomed.worktrees(world) == []
    assert not list(world.runs.parent.rglob("*lock.json"))
    again(world)
    doomed.doom(world)
    through(world.relay("resume"))
    assert doomed.replies(world) == doomed.REPLIES
    again(world)


def test_a_reaper_that_is_killed_again_and_again_comes_to_the_same_end(tmp_path: Path) -> None:
    world = doomed.build(tmp_path / "world")
    pids = killed(world)
    deaths = 0
    try:
        with Crasher(tmp_path) as crasher:
            while (end := crasher.relay(world.root, "reap", death=Death(1 + 2 * deaths))).code != 0:
                assert end.code == -signal.SIGKILL, end
                deaths += 1
    finally:
        doomed.end(pids)
    assert deaths > 5
    assert world.receipts()[0]["ended_by"] == "interrupted"
    assert world.show(f"refs/relay/{world.only_run()}/{LEG}.cut", "calc.py") == doomed.HALF + "\n"
    reap(world)
    assert doomed.worktrees(world) == []
    assert not list(world.runs.parent.rglob("*lock.json"))
    again(world)
    through(world.relay("verify", world.only_run()))


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(tmp_path: Path) -> None:
    world = doomed.build(tmp_path / "world")
    pids = killed(world)
    try:
        before = state(world)
        ran = world.relay("reap", "--dry-run")
        assert (ran.code, "hint: relay reap" in ran.err) == (0, True), ran
        assert f"{LEG} was begun and is nobody's" in ran.out
        assert all(doomed.alive(pid) and f"process {pid} " in ran.out for pid in pids)
        assert state(world) == before
    finally:
        doomed.end(pids)


def test_a_live_leg_goes_on_while_the_reaper_runs_and_no_breach_is_seen(world: World) -> None:
    with at_work(world, world.spec()) as go_on:
        before = worktrees()
        ran = world.relay("reap")
        assert (ran.code, ran.out) == (0, ""), ran
        assert "a loop is at work here" in ran.err
        assert worktrees() == before
        go_on()
    assert [leg["breaches"] for leg in world.receipts()] == [[]] * 3
    again(world)


def test_beside_a_live_loop_another_runs_leg_is_left_to_a_later_pass(world: World) -> None:
    pids = killed(world)
    first = world.only_run()
    doomed.doom(world)
    try:
        with at_work(world, world.spec(name="other.md")) as go_on:
            events = reap(world)
            assert set(repaired(events)) <= {"process", "lock"}
            assert world.receipts(first) == []
            assert not any(doomed.alive(pid) for pid in pids), "its programs are nobody's all the same"
            go_on()
    finally:
        doomed.end(pids)
    [second] = {path.name for path in world.runs.iterdir()} - {first}
    assert [leg["breaches"] for leg in world.receipts(second)] == [[]] * 3
    assert "leg" in repaired(reap(world))
    assert world.receipts(first)[0]["ended_by"] == "interrupted"


def test_programs_of_other_repositories_and_those_that_only_look_alike_live_on(world: World) -> None:
    through(world.relay("run", world.spec()))
    env = {**os.environ, "RELAY_RUN": world.only_run(), "RELAY_LEG": LEG, "RELAY_NONCE": "another"}
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleep, env=env) as other:
        try:
            assert NOTHING in world.relay("reap").err
            assert other.poll() is None
        finally:
            other.kill()


def test_a_program_that_carries_the_nonce_of_a_sealed_leg_is_ended(world: World) -> None:
    through(world.relay("run", world.spec()))
    nonce = next(line for line in world.text(LEG, "start.json").splitlines() if '"nonce"' in line).split('"')[3]
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "RELAY_NONCE": nonce}) as stray:
        try:
            [event] = reap(world)
            assert (event["about"], event["run"]) == ("process", world.only_run())
            assert f"process {stray.pid} (`sleep`), which outlived {LEG}" in event["what"]
            assert stray.wait() == -signal.SIGTERM
        finally:
            stray.kill()
    again(world)


def test_a_leg_that_a_person_was_offered_stays_theirs(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.agents["me"] = {"backend": "human"}
    world.phases["implement"]["agent"] = "me"
    world.save()
    assert world.relay("run", world.spec()).code == 4
    [place] = worktrees()
    (place / "calc.py").write_text(FIXED)
    again(world)
    assert (place / "calc.py").read_text() == FIXED

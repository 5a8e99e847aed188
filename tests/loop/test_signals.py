"""SIGINT, SIGTERM and SIGHUP: whatever Relay is doing, its programs end, the leg is sealed, and the way on is named."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.errors import Exit
from tests.loop import doomed
from tests.loop.crash import Crasher, Death
from tests.loop.faults import sober
from tests.world import FIXED, SAFETY, SPEC, World

ALL = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """Let what is started hear all signals: a suite that runs in the background was told to ignore some."""
    before = {name: signal.signal(name, lambda *_: None) for name in (signal.SIGINT, signal.SIGHUP)}
    yield
    for name, handler in before.items():
        signal.signal(name, handler)


@pytest.fixture
def stage(tmp_path: Path) -> World:
    return doomed.build(tmp_path / "world")


def _interrupted(running: subprocess.Popen[bytes], *signums: int) -> None:
    """Assert how a run ends by a signal, or by one of those that came together."""
    _, err = running.communicate(timeout=SAFETY)
    said = err.decode()
    assert running.returncode in {128 + signum for signum in signums}, said
    assert "hint: relay resume" in said
    assert "Traceback" not in said


def _goes_on(world: World) -> None:
    """Assert that `relay resume` leads to the same end as if nothing had happened."""
    resumed = world.relay("resume")
    assert resumed.code == 0, resumed
    assert doomed.replies(world) == doomed.REPLIES
    assert world.show(f"relay/{world.only_run()}", "calc.py") == FIXED
    assert doomed.worktrees(world) == []


@pytest.mark.parametrize("signum", ALL)
def test_a_signal_ends_the_agent_with_all_it_started_and_seals_the_leg(stage: World, signum: int) -> None:
    doomed.doom(stage, "01-implement", stubborn=False)
    running = stage.start("run", stage.spec())
    pids = doomed.await_doom(stage, "01-implement", running)
    try:
        running.send_signal(signum)
        _interrupted(running, signum)
        assert not any(doomed.alive(pid) for pid in pids)
    finally:
        doomed.end(pids)
    [sealed] = stage.receipts()
    assert sealed["ended_by"] == "interrupted"
    assert stage.git("show", f"refs/relay/{stage.only_run()}/01-implement.cut:calc.py") == doomed.HALF
    assert doomed.worktrees(stage) == []
    _goes_on(stage)


def test_more_signals_while_the_first_is_settled_do_no_harm(stage: World) -> None:
    doomed.doom(stage, "01-implement", stubborn=True)
    running = stage.start("run", stage.spec())
    pids = doomed.await_doom(stage, "01-implement", running)
    try:
        running.send_signal(signal.SIGTERM)
        while running.poll() is None:
            running.send_signal(signal.SIGINT)
            try:
                running.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        _interrupted(running, signal.SIGTERM, signal.SIGINT)
        assert not any(doomed.alive(pid) for pid in pids)
    finally:
        doomed.end(pids)
    assert [leg["ended_by"] for leg in stage.receipts()] == ["interrupted"]


def test_a_signal_at_any_step_between_or_inside_legs_leaves_everything_sealed(stage: World, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    subprocess.run(["cp", "-a", str(stage.folder), str(fresh)], check=True)
    spec = stage.spec()
    with Crasher(tmp_path) as crasher:
        points = {point.number: point.name for point in crasher.relay(stage.root, "run", spec).points}
        first = next(number for number, name in points.items() if "/lock.json" in name)
        making = [number for number, name in points.items() if name.startswith(("run worktree", "lease", "rename"))]
        for index, number in enumerate(sorted({*range(first + 2, len(points), 29), *making[:3], *making[-2:]})):
            subprocess.run(["rm", "-rf", str(stage.folder)], check=True)
            subprocess.run(["cp", "-a", str(fresh), str(stage.folder)], check=True)
            signum, when = ALL[index % 3], ("before", "after")[index % 2]
            end = crasher.relay(stage.root, "run", stage.spec(), death=Death(number, when, signum))
            assert end.code == 128 + signum, (points[number], when, end)
            assert "hint: relay resume" in end.said
            for leg in stage.runs.glob("*/legs/*/start.json"):
                assert (leg.parent / "receipt.json").exists(), (points[number], when, end)
            assert doomed.worktrees(stage) == []
            assert list(stage.runs.glob(".new-*")) == []


ONCE = "if test -e {seen}; then exit 0; fi; echo $$ > {seen}.new; mv {seen}.new {seen}; sleep 300"
"""A command that is long the first time, and says when it runs."""
WHERE = {
    "checks": {"checks": {"slow": ONCE}},
    "the set-up of the worktree": {"worktree": {"setup": [ONCE]}},
    "the recovery steps": {"recovery": {"commands": [ONCE]}},
    "acceptance's clean checkout": {},
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_of_relays_own_does_not_outlive_it(stage: World, where: str, signum: int) -> None:
    seen = stage.folder / "seen"
    command = ONCE.format(seen=seen)
    stage.save(**json.loads(json.dumps(WHERE[where]).replace(json.dumps(ONCE), json.dumps(command))))
    clean = f"- it holds in a clean checkout: `case $PWD in *.check) {command};; esac`\n"
    running = stage.start("run", stage.spec(SPEC if WHERE[where] else SPEC + clean))
    doomed.await_that(seen.exists, f"the command in {where} never ran")
    pid = int(seen.read_text())
    try:
        running.send_signal(signum)
        if signum == signal.SIGKILL:
            running.communicate(timeout=SAFETY)
        else:
            _interrupted(running, signum)
            assert not doomed.alive(pid)
            assert stage.receipts()[-1]["ended_by"] == "interrupted"
            assert doomed.worktrees(stage) == []
        _goes_on(stage)
        assert not doomed.alive(pid)
    finally:
        doomed.end({pid})


def test_three_legs_cut_short_in_a_row_need_a_person_and_resume_says_go(stage: World) -> None:
    doomed.doom(stage, "01-implement", "02-implement", "03-implement", stubborn=False)
    for turn, leg in enumerate(("01-implement", "02-implement", "03-implement")):
        running = stage.start("resume") if turn else stage.start("run", stage.spec())
        doomed.end(doomed.await_doom(stage, leg, running) if turn == 1 else set())  # its agent is killed, too
        if turn != 1:
            doomed.await_doom(stage, leg, running)
        running.send_signal(signal.SIGTERM)
        _interrupted(running, signal.SIGTERM)
    assert {leg["ended_by"] for leg in stage.receipts()} == {"interrupted"}
    [line] = [line for line in stage.relay("status", "--json").events if line["type"] == "run"]
    assert (line["outcome"], line["needs"]) == ("needs-human", "3 legs in a row were cut short")
    asked = stage.relay("approve")
    sober(asked)
    assert asked.code == Exit.HUMAN, asked
    assert "3 legs in a row were cut short" in asked.err
    _goes_on(stage)
    assert stage.receipts()[3]["act"] == "go"


def test_a_third_death_in_a_row_is_told_before_resume_says_go(stage: World) -> None:
    legs = ("01-implement", "02-implement", "03-implement")
    doomed.doom(stage, *legs, stubborn=False)
    for turn, leg in enumerate(legs):
        running = stage.start("resume") if turn else stage.start("run", stage.spec())
        pids = doomed.await_doom(stage, leg, running)
        running.kill()
        running.communicate()
        doomed.end(pids)
    told = stage.relay("resume")
    sober(told)
    assert told.code == Exit.HUMAN, told
    assert "3 legs in a row were cut short" in told.err
    assert [leg["ended_by"] for leg in stage.receipts()] == ["interrupted"] * 3
    _goes_on(stage)
    assert stage.receipts()[3]["act"] == "go"


def test_three_crashes_of_an_agent_in_a_row_need_a_person_and_resume_says_go(world: World) -> None:
    world.shell("implementer", "echo half > calc.py; kill -9 $$", phase="implement")
    world.save()
    ran = world.relay("run", world.spec())
    sober(ran)
    assert ran.code == Exit.AGENT, ran
    assert [leg["ended_by"] for leg in world.receipts()] == ["crash"] * 3
    world.shell("implementer", "echo 'return a + b' > calc.py", phase="implement", reply="exit")
    resumed = world.relay("resume")
    assert [leg["act"] for leg in world.receipts()[:4]] == [None, None, None, "go"], resumed


@pytest.mark.parametrize("signum", [*ALL, signal.SIGKILL])
def test_a_signal_while_it_ships_leaves_the_checkout_whole_and_ships_once(world: World, signum: int) -> None:
    assert world.relay("run", world.spec()).code == 0
    seen = world.folder / "smudging"
    world.git("config", "filter.slow.smudge", f"touch {seen}; sleep 1; cat")
    (world.root / ".git" / "info").mkdir(exist_ok=True)
    (world.root / ".git" / "info" / "attributes").write_text("calc.py filter=slow\n")
    running = world.start("approve")
    doomed.await_that(seen.exists, "git never came to the file")
    running.send_signal(signum)
    _, err = running.communicate(timeout=SAFETY)
    assert running.returncode in {128 + signum, -signum}
    assert b"Traceback" not in err
    again = world.relay("approve", world.only_run())
    sober(again)
    assert again.code == 0, again
    assert world.git("status", "--porcelain") == ""
    assert not (world.root / ".git" / "index.lock").exists()
    assert (world.root / "calc.py").read_text(encoding="utf-8") == FIXED
    assert world.git("log", "--format=%s", "--grep=^Relay-Run: ", "main") == "Make add add"
    acts = [leg["effect"].get("outcome") for leg in world.receipts() if leg["act"]]
    # The branch moves after the files: who is killed between the two has shipped nothing yet, and its receipt says so.
    assert acts in ([None, "shipped"], [None, "interrupted", "shipped"])

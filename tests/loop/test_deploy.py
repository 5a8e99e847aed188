"""`ship.method = "command"`: a deployment of the accepted tree, run once; exit, output and time are in the receipt."""

import json
import signal
from pathlib import Path

import pytest

from relay import salvage
from relay.errors import Exit
from tests.loop import doomed
from tests.loop.faults import refused, stopped, through, untouched
from tests.world import BROKEN, FIXED, World

SAYS = """\
echo "$RELAY_RUN $RELAY_SHA $(head -1 "$RELAY_SPEC")" >> {log}
grep -q 'return a + b' calc.py && echo 'token: ghp_{secret}'
"""


def accepted(folder: Path, command: str, **ship: object) -> World:
    """Make a world whose run is accepted, and is to be deployed."""
    world = World.simple(folder, phases=["implement"], ship={"method": "command", "command": command, **ship})
    through(world.inside("run", world.spec()))
    return world


def outcomes(world: World) -> list[str]:
    """Return what became of each shipment."""
    return [receipt["effect"]["outcome"] for receipt in world.receipts() if receipt["act"] == "ship"]


def script(world_folder: Path, text: str) -> str:
    """Write a script beside the repository."""
    path = world_folder.parent / f"{world_folder.name}-deploy.sh"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_the_command_gets_the_run_the_commit_and_the_spec_in_a_clean_checkout(tmp_path: Path) -> None:
    log = tmp_path / "log"
    text = SAYS.format(log=log, secret="a1B2c3D4e5" * 4)
    world = accepted(tmp_path / "w", script(tmp_path / "w", text), verify=["grep -q 'a + b' calc.py"])
    run, base = world.only_run(), world.git("rev-parse", "main")
    with untouched(world):
        through(world.inside("approve"))
    receipt = world.receipts()[-1]
    sha = receipt["effect"]["commit"]
    assert log.read_text() == f"{run} {sha} # Make add add\n"
    assert world.git("rev-parse", f"{sha}^{{tree}}") == world.git("rev-parse", f"relay/{run}^{{tree}}")
    assert world.git("rev-parse", f"{sha}^") == base
    deployed, verified = receipt["checks"]
    assert (deployed["by"], deployed["exit"], deployed["ended"]) == ("ship.command", 0, "exit")
    assert deployed["seconds"] > 0
    assert (verified["by"], verified["exit"]) == ("ship.verify", 0)
    assert "redacted" in world.text(receipt["leg"], "deploy.log")
    through(world.inside("approve", run))
    assert (outcomes(world), len(log.read_text().splitlines())) == (["shipped"], 1)


def test_a_deployment_that_fails_is_told_with_its_last_words_and_is_tried_again_when_a_person_says_so(
    tmp_path: Path,
) -> None:
    world = accepted(tmp_path / "w", script(tmp_path / "w", "echo 'the cluster is full'; exit 3"))
    stopped(world.inside("approve"), 4, "exited 3: the cluster is full", "relay approve")
    assert [check["exit"] for check in world.receipts()[-1]["checks"]] == [3]
    script(tmp_path / "w", "exit 0")
    through(world.inside("approve"))
    assert outcomes(world) == ["failed", "shipped"]


def test_a_deployment_has_a_time_limit(tmp_path: Path) -> None:
    world = accepted(tmp_path / "w", script(tmp_path / "w", "sleep 600"), minutes=0.005)
    stopped(world.inside("approve"), 4, "exited 124 after 0.005 minutes")
    assert world.receipts()[-1]["checks"][0]["ended"] == "timeout"


def test_only_what_is_named_of_the_environment_reaches_it(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    world = accepted(tmp_path / "w", script(tmp_path / "w", f"env > {seen}"), env=["CLUSTER"])
    ran = world.relay("approve", env={"CLUSTER": "blue", "OTHER_TOKEN": "nobody's"})
    through(ran)
    lines = seen.read_text().splitlines()
    assert "CLUSTER=blue" in lines
    assert not [line for line in lines if "OTHER_TOKEN" in line or line.startswith("RELAY_NONCE=")]


def test_a_base_that_moved_is_deployed_together_with_the_change_once_the_criteria_hold(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    world = accepted(tmp_path / "w", script(tmp_path / "w", f"ls > {seen}"))
    world.commit({"news.txt": "meanwhile\n"})
    through(world.inside("approve"))
    assert {"news.txt", "calc.py"} <= set(seen.read_text().split())
    assert world.show(world.receipts()[-1]["effect"]["commit"], "calc.py") == FIXED
    assert world.show("main", "calc.py") == BROKEN


def test_a_method_without_its_command_is_refused_before_anything_runs(tmp_path: Path) -> None:
    world = World.simple(tmp_path, ship={"method": "command"})
    refused(world.inside("run", world.spec()), 2, "no `ship.command`", "[ship]")
    assert world.refs("refs/relay/") == {}


def test_a_deployment_outlives_a_relay_that_is_killed_and_is_not_run_again(tmp_path: Path) -> None:
    log, on = tmp_path / "log", tmp_path / "on"
    text = f"echo began >> {log}; while ! test -e {on}; do sleep 0.02; done; echo ended >> {log}"
    world = accepted(tmp_path / "w", script(tmp_path / "w", text))
    approving = world.start("approve")
    doomed.await_that(log.exists, "the deployment never began")
    approving.kill()
    approving.communicate()
    again = world.start("approve", world.only_run())
    doomed.await_that((world.legs()[0].parent / "03-ship.lock.json").exists, "approve never came so far")
    assert log.read_text() == "began\n"
    on.touch()
    _, said = again.communicate(timeout=60)
    assert again.returncode == 0, said
    assert log.read_text() == "began\nended\n"
    assert outcomes(world) == ["shipped"]
    [check] = world.receipts()[-1]["checks"]
    assert check["exit"] == 0
    assert doomed.worktrees(world) == []


def test_a_deployment_that_takes_longer_than_the_patience_is_named_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, on = tmp_path / "log", tmp_path / "on"
    text = f"echo began >> {log}; while ! test -e {on}; do sleep 0.02; done; echo ended >> {log}"
    world = accepted(tmp_path / "w", script(tmp_path / "w", text))
    approving = world.start("approve")
    doomed.await_that(log.exists, "the deployment never began")
    approving.kill()
    approving.communicate()
    monkeypatch.setattr(salvage, "PATIENCE", 0.1)
    refused(world.inside("approve", world.only_run()), Exit.HELD, "the deployment, process", "still works")
    on.touch()
    doomed.await_that(lambda: "ended" in log.read_text(), "the deployment never ended")
    monkeypatch.undo()
    through(world.inside("approve", world.only_run()))
    assert (log.read_text(), outcomes(world)) == ("began\nended\n", ["shipped"])


def test_a_signal_waits_for_the_deployment_to_end_and_loses_nothing(tmp_path: Path) -> None:
    log, on = tmp_path / "log", tmp_path / "on"
    text = f"echo began >> {log}; while ! test -e {on}; do sleep 0.02; done; test -e calc.py && echo ended >> {log}"
    world = accepted(tmp_path / "w", script(tmp_path / "w", text))
    approving = world.start("approve")
    doomed.await_that(log.exists, "the deployment never began")
    approving.send_signal(signal.SIGINT)
    assert approving.stderr is not None
    said = b""
    while b"the deployment goes on" not in said:
        said = approving.stderr.readline()
        assert said
    on.touch()
    approving.communicate(timeout=60)
    assert approving.returncode == 130
    through(world.inside("approve", world.only_run()))
    assert (log.read_text(), outcomes(world)) == ("began\nended\n", ["shipped"])


def test_a_deployment_that_something_ended_half_way_is_a_persons_to_decide(tmp_path: Path) -> None:
    world = accepted(tmp_path / "w", script(tmp_path / "w", "kill -9 $(cut -d' ' -f6 /proc/$$/stat); exit 0"))
    stopped(world.inside("approve"), 4, "began, and something ended it")
    script(tmp_path / "w", "exit 0")
    through(world.inside("approve"))
    assert outcomes(world) == ["failed", "shipped"]
    assert json.loads(world.text("03-ship"))["checks"] == []

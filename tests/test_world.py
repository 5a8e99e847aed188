"""The builders build what they say, so that no other test rests on sand."""

import json
import os
import subprocess
from pathlib import Path

from tests.world import FIXED, World


def _play(world: World, phase: str, kind: str, tmp_path: Path) -> dict[str, object]:
    """Run the agent of a phase as Relay would, and return its reply."""
    reply = tmp_path / "reply.json"
    leg = {"RELAY_RUN": "r", "RELAY_PHASE": phase, "RELAY_KIND": kind, "RELAY_NONCE": "n1", "RELAY_REPLY": str(reply)}
    command = world.agents[world.phases[phase]["agent"]]["command"]
    subprocess.run(command, cwd=world.root, env={**os.environ, **leg}, input=b"prompt", check=True, timeout=60)
    answer: dict[str, object] = json.loads(reply.read_bytes())
    return answer


def _seal(world: World, number: int, phase: str, ended_by: str) -> None:
    leg = world.runs / "r" / "legs" / f"{number:02}-{phase}"
    leg.mkdir(parents=True)
    (leg / "receipt.json").write_text(json.dumps({"leg": leg.name, "phase": phase, "ended_by": ended_by}))


def test_the_simple_world_is_committed_and_its_implementer_fixes_the_bug(world: World, tmp_path: Path) -> None:
    assert world.git("status", "--porcelain") == ""
    assert _play(world, "implement", "work", tmp_path)["status"] == "done"
    assert (world.root / "calc.py").read_text() == FIXED


def test_a_reviser_counts_sealed_replies_and_then_approves(world: World, tmp_path: Path) -> None:
    world.reviser("review", path="calc.py", quote="return a - b", times=2)
    verdicts = []
    for number, ended_by in enumerate(["reply", "interrupted", "reply", "reply"], start=1):
        answer = _play(world, "review", "judge", tmp_path)
        verdicts.append(answer["verdict"])
        assert answer["nonce"] == "n1"
        if answer["verdict"] == "revise":
            assert [(f["path"], f["line"]) for f in answer["findings"]] == [("calc.py", 2)]  # type: ignore[attr-defined]
        _seal(world, number, "review", ended_by)
    assert verdicts == ["revise", "revise", "revise", "approve"]


def test_receipts_come_in_the_order_of_their_numbers(world: World) -> None:
    for number in (100, 2, 11):
        _seal(world, number, "review", "reply")
    assert [receipt["leg"] for receipt in world.receipts()] == ["02-review", "11-review", "100-review"]


def test_a_shell_agent_is_a_program_outside_the_repository(world: World) -> None:
    world.shell("tidy", "echo tidied > calc.py", phase="implement", reply="exit")
    subprocess.run(world.agents["tidy"]["command"], cwd=world.root, check=True, timeout=60)
    assert (world.root / "calc.py").read_text() == "tidied\n"
    assert not list(world.root.glob("**/tidy*"))


def test_nothing_of_the_person_who_runs_the_tests_is_seen(tmp_path: Path) -> None:
    config = subprocess.run(
        ["git", "config", "--list", "--show-origin"], cwd=tmp_path, capture_output=True, check=False, timeout=60
    )
    assert config.stdout == b""
    assert not [name for name in os.environ if name.startswith("RELAY_")]
    assert Path(os.environ["HOME"]).is_relative_to(tmp_path.parent)

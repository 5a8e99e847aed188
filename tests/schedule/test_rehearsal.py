"""The doctor at night sees what a night would: the frozen PATH, no variables of this shell, no terminal."""

import json
import os
from pathlib import Path

import pytest

from relay.schedule import plan
from tests.schedule import machines, records
from tests.world import World

Looks = list[tuple[str, str, str]]


def _looks(world: World) -> Looks:
    ran = world.inside("--json", "doctor", "--as-scheduled")
    looks = [(event["level"], event["text"], event["hint"]) for event in ran.events]
    assert ran.code == (2 if any(level == "FAIL" for level, _, _ in looks) else 0), ran
    return looks


def _found(looks: Looks, text: str) -> tuple[str, str]:
    [(level, _, hint)] = [look for look in looks if text in look[1]]
    return level, hint


def _install(world: World) -> None:
    ran = world.inside("schedule", "install", "--with", "launchd")
    assert ran.code == 0, ran


def _tool(world: World, first: str, folder: str = "tools") -> Path:
    """Make a program in a folder of its own, and have it review."""
    path = world.folder / folder / "mytool"
    path.parent.mkdir()
    path.write_text(f"{first}\nexit 0\n")
    path.chmod(0o755)
    world.agents["review-judge"] = {
        "backend": "command",
        "command": ["mytool"],
        "reply": "exit",
        "vendor": "mechanical",
    }
    world.save()
    return path


def test_a_repository_that_is_ready_is_ready_at_night(world: World) -> None:
    _install(world)
    looks = _looks(world)
    assert looks[0][:2] == ("ok", f"PATH at night: {plan.frozen(os.environ['PATH'])}")
    assert _found(looks, "agent implementer: command")[0] == "ok"


def test_without_a_schedule_it_is_tried_as_it_would_be(world: World) -> None:
    ran = world.inside("doctor", "--as-scheduled")
    assert ran.code == 0, ran
    assert "no schedule is installed; this is how it would be" in ran.err


def test_a_program_that_only_this_shell_finds_is_not_installed_at_night(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(world)
    tool = _tool(world, "#!/bin/sh")
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    assert not [look for look in world.inside("--json", "doctor").events if look["level"] == "FAIL"]
    level, hint = _found(_looks(world), "agent review-judge")
    assert (level, "relay schedule install" in hint) == ("FAIL", True)
    assert _found(_looks(world), f"not installed at night: `mytool` is not on its PATH; here it is `{tool}`")
    _install(world)
    assert _found(_looks(world), "agent review-judge")[0] == "ok"


def test_a_program_whose_interpreter_is_not_there_is_not_installed_either(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = _tool(world, "#!/usr/bin/env mynode")
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    _install(world)
    assert _found(_looks(world), f"not installed at night: `{tool}` needs `mynode`")[0] == "FAIL"
    machines.programs(world.folder / "tools", mynode="")
    assert _found(_looks(world), "agent review-judge")[0] == "ok"


def test_a_key_in_this_shell_is_none_at_night_and_one_in_the_file_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    world.agents["review-judge"] = {"backend": "openai", "model": "gpt-6"}
    world.save()
    _install(world)
    assert _found(_looks(world), "agent review-judge")[0] == "FAIL"
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "relay"
    (config / "env").write_text("OPENAI_API_KEY='sk-9876543210'\n")
    (config / "env").chmod(0o644)
    assert _found(_looks(world), f"others can read `{config / 'env'}`") == ("warn", f"chmod 600 {config / 'env'}")
    (config / "env").chmod(0o600)
    looks = _looks(world)
    assert _found(looks, "agent review-judge")[0] == "ok"
    assert "sk-" not in str(looks)


def test_a_relay_that_is_gone_is_said_to_be(world: World) -> None:
    _install(world)
    found = records.schedule(world)
    path = world.root / ".git" / "relay" / "schedule.json"
    found["job"]["command"][0] = "/nowhere/python"
    path.write_text(json.dumps(found))
    assert _found(_looks(world), "relay is not installed at night: `/nowhere/python`")[0] == "FAIL"
    found["job"]["command"][0] = "/bin/false"
    path.write_text(json.dumps(found))
    assert _found(_looks(world), "relay does not run at night")[0] == "FAIL"


def test_a_night_elsewhere_cannot_be_tried_here(world: World) -> None:
    assert world.inside("schedule", "install", "--with", "actions").code == 0
    world.git("add", ".github")
    world.git("commit", "-qm", "nights")
    ran = world.inside("doctor", "--as-scheduled")
    assert (ran.code, "hint: start it there" in ran.err) == (2, True), ran

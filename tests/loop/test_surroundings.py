"""What of the person's environment reaches whom: what an agent's line names, and what [worktree] names for Relay."""

import json
from pathlib import Path

import pytest

from relay.host import jail
from tests.loop.faults import refused, through
from tests.world import FIXED, World

SET = {
    "OF_THE_AGENT": "a value of the agent's",
    "OF_THE_WORKTREE": "a value of the worktree's",
    "SOME_API_KEY": "a key of the person's",
    "GOROOT": "/somewhere/go",
}
LOOK = 'echo "saw ${OF_THE_AGENT+agent} ${OF_THE_WORKTREE+worktree} ${SOME_API_KEY+key} ${GOROOT+tools} ${HOME+home}"'
AGENT, RELAY = "saw agent   tools home\n", "saw  worktree  tools home\n"


@pytest.fixture(params=["off", "required"])
def ran(world: World, request: pytest.FixtureRequest) -> World:
    """Run a relay, in the open and in a jail, in which everything that runs says what it sees."""
    if request.param == "required" and not (found := jail.choose("auto"))[0].holds:
        pytest.skip(found[1])
    fix = f"cat > calc.py <<'END'\n{FIXED}END\n"
    done = """printf '{"status": "done"}' > "$RELAY_REPLY"\n"""
    world.shell("implementer", f"{LOOK}\n{fix}{done}", phase="implement", env=["OF_THE_AGENT"])
    world.save(
        checks={"look": f"{LOOK}; exit 1"},
        recovery={"commands": [LOOK]},
        worktree={"env": ["OF_THE_WORKTREE"], "setup": [LOOK]},
        jail={"mode": request.param},
    )
    spec = world.spec(f"# Make add add\n\n## Acceptance\n\n- it looks: `{LOOK}`\n")
    world.relay("run", spec, env=SET)
    return world


def test_an_agent_sees_what_its_line_names_and_where_tools_are_and_no_key(ran: World) -> None:
    lines = ran.text("01-implement", "transcript.jsonl").splitlines()
    assert "".join(json.loads(line).get("text", "") for line in lines) == AGENT


@pytest.mark.parametrize("name", ["setup.log", "check-1.log", "criterion-c1.log", "prompt.md"])
def test_what_relay_runs_sees_what_the_worktree_names_and_nothing_of_the_agents(ran: World, name: str) -> None:
    text = ran.text("01-implement", name)
    assert RELAY in text
    assert AGENT not in text


def test_a_value_instead_of_a_name_is_refused_and_not_repeated(world: World) -> None:
    value = "seven-of-nine-12"
    world.save(worktree={"env": [f"TOKEN={value}"]})
    ran = world.inside("run", world.spec())
    refused(ran, 2, "`worktree.env` has `TOKEN=...`", "which is not the name of a variable")
    assert value not in ran.out + ran.err


def test_git_itself_still_finds_the_persons_way_to_a_remote(tmp_path: Path) -> None:
    library = World(tmp_path / "library", {"lib.txt": "lib\n"})
    world = World.simple(tmp_path / "user")
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nfor last; do :; done\neval "$last"\n')
    ssh.chmod(0o755)
    world.git("config", "--global", "protocol.file.allow", "always")
    world.git("submodule", "--quiet", "add", str(library.root), "lib")
    world.git("config", "-f", ".gitmodules", "submodule.lib.url", f"host.example:{library.root}")
    world.git("config", "--remove-section", "submodule.lib")
    world.git("add", ".gitmodules")
    world.git("commit", "-q", "-m", "a library")
    world.save(worktree={"submodules": True})
    through(world.relay("run", world.spec(), env={"GIT_SSH_COMMAND": str(ssh)}))
    assert "lib" in world.text("01-implement", "setup.log")

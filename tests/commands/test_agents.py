"""Who can take a leg, and what a reply looks like."""

import json

import pytest

from relay.record import reply
from tests.world import World


def _rows(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in out.splitlines()}


def test_each_agent_has_a_line_with_its_phases_and_version(world: World) -> None:
    ran = world.inside("agents")
    assert ran.code == 0
    rows = _rows(ran.out)
    assert rows["agent"] == ["backend", "model", "vendor", "phases", "version"]
    assert rows["implementer"][:4] == ["command", "-", "north", "implement"]
    assert rows["review-judge"][:4] == ["command", "-", "south", "review"]
    assert len(rows["implementer"][4]) == 12
    assert world.inside("agents", "list").out == ran.out


def test_an_agent_that_cannot_run_says_why(world: World) -> None:
    world.agents["lost"] = {"backend": "command", "command": ["no-such-program-here"]}
    world.agents["later"] = {"backend": "claude-code", "model": "opus"}
    world.save()
    events = {event["name"]: event for event in world.inside("agents", "--json").events}
    assert "no-such-program-here" in events["lost"]["problem"]
    assert events["later"]["problem"] == "backend `claude-code` is not in this version"
    assert (events["later"]["model"], events["later"]["phases"]) == ("opus", [])
    assert events["implementer"]["problem"] == ""


def test_a_config_that_is_not_committed_is_listed_and_said_to_be_none_yet(world: World) -> None:
    with (world.root / "relay.toml").open("a") as file:
        file.write('[agents.fresh]\nbackend = "human"\n')
    ran = world.inside("agents")
    assert ran.code == 0
    assert "fresh" in _rows(ran.out)
    assert "no run could start yet: `relay.toml` in the checkout differs" in ran.err


def test_a_config_that_is_wrong_is_refused(world: World) -> None:
    (world.root / "relay.toml").write_text("agents = 3\n")
    assert world.inside("agents").code == 2


def test_no_agents_yet_names_the_command_that_starts(world: World) -> None:
    world.git("rm", "-q", "relay.toml")
    world.git("commit", "-q", "-m", "none")
    ran = world.inside("agents")
    assert (ran.code, ran.out) == (0, "")
    assert "hint: relay init" in ran.err


@pytest.mark.parametrize("kind", ["work", "judge"])
def test_the_schema_is_that_which_replies_are_read_by(world: World, kind: str) -> None:
    shown = json.loads(world.inside("agents", "schema", kind).out)
    assert shown == reply.schema("work" if kind == "work" else "judge")
    assert all(field["description"] for field in shown["properties"].values())


def test_without_a_kind_both_schemas_are_one_object(world: World) -> None:
    ran = world.inside("agents", "schema", folder=world.folder)
    assert set(json.loads(ran.out)) == {"work", "judge"}
    assert world.inside("agents", "schema", "act").code == 2

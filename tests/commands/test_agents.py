"""Who can take a leg, whether one answers, and what a reply looks like."""

import json
import secrets

import pytest

from relay.record import reply
from tests.service import Fault, Service, say
from tests.world import World

KEY = f"sk-test-{secrets.token_hex(16)}"


def _rows(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in out.splitlines()}


def test_each_agent_has_a_line_with_its_phases_and_version(world: World) -> None:
    ran = world.inside("agents")
    assert ran.code == 0
    rows = _rows(ran.out)
    assert rows["agent"] == ["backend", "model", "vendor", "phases", "key", "version"]
    assert rows["implementer"][:4] == ["command", "-", "north", "implement"]
    assert rows["review-judge"][:4] == ["command", "-", "south", "review"]
    assert rows["implementer"][4] == "-"
    assert len(rows["implementer"][5]) == 12
    assert world.inside("agents", "list").out == ran.out


def test_an_agent_that_cannot_run_says_why(world: World) -> None:
    world.agents["lost"] = {"backend": "command", "command": ["no-such-program-here"]}
    world.agents["later"] = {"backend": "openai", "model": "gpt-6-sol"}
    world.save()
    events = {event["name"]: event for event in world.inside("agents", "--json").events}
    assert "no-such-program-here" in events["lost"]["problem"]
    assert events["later"]["problem"] == "`OPENAI_API_KEY` is not set"
    assert events["later"]["key"] == "OPENAI_API_KEY is not set"
    assert (events["later"]["model"], events["later"]["phases"]) == ("gpt-6-sol", [])
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


def test_where_a_key_is_found_is_said_and_never_the_key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    world.agents["gpt"] = {"backend": "openai", "model": "gpt-6-sol", "key": "GATEWAY_KEY"}
    world.agents["own"] = {"backend": "openai", "model": "qwen3-coder", "base_url": "http://127.0.0.1:11434/v1"}
    world.save()
    ran = world.inside("agents", "--json")
    keys = {event["name"]: (event["key"], event["problem"]) for event in ran.events}
    assert keys["gpt"] == ("GATEWAY_KEY", "")
    assert keys["own"] == ("none needed", "")
    assert keys["implementer"] == ("", "")
    assert KEY not in ran.out + world.inside("agents").out


def _line(service: Service, world: World, **more: str) -> None:
    world.agents["gpt"] = {"backend": "openai", "model": "gpt-6-sol", "base_url": f"{service.url}/v1", **more}
    world.save()


def test_an_agent_can_be_called_once_to_see_whether_it_answers(world: World) -> None:
    with Service({"": [say("ok")]}) as service:
        _line(service, world)
        ran = world.inside("agents", "test", "gpt")
        assert ran.code == 0
        assert ran.out.startswith("gpt: `gpt-6-sol` at `127.0.0.1:")
        assert len(service.requests) == 1
        [event] = world.inside("agents", "test", "gpt", "--json").events
        assert (event["name"], event["backend"], event["called"]) == ("gpt", "openai", True)


def test_a_service_that_refuses_exits_5_and_a_key_that_is_missing_4(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service({"": [Fault("auth")]}) as service:
        _line(service, world, key="GATEWAY_KEY")
        missing = world.inside("agents", "test", "gpt")
        assert (missing.code, service.requests) == (4, [])
        assert "`GATEWAY_KEY` is not set" in missing.err
        monkeypatch.setenv("GATEWAY_KEY", KEY)
        refused = world.inside("agents", "test", "gpt")
        assert refused.code == 5
        assert "answered 401" in refused.err
        assert KEY[-4:] not in refused.out + refused.err
    gone = world.inside("agents", "test", "gpt")
    assert gone.code == 5
    assert "cannot be reached" in gone.err


def test_of_a_command_there_is_nothing_to_call(world: World) -> None:
    ran = world.inside("agents", "test", "implementer")
    assert (ran.code, ran.out) == (0, "")
    assert "`implementer` is `command`: there is nothing to call" in ran.err
    [event] = world.inside("agents", "test", "implementer", "--json").events
    assert event["called"] is False


def test_an_agent_that_there_is_not_cannot_be_called(world: World) -> None:
    ran = world.inside("agents", "test", "implementr")
    assert ran.code == 2
    assert "did you mean `implementer`?" in ran.err
    assert "the agents are `implementer`" in ran.err


@pytest.mark.parametrize("kind", ["work", "judge"])
def test_the_schema_is_that_which_replies_are_read_by(world: World, kind: str) -> None:
    shown = json.loads(world.inside("agents", "schema", kind).out)
    assert shown == reply.schema("work" if kind == "work" else "judge")
    assert all(field["description"] for field in shown["properties"].values())


def test_without_a_kind_both_schemas_are_one_object(world: World) -> None:
    ran = world.inside("agents", "schema", folder=world.folder)
    assert set(json.loads(ran.out)) == {"work", "judge"}
    assert world.inside("agents", "schema", "act").code == 2

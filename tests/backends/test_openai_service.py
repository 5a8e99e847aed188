"""Which key goes where, and one tiny request to see whether anybody answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from relay.backends import openai, openai_faults, openai_service
from relay.errors import Exit, RelayError
from tests.backends.openai_legs import DONE, KEY, VARIABLE, agent, ask, played, take
from tests.service import Fault, Service, do, say


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


def test_without_its_key_a_leg_ends_as_auth_and_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = agent(None)
    with pytest.raises(RelayError, match="`OPENAI_API_KEY` is not set") as caught:
        openai.preflight(who, tmp_path)
    assert caught.value.exit_code is Exit.HUMAN
    leg = take(ask(tmp_path, who))
    assert (leg.taken.ended_by, leg.taken.problem) == ("auth", "`OPENAI_API_KEY` is not set")
    assert openai.key(who) == "OPENAI_API_KEY is not set"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert openai.preflight(who, tmp_path) == openai_service.version()
    assert openai.key(who) == "OPENAI_API_KEY"


@pytest.mark.parametrize("value", ["two words", "naïve", "line\nline"])
def test_what_can_be_no_key_is_said_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(RelayError, match="`OPENAI_API_KEY` holds what can be no key"):
        openai.preflight(agent(None), tmp_path)


def test_a_server_of_ones_own_gets_no_key_of_openais(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Service({"": [do.reply(DONE)]}) as service:
        who = agent(service, key=None)
        assert openai.key(who) == "none needed"
        assert take(ask(tmp_path, who)).taken.ended_by == "reply"
        assert service.requests[0].headers["authorization"] == "Bearer none"
        take(ask(tmp_path, agent(service)))
        assert service.requests[1].headers["authorization"] == f"Bearer {KEY}"


def test_a_server_of_ones_own_that_wants_a_key_says_where_to_name_it(tmp_path: Path) -> None:
    leg = played(tmp_path, {"": [Fault("auth")]}, key=None)
    assert leg.taken.ended_by == "auth"
    assert (leg.taken.problem or "").endswith("wants a key: name its variable by `key` in `[agents.gpt]`")


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://localhost:8000/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.1.20:8000/v1", True),
        ("http://gpu-box:8000/v1", True),
        ("http://gpu.lan:8000/v1", True),
        ("https://127.0.0.1/v1", False),
        ("http://example.org/v1", False),
        ("https://gateway.example.org/v1", False),
        ("http://8.8.8.8/v1", False),
    ],
)
def test_plain_http_to_a_private_address_needs_no_key(url: str, near: bool) -> None:  # noqa: FBT001 - a case
    assert openai_service.of(agent(None, base_url=url)).variable == ("" if near else "OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("https://api.openai.com/v1/", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://team.openai.azure.com/openai/v1", True),
        ("https://notapi.openai.com.example.org/v1", False),
        ("https://gateway.example.org/v1", False),
    ],
)
def test_openais_own_addresses_are_known_in_every_region(url: str, own: bool) -> None:  # noqa: FBT001 - a case
    assert openai_service.of(agent(None, base_url=url)).own is own


def test_the_address_is_only_what_the_line_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    service = openai_service.of(agent(None, model=None))
    assert (service.url, service.model) == (openai_service.HOME, openai_service.MODEL)
    assert played(tmp_path, {"": [do.reply(DONE)]}).taken.ended_by == "reply"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"base_url": "127.0.0.1:11434"}, "is no address"),
        ({"base_url": "ftp://example.org"}, "is no address"),
        ({"base_url": "http://127.0.0.1:1/v1", "model": None}, "names no model"),
    ],
)
def test_a_line_that_does_not_say_enough_is_refused(tmp_path: Path, line: Mapping[str, Any], words: str) -> None:
    with pytest.raises(RelayError, match=words) as caught:
        openai.preflight(agent(None, **line), tmp_path)
    assert caught.value.exit_code is Exit.HUMAN
    assert take(ask(tmp_path, agent(None, **line))).taken.ended_by == "setup"


def test_an_address_without_its_version_is_pointed_out(tmp_path: Path) -> None:
    with Service({"": [do.reply(DONE)]}) as service:
        leg = take(ask(tmp_path, agent(service, base_url=f"{service.url}/api")))
    assert leg.taken.ended_by == "reply"
    assert (
        "`/v1` at the end"
        in openai_faults.told(
            {"message": "404 page not found"}, openai_service.of(agent(None, base_url="http://127.0.0.1:11434")), 404
        ).problem
    )


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_probe_is_one_tiny_request(api: str) -> None:
    with Service({"": [say("ok")]}) as service:
        said = openai.probe(agent(service, api=api))
        [request] = service.requests
    assert said.startswith(f"`gpt-6-sol` at `{service.url.removeprefix('http://')}` answered in ")
    assert request.size < 400
    assert 16 in request.body.values()
    assert KEY not in said


def test_a_probe_that_is_cut_off_is_an_answer_too() -> None:
    with Service({"": [Fault("max_tokens")]}) as service:
        assert "answered in" in openai.probe(agent(service))


def test_a_probe_that_fails_exits_5_and_one_without_a_key_exits_4(monkeypatch: pytest.MonkeyPatch) -> None:
    with Service({"": [Fault("auth")]}) as service:
        who = agent(service)
        with pytest.raises(RelayError, match="answered 401") as refused:
            openai.probe(who)
        monkeypatch.delenv(VARIABLE)
        with pytest.raises(RelayError, match=f"`{VARIABLE}` is not set") as missing:
            openai.probe(who)
        assert len(service.requests) == 1
    assert (refused.value.exit_code, missing.value.exit_code) == (Exit.AGENT, Exit.HUMAN)
    assert KEY[-4:] not in refused.value.message
    with pytest.raises(RelayError, match="cannot be reached") as gone:
        openai.probe(agent(service, key=None))
    assert gone.value.exit_code is Exit.AGENT

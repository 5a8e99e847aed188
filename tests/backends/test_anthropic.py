"""Anthropic's Messages through the SDK itself: keys and addresses, what goes out, and how it is broken off."""

import secrets
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import pytest

from relay.backends import anthropic, anthropic_faults
from relay.backends.base import Needs
from relay.errors import Exit, Interrupted, RelayError
from relay.host import clock
from tests.backends.lanes import lane
from tests.backends.legs import DONE, Leg, agent, ask
from tests.service import Fault, Service, do, say

KEY = f"sk-ant-test-{secrets.token_hex(16)}"


@pytest.fixture
def leg(tmp_path: Path) -> Leg:
    return Leg(tmp_path)


def test_nobody_takes_the_leg_by_hand_and_only_commands_are_held(leg: Leg) -> None:
    asked = ask(leg.root, agent())
    assert anthropic.by_hand is False
    assert anthropic.needs(asked) == Needs(readable=(leg.root / "leg.io",))


def test_preflight_names_the_version_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert anthropic.preflight(agent(), Path()).startswith("anthropic 2.")


@pytest.mark.parametrize(("line", "variable"), [({}, "ANTHROPIC_API_KEY"), ({"key": "MY_KEY"}, "MY_KEY")])
def test_a_key_that_is_not_set_is_named(leg: Leg, line: dict[str, str], variable: str) -> None:
    with pytest.raises(RelayError, match=f"`{variable}` is not set") as caught:
        anthropic.preflight(agent(**line), Path())
    assert caught.value.exit_code is Exit.HUMAN
    assert f"export {variable}=..." in caught.value.hint
    taken = anthropic.take(ask(leg.root, agent(**line)), lane())
    assert (taken.ended_by, taken.problem, taken.usage.turns) == ("auth", f"`{variable}` is not set", 0)
    assert anthropic.key(agent(**line)) == f"{variable} is not set"


def test_a_key_that_no_header_may_hold_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-two\nlines-in-it")
    with pytest.raises(RelayError, match="can be no key") as caught:
        anthropic.preflight(agent(), Path())
    assert "sk-ant" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://example.com", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(RelayError, match="is no address"):
        anthropic.preflight(agent(url), Path())


def test_a_service_of_ones_own_needs_a_model(leg: Leg) -> None:
    taken = anthropic.take(ask(leg.root, agent("http://127.0.0.1:1", model=None)), lane())
    assert (taken.ended_by, taken.problem) == ("setup", "agent `claude` names no model")


def test_only_the_key_that_is_named_goes_out(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, f"{KEY}-of-another-service")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MY_KEY", KEY)
    leg.play({"": [do.reply(DONE)]}, key="MY_KEY")
    assert leg.service.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "of-another-service" not in str(leg.service.requests[0].headers)


def test_a_server_on_this_machine_gets_no_key(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    leg.play({"": [do.reply(DONE)]})
    assert KEY not in str(leg.service.requests[0].headers)
    assert anthropic.key(agent(leg.service.url)) == "none needed"


def test_what_relay_toml_says_of_a_model_goes_out(leg: Leg) -> None:
    leg.play({"": [do.reply(DONE)]}, model="claude-sonnet-5-5", effort="high", max_output=5000)
    body = leg.bodies[0]
    assert (body["model"], body["max_tokens"], body["stream"]) == ("claude-sonnet-5-5", 5000, True)
    assert (body["output_config"], body["thinking"]["type"]) == ({"effort": "high"}, "adaptive")


def test_what_relay_toml_leaves_out_is_left_to_the_model(leg: Leg) -> None:
    leg.play({"": [do.reply(DONE)]})
    assert leg.bodies[0]["max_tokens"] == anthropic.MOST
    assert not {"output_config", "thinking", "tool_choice"} & set(leg.bodies[0])


def test_the_prefix_is_stable_and_four_blocks_are_marked(leg: Leg) -> None:
    leg.play({"": [*[do.run(f"echo {number}") for number in range(3)], do.reply(DONE)]})
    first, *_, last = leg.bodies
    assert (last["system"], last["tools"], last["model"]) == (first["system"], first["tools"], first["model"])
    assert last["messages"][0] == first["messages"][0]
    assert "cache_control" in last["system"][-1]
    marked = [
        (at, number)
        for at, message in enumerate(last["messages"])
        for number, block in enumerate(message["content"])
        if "cache_control" in block
    ]
    assert marked == [(0, 0), (4, 0), (6, 0)]


def test_an_answer_without_anything_in_it_does_not_stay_in_the_conversation(leg: Leg) -> None:
    taken = leg.play({"": [Fault("max_tokens", text="")]})
    assert (taken.ended_by, len(leg.bodies)) == ("no-reply", 2)
    assert [message["role"] for message in leg.bodies[1]["messages"]] == ["user"]


def test_a_probe_asks_for_a_few_tokens_and_says_what_came() -> None:
    with Service({"": [say("ok")]}) as service:
        said = anthropic.probe(agent(service.url, effort="high"))
        assert service.requests[0].body["max_tokens"] == anthropic.FEW
    assert said.startswith(f"`claude-opus-5-5` at `{service.url.removeprefix('http://')}` answered in")


def test_a_probe_that_is_refused_says_why() -> None:
    with Service({"": [Fault("auth")]}) as service, pytest.raises(RelayError, match="invalid x-api-key") as caught:
        anthropic.probe(agent(service.url))
    assert caught.value.exit_code is Exit.AGENT


def test_a_service_that_is_not_there_is_waited_for(leg: Leg) -> None:
    with Service({"": [say("ok")]}) as service:
        pass
    asked = ask(leg.root, agent(service.url))
    waits: list[float] = []
    taken = anthropic.take(asked, lane(asked), pause=waits.append)
    assert (taken.ended_by, len(waits)) == ("overload", 7)
    assert "cannot be reached, or hung up: " in (taken.problem or "")
    assert "refused" in (taken.problem or "")


@pytest.mark.parametrize(
    ("value", "seconds"), [("12", 12.0), ("0.5", 0.5), ("Sun, 29 Nov 2026 02:31:00 GMT", 60.0), ("soon", None)]
)
def test_a_wait_is_read_in_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    with clock.fix(datetime(2026, 11, 29, 2, 30, tzinfo=UTC)):
        fault = anthropic_faults.told({"error": {"type": "rate_limit_error"}}, "h", 429, {"retry-after": value})
    assert (fault.kind, fault.after) == ("rate", seconds)


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (None, 502, "overload"),
        ("<html>", 504, "overload"),
        ({"error": "no"}, 413, "context"),
        ({"error": {"type": "timeout_error"}}, 200, "overload"),
        ({"error": {"type": "billing_error", "message": "pay"}}, 402, "quota"),
        ({"error": {"message": "Output blocked by content filtering policy"}}, 400, "refusal"),
        ({"error": {"message": "input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}, 400, "context"),
        ({"error": {"type": "new_error", "message": "?"}}, 418, "bug"),
    ],
)
def test_what_a_gateway_answers_is_sorted_by_its_words_and_its_status(body: object, status: int, kind: str) -> None:
    assert anthropic_faults.told(body, "h", status).kind == kind


@pytest.fixture
def ring() -> Iterator[Callable[[object], str]]:
    """Return what has Relay interrupted half a second later, as its handler of SIGINT does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        raise Interrupted(number)

    def wind(_: object) -> str:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        return "I think, and"

    before = signal.signal(signal.SIGALRM, interrupt)
    yield wind
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interruption_passes_through_a_stream_that_hangs(leg: Leg, ring: Callable[[object], str]) -> None:
    with pytest.raises(Interrupted):
        leg.play({"": [Fault("stall"), say(ring)]})
    assert (len(leg.service.requests), leg.waits, leg.told) == (1, [], [])


def test_an_interruption_ends_the_command_that_runs(leg: Leg, ring: Callable[[object], str]) -> None:
    leg.on_told = ring  # the command is the last thing that is told of
    with pytest.raises(Interrupted):
        leg.play({"": [do.run("echo $$ > pid; exec sleep 600")]})
    assert not Path(f"/proc/{(leg.root / 'leg/pid').read_text().strip()}").exists()

"""What a service of OpenAI's protocols says instead of an answer, by the SDK itself, and what becomes of the leg."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from relay.backends import openai_faults, openai_service
from relay.backends.talk import Fault as Broken
from tests.backends.openai_legs import DONE, KEY, VARIABLE, agent, ask, played, take
from tests.service import Fault, Hits, Service, Turn, do


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize(
    ("fault", "ended_by", "words"),
    [
        (Fault("auth"), "auth", f"refuses the key in `{VARIABLE}`"),
        (Fault("forbidden"), "auth", "does not have access to model"),
        (Fault("quota"), "quota", "insufficient_quota: You exceeded your current quota"),
        (Fault("spend"), "quota", "Billing hard limit"),
        (Fault("status", status=402, message="Insufficient Balance"), "quota", "Insufficient Balance"),
        (Fault("context"), "setup", "longer than the model takes"),
        (Fault("bad_request"), "setup", "400 invalid_value: Invalid value: 'input'"),
        (Fault("not_found"), "setup", "The model `gpt-6-sol` does not exist"),
        (Fault("status", status=422, type="odd", message="no such field"), "setup", "422 odd: no such field"),
        (Fault("status", status=400, type="content_filter", message="It was filtered."), "refusal", "It was filtered."),
        (Fault("refusal", text="I will not."), "refusal", "refused"),
        (Fault("rate_limit", retry_after=7200), "quota", "Rate limit reached"),
        (Fault("overloaded"), "overload", "server_is_overloaded"),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
def test_what_no_wait_mends_ends_the_leg_by_its_name(
    tmp_path: Path, fault: Fault, ended_by: str, words: str, api: str
) -> None:
    leg = played(tmp_path, {"": [fault, do.reply(DONE)]}, api=api)
    assert leg.taken.ended_by == ended_by
    assert words in (leg.taken.problem or "")
    assert KEY not in (leg.taken.problem or "")
    assert KEY[-4:] not in (leg.taken.problem or "")
    assert leg.taken.reply is None


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize(
    "fault",
    [
        Fault("overloaded", times=2),
        Fault("server", times=2),
        Fault("status", status=529, times=2),
        Fault("refuse", times=2),
        Fault("drop", times=2, after=2),
        Fault("drop", times=2, after=6),
        Fault("malformed", times=2, after=2),
        Fault("stream_error", times=2, after=4),
        Fault("stream_error", times=2, after=4, type="server_is_overloaded"),
        Fault("rate_limit", times=2, retry_after=0.5),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.after}",
)
def test_what_passes_is_waited_out_and_no_tool_runs_twice(tmp_path: Path, fault: Fault, api: str) -> None:
    script = {"": [fault, do.run("echo once >> count"), do.reply(DONE)]}
    leg = played(tmp_path, script, api=api)
    assert leg.taken.ended_by == "reply", leg.taken
    assert (tmp_path / "leg/count").read_text() == "once\n"
    assert len(leg.waits) == len(leg.texts("wait")) == 2
    key = "input" if api == "responses" else "messages"
    assert leg.bodies[0][key] == leg.bodies[1][key] == leg.bodies[2][key]
    if fault.kind == "rate_limit":
        assert min(leg.waits) >= 0.5


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_service_that_falls_silent_ends_the_leg_as_idle(tmp_path: Path, api: str) -> None:
    with Service({"": [Fault("stall", seconds=30), do.reply(DONE)]}) as service:
        leg = take(ask(tmp_path, agent(service, api=api), idle=0.4))
    assert leg.taken.ended_by == "idle", leg.taken


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_an_answer_that_is_cut_off_goes_on_once(tmp_path: Path, api: str) -> None:
    cut = Fault("max_tokens", text="I began, and")
    leg = played(tmp_path, {"": [cut, do.reply(DONE)]}, api=api)
    assert (leg.taken.ended_by, len(leg.bodies)) == ("reply", 2)
    assert "I began, and" in json.dumps(leg.bodies[1])
    leg = played(tmp_path, {"": [cut, cut, do.reply(DONE)]}, api=api)
    assert (leg.taken.ended_by, len(leg.bodies)) == ("no-reply", 2)


def test_what_is_left_of_a_cut_off_answer_is_what_the_service_takes_again(tmp_path: Path) -> None:
    script = {"": Hits([Turn(thinking="Long.", stop="max_tokens"), do.reply(DONE)])}
    leg = played(tmp_path, script)
    first, second = leg.bodies
    assert leg.taken.ended_by == "reply"
    assert [item["type"] for item in second["input"][len(first["input"]) :]] == ["message"]


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_call_in_a_cut_off_answer_is_answered_and_not_run(tmp_path: Path, api: str) -> None:
    cut = Turn("I write.", do.write("half.txt", "half"), stop="max_tokens")
    leg = played(tmp_path, {"": [cut, do.reply(DONE)]}, api=api)
    assert leg.taken.ended_by == "reply"
    assert not (tmp_path / "leg/half.txt").exists()
    assert "Not run" in json.dumps(leg.bodies[1])


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_used_up_plan_says_when_it_is_there_again(tmp_path: Path, api: str) -> None:
    moment = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    leg = played(tmp_path, {"": [Fault("quota", resets_at=moment.timestamp())]}, api=api)
    assert (leg.taken.ended_by, leg.taken.until) == ("quota", "2031-05-06T07:08:09Z")


def _told(body: object, status: int | None = None, headers: Mapping[str, str] = {}) -> Broken:
    return openai_faults.told(body, openai_service.of(agent(None)), status, headers)


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}, 500, "context"),
        (
            {
                "code": 400,
                "message": "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
                "type": "exceed_context_size_error",
            },
            400,
            "context",
        ),
        (
            {"message": "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens"},
            400,
            "context",
        ),
        (
            {"message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192."},
            400,
            "context",
        ),
        (
            {
                "message": "Request too large for gpt-6-sol on tokens per min (TPM): Limit 30000, Requested 50000.",
                "code": "rate_limit_exceeded",
            },
            429,
            "context",
        ),
        ("model 'qwen9' not found", 404, "bug"),
        ({"message": "tools param requires --jinja flag", "code": 500, "type": "server_error"}, 500, "bug"),
        (
            {"message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'},
            400,
            "bug",
        ),
        ({"message": "registry.ollama.ai/library/phi does not support tools"}, 400, "bug"),
        ({"message": "Loading model", "type": "unavailable_error", "code": 503}, 503, "overload"),
        ({"code": "rate_limit_exceeded", "message": "Slow down."}, None, "rate"),
        ({"code": "server_error", "message": "Sorry."}, None, "overload"),
        (
            {"code": "invalid_prompt", "message": "Your prompt was flagged as violating our usage policy."},
            None,
            "refusal",
        ),
        ({"message": "Incorrect API key provided"}, 400, "auth"),
        (None, 502, "overload"),
        (None, None, "overload"),
    ],
)
def test_what_local_servers_and_gateways_say_is_understood(body: object, status: int | None, kind: str) -> None:
    assert _told(body, status).kind == kind


@pytest.mark.parametrize(
    ("headers", "words", "after"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, "", 0.25),
        ({}, "Please try again in 1.5s.", 1.5),
        ({}, "Please try again in 250ms.", 0.25),
        ({}, "Please try again in 6m0s.", 360.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "Slow down.", None),
    ],
)
def test_how_long_to_wait_is_read_from_headers_and_words(
    headers: Mapping[str, str], words: str, after: float | None
) -> None:
    assert _told({"code": "rate_limit_exceeded", "message": words}, 429, headers).after == after


def test_when_a_limit_ends_may_stand_in_a_header() -> None:
    told = _told(
        {"code": 429, "message": "Rate limit exceeded: free-models-per-day."},
        429,
        {"x-ratelimit-reset": "1935990489000"},
    )
    assert (told.kind, told.until) == ("rate", "2031-05-08T07:08:09Z")


def test_the_ends_of_a_key_are_not_shown() -> None:
    said = "Incorrect key: sk-proj-****abcd or sk-12345...wxyz. You can find yours in the settings."
    assert _told({"message": said}, 403).problem.endswith(
        "answered 403: Incorrect key: [redacted] or [redacted] You can find yours in the settings."
    )

"""Who pays for Claude Code is decided once and said; the person's login is lent, never spent, and never let go."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relay.backends import claude_code, claude_login
from relay.backends.claude_login import Loan
from relay.errors import Exit, RelayError
from relay.terms import Agent, Limits
from tests.backends import claude
from tests.backends.claude import Leg, replied
from tests.service import Fault, Script, do

Opened = Callable[[Script], Leg]

HOUR = 3600
OWN = "sk-ant-oat01-persons-own"
RENEWS = "sk-ant-ort01-renews-it"


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    with claude.opened(tmp_path, monkeypatch) as made:
        yield made


def log_in(seconds: float = 8 * HOUR, **more: Any) -> Path:  # noqa: ANN401 - fields of a login
    """Log the person in, for so many seconds, and return the file."""
    login = {
        "accessToken": OWN,
        "refreshToken": RENEWS,
        "expiresAt": int((time.time() + seconds) * 1000),
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
        "rateLimitTier": "default",
    }
    path = Path.home() / ".claude" / ".credentials.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"claudeAiOauth": {**login, **more}, "mcpOAuth": {"other": "thing"}}))
    return path


def agent(**fields: Any) -> Agent:  # noqa: ANN401 - fields of an agent
    return Agent(name="claude", backend="claude-code", vendor="anthropic", **fields)


# --- who pays


def test_a_person_who_is_logged_in_pays_by_the_subscription_even_with_a_key_in_the_environment(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in()
    monkeypatch.setenv("ANTHROPIC_API_KEY", claude.KEY)
    leg = opened({"": [do.run("env"), do.reply(claude.DONE)]})
    taken = leg.take(leg.ask(billing="subscription", env={"ANTHROPIC_API_KEY": claude.KEY}))
    assert (taken.ended_by, taken.billing) == ("reply", "subscription")
    headers = leg.service.requests[0].headers
    assert headers["authorization"] == f"Bearer {OWN}"
    assert "x-api-key" not in headers
    assert claude.KEY not in leg.of("result")[0].text
    assert claude_login.payer(agent()).billing == "subscription"


def test_a_key_pays_where_nobody_is_logged_in_or_billing_says_so(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", claude.KEY)
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", OWN)
    leg = opened({"": [do.run("env"), do.reply(claude.DONE)]})
    taken = leg.take(leg.ask(billing="api"))
    assert taken.billing == "api"
    headers = leg.service.requests[0].headers
    assert headers["x-api-key"] == claude.KEY
    assert OWN not in json.dumps(dict(headers)) + leg.of("result")[0].text


def test_a_key_may_stand_in_a_variable_of_any_name(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORK_KEY", claude.KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-somebody-elses")
    log_in()
    leg = opened({"": [do.reply(claude.DONE)]})
    assert leg.take(leg.ask(key="WORK_KEY")).billing == "api"
    assert leg.service.requests[0].headers["x-api-key"] == claude.KEY


def test_the_key_that_a_login_at_the_console_made_pays_as_it_does_for_the_person(opened: Opened) -> None:
    (Path.home() / ".claude.json").write_text(json.dumps({"primaryApiKey": claude.KEY}))
    leg = opened({"": [do.reply(claude.DONE)]})
    assert leg.take(leg.ask()).billing == "api"
    assert leg.service.requests[0].headers["x-api-key"] == claude.KEY
    assert claude_code.key(agent()) == "api, by the key that `claude auth login` made"


def test_a_setting_that_would_make_a_key_pay_instead_of_the_subscription_ends_the_leg(opened: Opened) -> None:
    log_in()
    helper = {"apiKeyHelper": f"echo {claude.KEY}"}
    (Path.home() / ".claude" / "settings.json").write_text(json.dumps(helper))
    leg = opened({"": [do.run("true"), do.run("true"), do.reply(claude.DONE)]})
    taken = leg.take(leg.ask(billing="subscription", settings="user"))
    assert (taken.ended_by, taken.reply) == ("setup", None)
    assert "would be paid by a key, from `apiKeyHelper`" in (taken.problem or "")


def test_a_token_of_a_login_is_one(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", OWN)
    leg = opened({"": [do.reply(claude.DONE)]})
    assert leg.take(leg.ask(billing="subscription")).billing == "subscription"
    assert leg.service.requests[0].headers["authorization"] == f"Bearer {OWN}"


def test_a_login_is_not_sent_to_a_service_that_is_not_its_own_unless_billing_says_so() -> None:
    log_in()
    with pytest.raises(RelayError, match="`claude` is not logged in and has no key"):
        claude_login.payer(agent(base_url="http://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "is not logged in and has no key"),
        ({"billing": "subscription"}, "is to be paid by a subscription, and nobody is logged in"),
        ({"billing": "api"}, "has no key in `ANTHROPIC_API_KEY`"),
        ({"key": "WORK_KEY"}, "has no key in `WORK_KEY`"),
    ],
)
def test_a_leg_that_nobody_pays_does_not_start(opened: Opened, fields: dict[str, Any], problem: str) -> None:
    leg = opened({"": [do.reply(claude.DONE)]})
    with pytest.raises(RelayError, match=problem) as caught:
        claude_code.preflight(agent(**fields), leg.tree)
    assert caught.value.exit_code is Exit.HUMAN
    assert "claude auth login" in caught.value.hint
    taken = leg.take(leg.ask(**fields))
    assert (taken.ended_by, taken.reply) == ("auth", None)
    assert leg.service.requests == []


def test_who_is_logged_in_passes_the_preflight_and_the_line_up_says_who_pays(opened: Opened) -> None:
    leg = opened({"": [do.reply(claude.DONE)]})
    log_in()
    assert claude_code.preflight(agent(), leg.tree).startswith("2.1.")
    assert claude_code.key(agent()) == f"subscription, by the login in `{Path.home() / '.claude'}`"
    assert claude_code.key(agent(billing="api")) == "agent `claude` has no key in `ANTHROPIC_API_KEY`"


def test_a_leg_reaches_its_service_and_where_logins_are_renewed_only_if_it_must() -> None:
    log_in()
    assert claude_login.payer(agent(), 4 * HOUR).hosts == (claude_login.SERVICE,)
    assert claude_login.payer(agent(), 8 * HOUR).hosts == (claude_login.SERVICE, *claude_login.RENEWAL)


def test_a_used_up_subscription_is_waited_for_until_it_resets(opened: Opened) -> None:
    log_in()
    leg = opened({"": [Fault("quota", resets_at=1796083200.0), do.reply(claude.DONE)]})
    taken = leg.take(leg.ask(billing="subscription"))
    assert (taken.ended_by, taken.until) == ("quota", "2026-12-01T00:00:00Z")
    assert "limit" in (taken.problem or "")


# --- the login that is lent


LOOK = """\
env; tr '\\0' '\\n' < /proc/$PPID/environ; tr '\\0' ' ' < /proc/$PPID/cmdline
timeout 0.2 cat /proc/$PPID/fd/8 < /dev/null; grep -r sk-an[t]- $CLAUDE_CONFIG_DIR"""
"""All the places where a command of the agent could find a key."""


def test_what_pays_is_nowhere_for_the_agent_s_commands_to_find(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    own = log_in()
    before = own.read_bytes()
    monkeypatch.setenv("WORK_KEY", claude.KEY)
    leg = opened({"": [do.run(LOOK), do.reply(claude.DONE)]})
    for billing, jailed in (("api", False), ("subscription", False), ("api", True), ("subscription", True)):
        asked = leg.ask(billing=billing, key="WORK_KEY")
        taken = leg.take(asked, cell=leg.cell(asked) if jailed else None)
        assert (replied(taken), taken.billing) == (claude.DONE, billing)
        found = leg.of("result")[-2].text
        assert "CLAUDE_CONFIG_DIR=" in found
        assert "--output-format" in found
        assert "sk-ant-" not in found
    assert own.read_bytes() == before
    assert list(leg.io.rglob(".credentials.json")) == []
    assert sorted(path.name for path in own.parent.iterdir()) == [own.name]


def test_a_login_that_was_renewed_during_the_leg_is_the_person_s_at_once(opened: Opened) -> None:
    own = log_in(600)
    renewed = json.loads(own.read_text())["claudeAiOauth"]
    renewed |= {"accessToken": "new", "refreshToken": "newer", "expiresAt": int((time.time() + 8 * HOUR) * 1000)}
    given = json.dumps({"claudeAiOauth": renewed})
    write = f"cd $CLAUDE_CONFIG_DIR && echo '{given}' > tmp.new && mv tmp.new .credentials.json"
    leg = opened({"": [do.run(write), do.run("sleep 0.1; sleep 60"), do.reply(claude.DONE)]})
    taken = leg.take(leg.ask(billing="subscription", limits=Limits(seconds=claude.BEGINS)))
    assert taken.ended_by == "timeout"
    assert json.loads(own.read_text()) == {"claudeAiOauth": renewed, "mcpOAuth": {"other": "thing"}}
    assert own.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "change",
    [
        {"subscriptionType": "free", "accessToken": "evil", "refreshToken": "evil", "expiresAt": 1 << 50},
        {"accessToken": "evil", "refreshToken": "evil", "expiresAt": 1},
        {"accessToken": "evil", "refreshToken": "", "expiresAt": 1 << 50},
        {"refreshToken": "evil", "expiresAt": 1 << 50},
        {"accessToken": {}, "refreshToken": "evil", "expiresAt": 1 << 50},
    ],
    ids=["another-account", "earlier", "without-renewal", "the-same", "no-text"],
)
def test_what_is_no_renewal_is_not_brought_back(tmp_path: Path, change: dict[str, Any]) -> None:
    own = log_in(60)
    before = own.read_bytes()
    with Loan(tmp_path) as loan:
        lent = tmp_path / ".credentials.json"
        login = json.loads(lent.read_text())["claudeAiOauth"]
        lent.write_text(json.dumps({"claudeAiOauth": login | change}))
        assert not loan.bring_back()
    assert own.read_bytes() == before


@pytest.mark.parametrize("planted", ["not JSON", "[]", '{"claudeAiOauth": 3}', ""])
def test_junk_is_not_brought_back(tmp_path: Path, planted: str) -> None:
    own = log_in(60)
    before = own.read_bytes()
    with Loan(tmp_path) as loan:
        (tmp_path / ".credentials.json").write_text(planted)
        assert not loan.bring_back()
    assert own.read_bytes() == before


def test_a_login_that_the_person_renewed_meanwhile_is_kept(tmp_path: Path) -> None:
    own = log_in(60)
    with Loan(tmp_path) as loan:
        lent = tmp_path / ".credentials.json"
        login = json.loads(lent.read_text())["claudeAiOauth"]
        log_in(9 * HOUR, accessToken="persons", refreshToken="persons")
        newest = own.read_bytes()
        later = {"accessToken": "legs", "refreshToken": "legs", "expiresAt": login["expiresAt"] + 1}
        lent.write_text(json.dumps({"claudeAiOauth": login | later}))
        assert not loan.bring_back()
    assert own.read_bytes() == newest

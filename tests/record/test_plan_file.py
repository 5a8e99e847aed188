"""plan.toml: whoever reads a plan knows from then on what its variables hold."""

import pytest

from relay.host import redact
from relay.record import plan_file
from relay.terms import Agent, Budget, Plan, Worktree

PLAN = Plan(
    schema=1,
    run="261129-0230-fix-login",
    title="Fix login",
    created="2026-11-29T02:30:00Z",
    base_ref="refs/heads/main",
    base="0" * 40,
    relay_version="1",
    spec_sha256="0" * 64,
    files={},
    phases=(),
    agents=(Agent(name="a", backend="openai", vendor="openai", key="THE_LOGIN", env=("THE_LINE",)),),
    budget=Budget(usd=1.5),
    worktree=Worktree(env=("THE_PLACE",)),
)


def test_a_plan_that_is_written_is_read_again() -> None:
    assert plan_file.decode(plan_file.encode(PLAN), "plan.toml") == PLAN


@pytest.mark.parametrize("name", ["THE_LOGIN", "THE_LINE", "THE_PLACE"])
def test_what_the_variables_of_a_plan_hold_is_a_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "quartz7-Vixen9")
    redact.forget()
    assert redact.own().text("quartz7-Vixen9") == "quartz7-Vixen9"
    plan_file.decode(plan_file.encode(PLAN), "plan.toml")
    assert redact.own().text("quartz7-Vixen9") == f"[redacted {name}]"

"""What a leg may have changed: the same difference is a breach, drift or nothing, by boundary and by jail."""

import pytest

from relay.rules import boundary
from relay.terms import Boundary

BEFORE = {
    "refs/heads/main": "1",
    "config": "1",
    "hooks/pre-commit": "1",
    "checkout/a.py": "1",
    "worktree/.git": "1",
    "worktrees/other/HEAD": "1",
    "tree/HEAD": "1",
    "tree/b.py": "1",
}
SHARED = ["refs/heads/main", "config", "hooks/pre-commit", "checkout/a.py", "worktrees/other/HEAD"]
OWN = ["tree/HEAD", "tree/b.py", "tree"]


def crossed(name: str, rule: Boundary, jail: str) -> str:
    """Change one name, and say what that is: `breach`, `drift` or nothing."""
    found = boundary.compare(BEFORE, {**BEFORE, name: "2"}, boundary=rule, jail=jail)
    assert len(found.breaches) + len(found.drift) <= 1
    return "breach" * bool(found.breaches) + "drift" * bool(found.drift)


def test_nothing_changed_is_nothing_crossed() -> None:
    assert boundary.compare(BEFORE, dict(BEFORE), boundary="verify-only", jail="off") == boundary.Crossed()


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("rule", ["implement", "verify-only"])
def test_what_is_shared_is_a_breach_without_a_jail_and_drift_with_one(name: str, rule: Boundary) -> None:
    assert crossed(name, rule, "off") == "breach"
    assert crossed(name, rule, "bwrap") == crossed(name, rule, "seatbelt") == "drift"


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("jail", ["off", "bwrap"])
def test_a_legs_own_files_are_free_to_a_worker_and_closed_to_a_judge_in_a_jail_too(name: str, jail: str) -> None:
    assert crossed(name, "implement", jail) == ""
    assert crossed(name, "verify-only", jail) == "breach"


@pytest.mark.parametrize("rule", ["implement", "verify-only"])
@pytest.mark.parametrize("jail", ["off", "bwrap"])
def test_the_entry_of_the_legs_own_worktree_is_nobodys_to_change(rule: Boundary, jail: str) -> None:
    assert crossed("worktree/.git", rule, jail) == "breach"


def test_each_change_is_named_the_way_a_person_would_and_in_order() -> None:
    after = {**BEFORE, "config": "2", "refs/tags/v1": "1"}
    del after["hooks/pre-commit"]
    found = boundary.compare(BEFORE, after, boundary="implement", jail="off")
    assert found.breaches == ("config changed", "hooks/pre-commit is gone", "refs/tags/v1 appeared")
    assert found.drift == ()

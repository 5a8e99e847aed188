"""What of a change steers others: found wherever it lies, and ordinary work is not."""

import pytest

from relay.rules import steering

STEERS = [
    ".claude/settings.json",
    "sub/.claude/skills/x/SKILL.md",
    ".codex/config.toml",
    ".mcp.json",
    "web/.mcp.json",
    ".cursor/rules/all.mdc",
    "AGENTS.md",
    "web/CLAUDE.md",
    ".husky/pre-commit",
    ".gitattributes",
    "deep/down/.gitattributes",
    ".gitmodules",
    ".pre-commit-config.yaml",
    ".envrc",
    ".vscode/tasks.json",
    ".devcontainer/devcontainer.json",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    "Jenkinsfile",
    "conftest.py",
    "tests/unit/conftest.py",
    "src/sitecustomize.py",
    ".npmrc",
    "crate/.cargo/config.toml",
    "relay.toml",
    ".relay/phases/review.toml",
    "phases/review.toml",
    "prompts/review.md",
    ".worktreeinclude",
]
PLAIN = [
    "src/app.py",
    "package.json",
    "pyproject.toml",
    "Makefile",
    "docs/AGENTS.md.txt",
    "my.mcp.json",
    "src/phases/moon.py",
    "assets/prompts/hello.md",
    "docs/relay.toml",
    "docs/.github/workflows/ci.yml",
    "tests/test_conftest.py",
    "claude/settings.json",
    ".claude",
    "husky/pre-commit",
    "notes/Jenkinsfile",
]


@pytest.mark.parametrize("path", STEERS)
def test_what_tools_obey_is_found_wherever_they_look_for_it(path: str) -> None:
    found = steering.steering(["src/app.py", path])
    assert list(found.values()) == [[path]]


@pytest.mark.parametrize("path", PLAIN)
def test_ordinary_work_steers_nobody(path: str) -> None:
    assert steering.steering([path]) == {}


@pytest.mark.parametrize("path", [".Claude/settings.json", "agents.MD", "CONFTEST.PY", ".GitAttributes", "Phases/x"])
def test_letters_of_the_other_case_hide_nothing(path: str) -> None:
    assert list(steering.steering([path]).values()) == [[path]]


def test_every_sort_has_a_reason_and_no_path_counts_twice() -> None:
    found = steering.steering([*STEERS, *STEERS, *PLAIN])
    assert set(found) == set(steering.STEERING)
    assert sorted(path for paths in found.values() for path in paths) == sorted(STEERS)


def test_what_steers_is_told_in_a_line_for_each_sort_that_stays_short() -> None:
    many = [f"t{number}/conftest.py" for number in range(9)]
    named = "t0/conftest.py, t1/conftest.py, t2/conftest.py, t3/conftest.py, t4/conftest.py and 4 more"
    assert steering.told([".husky/pre-commit", *many]) == [
        "run by git, or at a commit: .husky/pre-commit",
        f"loaded by tests or by Python without being named: {named}",
    ]
    assert steering.told(["src/app.py"]) == []

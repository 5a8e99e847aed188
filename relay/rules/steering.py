"""Changed paths that steer others: what a tool, a service or a person's machine obeys when it meets the change.

Nothing of it steers the run that made it: phases, prompts, config and instructions come from the base commit. It is
said all the same, to the judge and to the person, because it takes effect once the change is accepted. Left out is what
ordinary work changes every day, such as package.json, pyproject.toml or a Makefile: the diff shows it, and a warning
that always stands is not read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

STEERING: Final[dict[str, tuple[str, ...]]] = {
    "settings, hooks and tools of coding agents": (
        *(".claude/", ".codex/", ".cursor/", ".gemini/", ".agents/", ".windsurf/", ".mcp.json", ".aider.conf.yml"),
        *(".cursorrules", ".windsurfrules"),
    ),
    "instructions for coding agents": (
        *("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md"),
        *("/.github/copilot-instructions.md", "/.github/instructions/"),
    ),
    "run by git, or at a commit": (
        *(".gitattributes", ".gitmodules", ".githooks/", ".husky/"),
        *(".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "lefthook.yml", ".lefthook.yml", ".lefthook/"),
    ),
    "run by a shell or an editor that opens the folder": (
        *(".envrc", "mise.toml", ".mise.toml", ".vscode/", ".idea/", ".zed/", ".devcontainer/", ".devcontainer.json"),
    ),
    "run by CI, often with its secrets": (
        *("/.github/workflows/", "/.github/actions/", "/.gitlab-ci.yml", "/.gitlab/ci/", "/.circleci/", "/.buildkite/"),
        *("/.travis.yml", "/.drone.yml", "/.woodpecker/", "/.woodpecker.yml", "/Jenkinsfile", "/azure-pipelines.yml"),
    ),
    "loaded by tests or by Python without being named": (
        *("conftest.py", "pytest.ini", "tox.ini", "noxfile.py", "sitecustomize.py", "usercustomize.py"),
    ),
    "where packages come from": (".npmrc", ".yarnrc", ".yarnrc.yml", ".cargo/", "pip.conf", "bunfig.toml"),
    "Relay's own, for the runs that follow": ("/relay.toml", "/.relay/", "/phases/", "/prompts/", "/.worktreeinclude"),
}
"""Why a path steers, and which do: a name, or a folder with `/` at its end, at any depth; at the top with `/` before.

Letters of either case are found, since some file systems know no difference.
"""

SHOWN: Final = 5
"""How many paths of one sort are named; the others are counted."""


def steering(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths that steer, by why."""
    listed = sorted(set(paths))
    found = {
        why: [path for path in listed if any(_fits(path.lower(), entry.lower()) for entry in sort)]
        for why, sort in STEERING.items()
    }
    return {why: some for why, some in found.items() if some}


def _fits(path: str, entry: str) -> bool:
    """Tell whether a path is what an entry names, or lies below it."""
    top, name = entry.startswith("/"), "/" + entry.lstrip("/")
    if name.endswith("/"):
        return f"/{path}".startswith(name) if top else name in f"/{path}"
    return f"/{path}" == name if top else f"/{path}".endswith(name)


def told(paths: Iterable[str]) -> list[str]:
    """Tell what steers, a line for each why."""
    return lines(steering(paths))


def lines(found: Mapping[str, Sequence[str]]) -> list[str]:
    """Write what was found, a line for each why."""
    return [f"{why}: {_named(paths)}" for why, paths in found.items()]


def _named(paths: Sequence[str]) -> str:
    more = len(paths) - SHOWN
    return ", ".join(paths[:SHOWN]) + (f" and {more} more" if more > 0 else "")

"""`relay init`: a relay.toml to start from."""

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Final

import click

from relay.commands import common
from relay.errors import RelayError
from relay.host import files, term
from relay.host.repository import Repository

SAMPLE: Final = """\
# Who takes which leg in this repository. A run reads this file from the commit it starts from: commit what you change.
{base}
phases = ["implement", "review", "acceptance"]

{agents}
[phase.implement]
agent = "{worker}"

[phase.review]
agent = "{reviewer}"

[phase.acceptance]
agent = "{judge}"

# Commands that Relay runs after every work leg and at acceptance, whatever an agent says.
[checks]
# test = "python3 -m pytest -q"

# What makes a fresh worktree fit to work in: ignored files to copy, and commands; and which variables of your
# environment these and all checks get. An agent gets those that `env` in its own line names.
[worktree]
# copy = [".env.test"]
# setup = ["uv sync --frozen"]
# env = ["DATABASE_URL"]

# What commands of agents and checks reach of the network: "off", "host", or a list such as ["packages.example"].
[jail]
network = "off"
"""

PERSON: Final = """\
# A person writes the change: `relay run` says where, and `relay resume` takes the reply.
[agents.person]
backend = "human"
"""

MECHANICAL: Final = """\
# Any program can take a leg. It gets the prompt on stdin and a worktree of its own as its folder.
# With reply = "exit" its exit code is the reply: a judge approves with 0, and anything else is a finding.
# This one looks for conflict markers and stray blanks; put your linter or your tests here.
[agents.tidy]
backend = "command"
command = ["git", "show", "--check", "--format=", "HEAD"]
reply = "exit"

# The last judge. Relay itself runs the command of every criterion of the spec; this one adds nothing to that.
[agents.criteria]
backend = "command"
command = ["true"]
reply = "exit"

# A review by a model must be another vendor's than the work: "claude-code", "codex", "anthropic" or "openai" are
# backends, and `relay agents` says whether a key or a login is found.
# [agents.reviewer]
# backend = "codex"
"""

MODELS: Final = {
    "anthropic": (("claude", "claude-code", "claude"), ("ANTHROPIC_API_KEY", "anthropic", "claude")),
    "openai": (("codex", "codex", "codex"), ("OPENAI_API_KEY", "openai", "gpt")),
}
"""By vendor: what shows that a person has it, a program or a key; the backend for it; a name for the agent."""


@click.command("init")
@common.everywhere
def command() -> int:
    """Write a relay.toml to start from, if there is none, and say what to do next."""
    from relay.host import git, repository
    from relay.record import config

    repo = repository.discover(common.folder())
    if repo.top is None:
        raise RelayError("a bare repository has no checkout to write relay.toml into", hint="relay -C CHECKOUT init")
    path = repo.top / config.NAME
    commits = git.resolve(repo, "HEAD") is not None
    present = os.path.lexists(path)
    if present:
        config.parse(files.read_below(repo.top, config.NAME), config.NAME)
        term.say(f"`{path}` is there already, and can be read; nothing was written")
    else:
        text = sample(git.head_branch(repo) or "")
        config.parse(text.encode(), config.NAME)
        files.write(path, text.encode(), 0o644)
        term.say(f"wrote `{path}`")
    term.event("init", path=str(path), written=not present, commits=commits)
    if not commits:
        term.say(f"{term.style('warning:', 'yellow')} the repository has no commits yet, and a run starts from one")
    term.hint("relay doctor" if present else _next(repo, path, commits=commits))
    return 0


def sample(branch: str) -> str:
    """Return the text of a relay.toml for a repository that has this branch checked out, or none.

    Whoever has models of two vendors gets a line-up in which they check each other.
    """
    name = json.dumps(branch.removeprefix("refs/heads/"), ensure_ascii=False)
    base = f"base = {name}" if branch else '# base = "main"'
    found = [one for one in map(_found, MODELS) if one is not None]
    lines = [f'# {sign} is there.\n[agents.{agent}]\nbackend = "{backend}"\n' for sign, backend, agent in found]
    names = [agent for _, _, agent in found]
    if len(found) == len(MODELS):
        worker, reviewer, judge = names[0], names[1], names[0]
    else:
        worker, reviewer, judge = (*names, "person")[0], "tidy", "criteria"
        lines = [*(lines or [PERSON]), MECHANICAL]
    return SAMPLE.format(base=base, agents="\n".join(lines), worker=worker, reviewer=reviewer, judge=judge)


def _found(vendor: str) -> tuple[str, str, str] | None:
    """Return what shows that a person has a vendor's models, the backend for them, and a name; None if nothing does."""
    for sign, backend, agent in MODELS[vendor]:
        if shutil.which(sign) or os.environ.get(sign):
            return f"`{sign}`", backend, agent
    return None


def _next(repo: Repository, path: Path, *, commits: bool) -> str:
    """Say what to type next, a line each."""
    from relay.host import git
    from relay.report import health

    where = "" if Path.cwd() == repo.top else f"-C {shlex.quote(str(repo.top))} "
    return "\n".join(
        [
            f"edit `{path}`, then:",
            *([health.INTRODUCE] if git.identity(repo) == git.NOBODY else []),
            f"git {where}add {'relay.toml' if commits else '.'} && git {where}commit -m 'Line up the agents'",
            "relay doctor",
            "relay new NAME, and edit it",
            "relay run tasks/NAME.md",
        ]
    )

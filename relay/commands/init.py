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

# A person writes the change: `relay run` says where, and `relay resume` takes the reply.
[agents.person]
backend = "human"

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

# A program that asks a model writes JSON to the file that RELAY_REPLY names; `relay agents schema` prints its form.
# `vendor` says whose model it is; a review must be another vendor's than the work.{found}
# [agents.model]
# backend = "command"
# command = ["/path/to/your/program"]
# vendor = "who made the model"

[phase.implement]
agent = "person"

[phase.review]
agent = "tidy"

[phase.acceptance]
agent = "criteria"

# Commands that Relay runs after every work leg and at acceptance, whatever an agent says.
[checks]
# test = "python3 -m pytest -q"

# What makes a fresh worktree fit to work in: ignored files to copy, and commands; and which variables of your
# environment these and all checks get. An agent gets those that `env` in its own line names.
[worktree]
# copy = [".env.test"]
# setup = ["uv sync --frozen"]
# env = ["DATABASE_URL"]
"""

KNOWN: Final = {"claude": "claude-code", "codex": "codex"}
"""Programs that people have, and the backends for them that this version does not have."""


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
    """Return the text of a relay.toml for a repository that has this branch checked out, or none."""
    name = json.dumps(branch.removeprefix("refs/heads/"), ensure_ascii=False)
    base = f"base = {name}" if branch else '# base = "main"'
    found = [program for program in KNOWN if shutil.which(program)]
    names = " and ".join(f"`{program}`" for program in found)
    backends = " and ".join(f"`{KNOWN[program]}`" for program in found)
    note = f"\n# On PATH: {names}; this version has no backend {backends}, so put it behind a program." if found else ""
    return SAMPLE.format(base=base, found=note)


def _next(repo: Repository, path: Path, *, commits: bool) -> str:
    """Say what to type next, a line each."""
    where = "" if Path.cwd() == repo.top else f"-C {shlex.quote(str(repo.top))} "
    return "\n".join(
        [
            f"edit `{path}`, then:",
            f"git {where}add {'relay.toml' if commits else '.'} && git {where}commit -m 'Line up the agents'",
            "relay doctor",
            "relay new NAME, and edit it",
            "relay run tasks/NAME.md",
        ]
    )

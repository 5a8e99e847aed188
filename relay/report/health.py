"""Whether everything is there that a run needs: the machine, the repository, the line-up; each look says one thing."""

import os
import platform
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from relay import telling, ways
from relay.backends import prices, purse
from relay.errors import RelayError
from relay.host import files, git, gitenv, proc, repository
from relay.host.repository import Repository
from relay.record import catalog, config
from relay.record import ledger as ledgers
from relay.record.config import Config
from relay.report import health_repo, lineup
from relay.terms import Agent, Limits, Struct

GIT: Final = (2, 39)
"""The oldest git that Relay runs on: merge-tree --write-tree, and ref updates that are synced to disk."""

LITTLE: Final = 2 << 30
"""Bytes of free disk below which a run may fill it."""

TOO_LITTLE: Final = 200 << 20
"""Bytes of free disk below which a run is sure to fail."""

JAIL: Final = "boundaries are watched, not enforced; a breach voids the leg, but nothing prevents it"

INTRODUCE: Final = "git config --global user.name 'YOUR NAME' && git config --global user.email YOU@EXAMPLE.ORG"
"""What to type where git does not know who commits."""

Level = Literal["ok", "warn", "FAIL"]


class Look(Struct, frozen=True, kw_only=True):
    """What one look found; `hint` says what to do about it."""

    level: Level
    text: str
    hint: str = ""


def ok(text: str) -> Look:
    """Say that something is as it should be."""
    return Look(level="ok", text=text)


def warn(text: str, hint: str) -> Look:
    """Say what may go wrong."""
    return Look(level="warn", text=text, hint=hint)


def fail(text: str, hint: str) -> Look:
    """Say what keeps a run from starting."""
    return Look(level="FAIL", text=text, hint=hint)


def look(folder: Path) -> Iterator[Look]:
    """Look at everything, in an order in which later looks may rest on earlier ones."""
    yield ok(f"Python {platform.python_version()}")
    program = _git()
    yield program
    yield from _state()
    try:
        repo = repository.discover(folder)
    except RelayError as error:
        yield fail(error.message, error.hint)
        return
    yield ok(f"repository `{repo.top or repo.common}`")
    if program.level == "FAIL":
        return
    yield from _repository(repo)


def _git() -> Look:
    """Look at git itself."""
    hint = f"install git {GIT[0]}.{GIT[1]} or newer"
    try:
        program = gitenv.program()
    except RelayError as error:
        return fail(error.message, error.hint)
    said = proc.run([program, "--version"], cwd=os.sep, env=proc.clean_env(), limits=Limits(seconds=30)).text.strip()
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None:
        return fail(f"`{program}` does not say its version: {said[:80]}", hint)
    version = (int(found[1]), int(found[2]))
    return ok(f"{said}, `{program}`") if version >= GIT else fail(f"{said} is older than {GIT[0]}.{GIT[1]}", hint)


def _state() -> Iterator[Look]:
    """Look at the folder where worktrees go: it must be writable, and outlive a reboot (pitfalls row 47)."""
    try:
        wanted = files.state_home() / "relay"
    except RelayError as error:
        yield fail(error.message, error.hint)
        return
    there = next(path for path in (wanted, *wanted.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield fail(
            f"`{wanted}` cannot be written: worktrees go there", f"see who owns it: ls -ld {shlex.quote(str(there))}"
        )
        return
    if _passing(there):
        yield warn(f"`{wanted}` is in a temporary folder, which a reboot empties", _lasting())
    else:
        yield ok(f"worktrees go to `{wanted}`")
    yield disk(there)


def _passing(path: Path) -> bool:
    """Tell whether a reboot empties the folder that a path is in."""
    temporary = [Path(name).resolve() for name in ("/tmp", "/var/tmp", tempfile.gettempdir())]  # noqa: S108 - to be avoided
    return any(path.resolve().is_relative_to(one) for one in temporary)


def _lasting() -> str:
    """Say what to type for worktrees that stay: `HOME` may be temporary too, where the account has one that is not."""
    import pwd

    home = os.environ.get("HOME", "")
    if home.startswith("/") and not _passing(Path(home)):
        return "export XDG_STATE_HOME=$HOME/.local/state"
    try:
        own = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        own = ""
    if Path(own).is_absolute() and Path(own).is_dir() and not _passing(Path(own)):
        return f"export XDG_STATE_HOME={shlex.quote(own)}/.local/state"
    return "HOME is temporary too; with DIR on a disk that stays: export XDG_STATE_HOME=DIR"


def disk(path: Path) -> Look:
    """Look at the free space where a path is."""
    free, look = shutil.disk_usage(path).free, f"df -h {shlex.quote(str(path))}"
    text = f"{free / (1 << 30):.1f} GiB free at `{path}`"
    if free < TOO_LITTLE:
        return fail(text, f"make room: {look}")
    return warn(text, f"every leg is a checkout of its own: {look}") if free < LITTLE else ok(text)


def _repository(repo: Repository) -> Iterator[Look]:
    """Look at the repository and its line-up."""
    yield disk(repo.common)
    yield _identity(repo)
    if git.resolve(repo, "HEAD") is None:
        yield fail("the repository has no commits yet", "git add . && git commit -m 'Start'")
        return
    yield _ledger(repo)
    settings, commit = Config(), "HEAD"
    try:
        settings, ref, commit = config.load(repo)
    except RelayError as error:
        yield fail(error.message, error.hint)
    else:
        yield from _lineup(repo, settings, ref, commit)
    for level, text, hint in health_repo.look(repo, commit, settings):
        yield Look(level=level, text=text, hint=hint)
    yield from _jail(settings)


def _identity(repo: Repository) -> Look:
    """Look who stands in Relay's commits."""
    who = git.identity(repo)
    if who == git.NOBODY:
        text = f"git knows no user.name: it may refuse your commits, and Relay's are by {who.name} <{who.email}>"
        return warn(text, INTRODUCE)
    return ok(f"commits are by {who.name} <{who.email}>")


def _ledger(repo: Repository) -> Look:
    """Look whether the ledger can be written, and is of a format that this version reads."""
    here = ledgers.at(repo)
    if not os.access(here.root if here.root.exists() else repo.common, os.W_OK):
        return fail(f"`{here.root}` cannot be written: the ledger goes there", f"see who owns it: ls -ld {repo.common}")
    if (here.root / "format").exists():
        try:
            ledgers.prepare(here)
        except RelayError as error:
            return fail(error.message, error.hint)
    return ok(f"the ledger is `{here.root}`, {len(ledgers.runs(here))} runs")


def _lineup(repo: Repository, settings: Config, ref: str, commit: str) -> Iterator[Look]:
    """Look whether phases and agents fit each other, and whether each agent can run."""
    if git.blob(repo, commit, config.NAME) is None and not settings.agents:
        yield fail(f"there is no `{config.NAME}` and no agent of your own", "relay init")
        return
    yield ok(f"`{config.NAME}` is committed; a run starts from {ref.removeprefix('refs/heads/')} at {commit[:12]}")
    used: dict[str, list[str]] = {}
    try:
        phases = catalog.phases(repo, commit, settings)
        catalog.check(phases, settings.agents)
    except RelayError as error:
        yield fail(error.message, error.hint)
    else:
        yield ok(f"phases: {', '.join(f'{phase.name} ({phase.agent})' for phase in phases)}")
        for phase in phases:
            used.setdefault(phase.agent, []).append(phase.name)
    try:
        ways.check(repo, settings.ship)
    except RelayError as error:
        yield fail(error.message, error.hint)
    for name, agent in settings.agents.items():
        line = lineup.look(agent, tuple(used.get(name, ())), repo.top or repo.common)
        if not line.problem:
            yield ok(f"agent {name}: {agent.backend}{f', version {line.version}' if line.version else ''}")
            yield from _money(settings, agent)
        elif name in used:
            text = f"agent {name}, for {', '.join(used[name])}: {line.problem}"
            yield fail(text, "install it, or name another agent")
        else:
            text = f"agent {name}, which no phase names: {line.problem}"
            yield warn(text, f"install it, or take [agents.{name}] out")


def _money(settings: Config, agent: Agent) -> Iterator[Look]:
    """Look whether a bound on money can hold an agent, where one is written."""
    if (settings.budget.usd, settings.nightly.usd, agent.usd) == (None, None, None):
        return
    if purse.unseen(agent):
        text = f"agent {agent.name}: `usd` does not bound it: {telling.UNSEEN}"
        yield warn(text, "bound it by `minutes` of [budget], or `hours` of [nightly]")
    elif model := prices.missing(agent):
        text = f"agent {agent.name}: nobody knows the price of `{model}`, so a bound by `usd` ends its legs"
        yield warn(text, f"write price = [IN, OUT] into [agents.{agent.name}]: dollars for a million tokens")


def _jail(settings: Config) -> Iterator[Look]:
    """Say plainly what confines an agent, and what could."""
    from relay.host import jail

    mode = settings.jail.mode
    try:
        rung, said = jail.choose("required" if mode == "auto" else mode)
    except RelayError as error:
        text = f"{error.message}: {JAIL}" if mode == "auto" else error.message
        yield fail(text, error.hint) if mode == "required" else warn(text, error.hint)
        return
    if rung.name == "off":
        yield warn(f"no jail: {JAIL}", 'take mode = "off" out of [jail] in relay.toml')
    else:
        yield ok(said)

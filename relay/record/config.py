"""relay.toml: who can take a leg, and how this repository wants to be worked on.

Only `base` is read from the checkout; everything else comes from the base commit, so that a branch under review
cannot steer its judge. Agents may also stand in the person's own file; where both name one, the repository's counts.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from relay.errors import RelayError
from relay.host import files, git, redact
from relay.host.repository import Repository
from relay.record import strict
from relay.terms import (
    MECHANICAL,
    Agent,
    AgentLine,
    Budget,
    Done,
    Evidence,
    Jail,
    Nightly,
    Reap,
    Schedule,
    Ship,
    Struct,
    Tests,
    Worktree,
)
from relay.terms.plan import Notify

NAME: Final = "relay.toml"
PHASES: Final = ("implement", "review", "acceptance")
VENDORS: Final = {
    "claude-code": "anthropic",
    "anthropic": "anthropic",
    "codex": "openai",
    "openai": "openai",
    "human": "human",
    "command": MECHANICAL,
    "scripted": MECHANICAL,
}
"""Backend name to the vendor an agent has unless its line says otherwise."""

AGENT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
AMOUNTS: Final = ("max_output", "window", "turns", "tokens", "usd", "idle")
"""What an agent's line may bound by a number above nought."""

REF: Final = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//))[^\s\x00-\x20\x7f~^:?*\[\\]+(?<![./])")
HEX: Final = re.compile(r"[0-9a-f]{7,64}")


class PhaseOverride(Struct, frozen=True, kw_only=True):
    """`[phase.NAME]`: what a repository says differently from the phase file; None leaves that as it is."""

    agent: str | None = None
    prompt: str | None = None
    reads: tuple[str, ...] | None = None
    withhold: tuple[str, ...] | None = None
    differs_from: str | None = None
    allow_same_vendor: bool | None = None
    back_to: str | None = None
    rounds: int | None = None
    max_legs: int | None = None
    context: float | None = None
    done: Done | None = None
    evidence: Evidence | None = None
    minutes: float | None = None


class _Common(Struct, frozen=True, kw_only=True):
    base: str | None = None
    phases: tuple[str, ...] = PHASES
    phase: dict[str, PhaseOverride] = {}
    checks: dict[str, str] = {}
    tests: Tests = Tests()
    worktree: Worktree = Worktree()
    budget: Budget = Budget()
    ship: Ship = Ship()
    jail: Jail = Jail()
    queue: str | tuple[str, ...] = ()
    nightly: Nightly = Nightly()
    schedule: Schedule = Schedule()
    reap: Reap = Reap()


class Config(_Common, frozen=True, kw_only=True):
    """relay.toml as read; every agent has its name and vendor."""

    agents: dict[str, Agent] = {}
    recovery: tuple[str, ...] = ()


class _Line(AgentLine, frozen=True, kw_only=True):
    vendor: str | None = None


class _Recovery(Struct, frozen=True, kw_only=True):
    commands: tuple[str, ...] = ()


class _File(_Common, frozen=True, kw_only=True):
    agents: dict[str, _Line] = {}
    recovery: _Recovery = _Recovery()


class _Personal(Struct, frozen=True, kw_only=True):
    agents: dict[str, _Line] = {}
    notify: Notify = Notify()


def parse(data: bytes, where: str) -> Config:
    """Read the bytes of a relay.toml; `where` is the file that errors name."""
    file = strict.toml(data, _File, where)
    if not file.phases:
        raise strict.refusal(where, "`phases` is empty", f"leave it out, or write phases = {list(PHASES)}")
    strict.amount(where, "budget.usd", file.budget.usd)
    strict.amount(where, "budget.minutes", file.budget.minutes)
    strict.amount(where, "budget.tokens", file.budget.tokens, most=1_000_000_000)
    strict.amount(where, "budget.turns", file.budget.turns)
    strict.amount(where, "budget.reserve", file.budget.reserve, least=0, most=0.9)
    strict.amount(where, "worktree.minutes", file.worktree.minutes)
    strict.amount(where, "worktree.cache_gb", file.worktree.cache_gb, least=0)
    strict.amount(where, "nightly.usd", file.nightly.usd)
    strict.amount(where, "nightly.tokens", file.nightly.tokens, most=1_000_000_000_000)
    strict.amount(where, "nightly.hours", file.nightly.hours, most=24)
    strict.amount(where, "reap.wait_days", file.reap.wait_days)
    strict.inside(where, "queue", (file.queue,) if isinstance(file.queue, str) else file.queue)
    strict.inside(where, "tests.paths", file.tests.paths)
    strict.inside(where, "worktree.copy", file.worktree.copy)
    strict.inside(where, "worktree.link", file.worktree.link)
    strict.variables(where, "worktree.env", file.worktree.env)
    commands: dict[str, tuple[str, ...]] = {
        **{f"checks.{name}": (command,) for name, command in file.checks.items()},
        "recovery.commands": file.recovery.commands,
        "worktree.setup": file.worktree.setup,
        "ship.verify": file.ship.verify,
        "tests.command": () if file.tests.command is None else (file.tests.command,),
    }
    for path, given in commands.items():
        if not all(one.strip() and "\0" not in one for one in given):
            raise strict.refusal(where, f"`{path}` has an empty command")
    common = {name: getattr(file, name) for name in _Common.__struct_fields__}
    return Config(**common, agents=_agents(file.agents, where), recovery=file.recovery.commands)


def load(repo: Repository, base: str | None = None) -> tuple[Config, str, str]:
    """Return the config of the base commit, the full name of the base ref, and the id of that commit.

    `base` (a spec's or the command line's) goes before the one in the checkout's relay.toml, which goes before the
    branch that is checked out. A relay.toml that is not committed, or differs from the base's, is a `RelayError`.
    """
    present = _checkout(repo)
    named = base or (parse(present, NAME).base if present is not None else None)
    ref, commit = _base(repo, named)
    shown = ref.removeprefix("refs/heads/")
    frozen = git.blob(repo, commit, NAME)
    if repo.top is not None and _plain(present) != _plain(frozen):
        raise _not_committed(shown, in_checkout=present is not None, in_base=frozen is not None)
    config = parse(frozen, NAME) if frozen is not None else Config()
    return msgspec.structs.replace(config, agents={**personal(), **config.agents}), ref, commit


def personal() -> dict[str, Agent]:
    """Return the agents of the person's own config.toml; none where there is no such file."""
    own, path = _own()
    return _agents(own.agents, path)


def notices() -> Notify:
    """Return how the person wants to be told, by their own config.toml; addresses there are secrets."""
    wanted = _own()[0].notify
    redact.learn({f"notify.urls.{number}": url for number, url in enumerate(wanted.urls)})
    return wanted


def _own() -> tuple[_Personal, str]:
    path = files.config_home() / "relay" / "config.toml"
    try:
        # A link is followed here: people keep their dotfiles elsewhere.
        data = files.read(path.resolve(), strict.LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return _Personal(), str(path)
    return strict.toml(data, _Personal, str(path)), str(path)


def _agents(lines: Mapping[str, _Line], where: str) -> dict[str, Agent]:
    return {name: _agent(name, line, where) for name, line in lines.items()}


def _agent(name: str, line: _Line, where: str) -> Agent:
    """Name an agent and give it its vendor; what its backend cannot use is refused."""
    path = f"agents.{name}"
    if not AGENT_NAME.fullmatch(name):
        raise strict.refusal(where, f"`{name}` cannot be an agent's name", "use letters, digits, `.`, `_`, `-`")
    if line.backend not in VENDORS:
        near = strict.close(line.backend, VENDORS)
        text = f"`{path}.backend`: `{line.backend}` is not a backend{near}"
        raise strict.refusal(where, text, f"known backends: {', '.join(VENDORS)}")
    vendor = VENDORS[line.backend] if line.vendor is None else line.vendor.strip().lower()
    if problem := _unfit(line, vendor, path):
        raise strict.refusal(where, problem)
    strict.variables(where, f"{path}.env", line.env)
    for field in AMOUNTS:
        strict.amount(where, f"{path}.{field}", getattr(line, field), most=1_000_000_000)
    for number in line.price or ():
        strict.amount(where, f"{path}.price", number, least=0)
    fields = {field: getattr(line, field) for field in _Line.__struct_fields__}
    return Agent(**{**fields, "name": name, "vendor": vendor})


def _unfit(line: _Line, vendor: str, path: str) -> str:
    """Say what an agent's backend cannot use."""
    problem = ""
    if not vendor:
        problem = f"`{path}.vendor` is empty"
    elif vendor == MECHANICAL and VENDORS[line.backend] != MECHANICAL:
        problem = f"`{path}.vendor`: only a command or a script is `{MECHANICAL}`, `{line.backend}` has opinions"
    elif line.backend == "command" and not (line.command and line.command[0]):
        problem = f"`{path}.command` is missing"
    elif line.backend == "scripted" and not line.script:
        problem = f"`{path}.script` is missing"
    elif line.backend != "command" and line.reply == "exit":
        problem = f'`{path}.reply`: only a command can answer by its exit, `{line.backend}` needs reply = "json"'
    elif any("\0" in word for word in line.command):
        problem = f"`{path}.command` has a NUL character"
    return problem


def _checkout(repo: Repository) -> bytes | None:
    """Return relay.toml as it stands in the checkout; None in a bare repository or where there is none."""
    if repo.top is None:
        return None
    try:
        return files.read_below(repo.top, NAME, strict.LIMIT)
    except FileNotFoundError:
        return None
    except RelayError as error:
        raise RelayError(error.message, hint=f"let `{NAME}` be a plain file, and commit it") from None


def _plain(data: bytes | None) -> bytes | None:
    """Forget line ends: with core.autocrlf a clean checkout differs from its commit in nothing else."""
    return None if data is None else data.replace(b"\r\n", b"\n")


def _not_committed(base: str, *, in_checkout: bool, in_base: bool) -> RelayError:
    if not in_base:
        text = f"`{NAME}` is in the checkout but not in `{base}`"
    elif not in_checkout:
        text = f"`{NAME}` is in `{base}` but not in the checkout"
    else:
        text = f"`{NAME}` in the checkout differs from the one in `{base}`"
    return RelayError(text, hint=f"commit it on `{base}`: git add {NAME} && git commit -m 'Configure relay'")


def _base(repo: Repository, name: str | None) -> tuple[str, str]:
    """Return the full ref name and the commit of the base; a commit given by its id stands for its own name."""
    if name is None:
        name = git.head_branch(repo)
        if name is None:
            return "", git.resolve(repo, "HEAD") or ""
    if not REF.fullmatch(name):
        raise RelayError(f"base `{name}` cannot be the name of a branch", hint='name a branch: base = "main"')
    if name.startswith("refs/"):
        refs: Iterable[str] = (name,)
    else:
        refs = (f"refs/heads/{name}", f"refs/remotes/{name}", f"refs/tags/{name}")
    for ref in refs:
        if commit := git.resolve(repo, ref):
            return ref, commit
    if HEX.fullmatch(name) and (commit := git.resolve(repo, name)):
        return commit, commit
    raise _missing(repo, name.removeprefix("refs/heads/"))


def _missing(repo: Repository, name: str) -> RelayError:
    """Say why the base has no commit."""
    branches = [ref.removeprefix("refs/heads/") for ref in git.refs(repo, "refs/heads/")]
    if not branches:
        return RelayError("the repository has no commits yet", hint="git add . && git commit -m 'Start'")
    text = f"base `{name}` does not exist{strict.close(name, branches)}"
    return RelayError(text, hint=f"known branches: {', '.join(sorted(branches)[:10])}")

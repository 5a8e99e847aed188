"""What a person writes, and what a run was promised: spec, phases, agents, the frozen plan."""

from typing import Literal

from relay.terms.words import Boundary, Done, Evidence, Kind, Method, Struct


class Criterion(Struct, frozen=True, kw_only=True):
    """One thing the spec demands; `check` is the shell command that decides it, where there is one."""

    id: str
    text: str
    check: str | None = None


class Must(Struct, frozen=True, kw_only=True):
    """A demand that is copied unchanged from note to note."""

    must: str
    prerequisite: str = ""
    authority: str = ""
    fallback: str = ""
    consequence: str = ""


class Budget(Struct, frozen=True, kw_only=True):
    """What a run may cost, tokens in and out together; `reserve` is the share kept for judges."""

    usd: float | None = None
    minutes: float | None = None
    tokens: int | None = None
    turns: int | None = None
    reserve: float = 0.25


class Ship(Struct, frozen=True, kw_only=True):
    """How an accepted tree goes out.

    `branch` is its name on `remote`, where `{run}` stands for the run's id: what a push goes to (by itself the base's
    name), or what a proposal comes from (by itself `relay/{run}`). `upstream` is the remote that it goes to, where
    `remote` is a fork of that one. `forge` and `api` say where proposals are opened,
    if the remote's address does not. `env` names variables for `command` and `verify`, `minutes` bounds each of them.
    `publish` keeps notes and receipts under a ref, which another clone can be given, or is pushed along.
    """

    method: Method = "merge"
    approval: Literal["manual", "auto"] = "manual"
    verify: tuple[str, ...] = ()
    remote: str = "origin"
    branch: str | None = None
    upstream: str | None = None
    forge: Literal["github", "gitlab"] | None = None
    api: str | None = None
    draft: bool = False
    auto_merge: Literal["merge", "squash", "rebase"] | None = None
    command: str | None = None
    env: tuple[str, ...] = ()
    minutes: float = 30
    publish: Literal["off", "ref", "push"] = "off"


NoticeEvent = Literal[
    "needs-human", "approval", "proposed", "shipped", "failed", "breach", "login-expired", "alert", "night"
]
"""What a person is told of who is not looking."""


class Notify(Struct, frozen=True, kw_only=True):
    """How a person is told: services by their addresses, a command whose `env` is named, and which events; or all."""

    urls: tuple[str, ...] = ()
    command: str | None = None
    env: tuple[str, ...] = ()
    events: tuple[NoticeEvent, ...] = ()


class Spec(Struct, frozen=True, kw_only=True):
    """The task: its text as given, and what Relay read out of it."""

    title: str
    text: str
    sha256: str
    criteria: tuple[Criterion, ...] = ()
    must: tuple[Must, ...] = ()
    base: str | None = None
    phases: tuple[str, ...] | None = None
    budget: Budget | None = None
    ship: Ship | None = None
    files: tuple[str, ...] = ()
    may_change_tests: bool = False


class AgentLine(Struct, frozen=True, kw_only=True):
    """What a person writes of an agent, beside its vendor.

    `key` names the variable of the environment that holds the API key. `window` is the model's context in tokens and
    `price` its dollars for a million tokens in and out, where Relay does not know them. `turns`, `tokens` and `usd`
    bound one leg; `idle` is in minutes. `billing` says who pays: `api` by a key, `subscription` by a login.
    `settings = "user"` lets a program read the person's own settings.
    """

    backend: str
    model: str | None = None
    command: tuple[str, ...] = ()
    reply: Literal["json", "exit"] = "json"
    script: str | None = None
    env: tuple[str, ...] = ()
    api: Literal["responses", "chat"] | None = None
    base_url: str | None = None
    key: str | None = None
    effort: str | None = None
    max_output: int | None = None
    window: int | None = None
    price: tuple[float, float] | None = None
    turns: int | None = None
    tokens: int | None = None
    usd: float | None = None
    idle: float | None = None
    billing: Literal["api", "subscription"] | None = None
    settings: Literal["none", "user"] = "none"


class Agent(AgentLine, frozen=True, kw_only=True):
    """A named line in relay.toml: who can take a leg. `vendor` decides whether two agents are independent."""

    name: str
    vendor: str


class Phase(Struct, frozen=True, kw_only=True):
    """A kind of leg, as declared in phases/NAME.toml and overridden by relay.toml."""

    name: str
    kind: Kind
    boundary: Boundary
    agent: str
    prompt: str
    reads: tuple[str, ...] = ("spec",)
    withhold: tuple[str, ...] = ()
    differs_from: str | None = None
    allow_same_vendor: bool = False
    back_to: str | None = None
    rounds: int = 3
    max_legs: int = 4
    context: float = 0.6
    done: Done = "verify"
    evidence: Evidence = "located"
    minutes: float = 60


class Tests(Struct, frozen=True, kw_only=True):
    """What acceptance swaps between base and head."""

    paths: tuple[str, ...] = ()
    command: str | None = None


class Worktree(Struct, frozen=True, kw_only=True):
    """How a fresh worktree is made fit to work in; the time limit covers each set-up command.

    `env` names variables for all that Relay itself runs there: set-up, recovery, checks, criteria, repros. `cache_gb`
    is how many gigabytes of what set-up fetched in a jail are kept for the next worktree; 0 keeps nothing.
    """

    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    minutes: float = 10
    cache_gb: float = 2
    submodules: bool = False
    lfs: bool = False


class Jail(Struct, frozen=True, kw_only=True):
    """What confines an agent's commands; a network is off, the host's, or a list of hosts."""

    mode: Literal["auto", "required", "external", "off"] = "auto"
    network: Literal["off", "host"] | tuple[str, ...] = "off"
    setup_network: Literal["off", "host"] | tuple[str, ...] = "host"
    loopback: tuple[str, ...] = ()


class Plan(Struct, frozen=True, kw_only=True):
    """plan.toml: everything a run was promised at its start, frozen, with the hash of each frozen file.

    `source` is where the spec was read, from the top of the repository where it lies there; `queued` is the entry of
    the queue that the run was made from, which so is taken once, whenever Relay is killed.
    """

    schema: int
    run: str
    title: str
    created: str
    base_ref: str
    base: str
    relay_version: str
    spec_sha256: str
    files: dict[str, str]
    unchecked: bool = False
    source: str | None = None
    queued: str | None = None
    phases: tuple[Phase, ...]
    agents: tuple[Agent, ...]
    criteria: tuple[Criterion, ...] = ()
    must: tuple[Must, ...] = ()
    may_touch: tuple[str, ...] = ()
    may_change_tests: bool = False
    checks: dict[str, str] = {}
    tests: Tests = Tests()
    recovery: tuple[str, ...] = ()
    budget: Budget = Budget()
    ship: Ship = Ship()
    jail: Jail = Jail()
    worktree: Worktree = Worktree()

    def phase(self, name: str) -> Phase:
        """Return the phase of that name; a `KeyError` is a bug, since names were checked when the run was frozen."""
        return {phase.name: phase for phase in self.phases}[name]

    def agent(self, name: str) -> Agent:
        """Return the agent of that name, as `phase` does."""
        return {agent.name: agent for agent in self.agents}[name]

"""relay.toml: what stands in it, and what is wrong with it."""

from pathlib import Path

import pytest

from relay.errors import Exit, RelayError
from relay.host import repository
from relay.record import catalog, config
from relay.terms import Agent, Budget, Jail, Ship, Tests, Worktree
from tests.world import World

SAMPLE = """
base = "main"                                   # default: the branch that is checked out
phases = ["implement", "review", "acceptance"]

[agents.claude]
backend = "claude-code"
model = "opus"

[agents.codex]
backend = "codex"

[agents.gpt]
backend = "openai"
model = "gpt-6-sol"

[agents.local]
backend = "openai"
api = "chat"
base_url = "http://127.0.0.1:11434/v1"
model = "qwen3-coder"

[agents.tidy]
backend = "command"
command = ["ruff", "check", "--fix", "."]
reply = "exit"
vendor = "mechanical"

[phase.implement]
agent = "claude"

[phase.review]
agent = "codex"
rounds = 3

[phase.acceptance]
agent = "claude"

[checks]                                        # run by Relay after every work leg and at acceptance
test = "pytest -q"

[tests]                                         # what acceptance swaps between base and head
paths = ["tests/**"]
command = "pytest -q"

[recovery]                                      # run by Relay at each gate; the output goes into the prompt
commands = ["git log --oneline -5"]

[worktree]
copy = [".env.test"]
setup = ["uv sync --frozen"]

[budget]
usd = 20
minutes = 240
reserve = 0.25                                  # kept for review and acceptance

[ship]
method = "merge"
approval = "manual"
verify = []                                     # run after shipping

[jail]
mode = "auto"                                   # the best that holds here, said aloud; "off" must be written
network = "off"                                 # agents' commands; set-up has its own
setup_network = "host"
loopback = []                                   # services that checks may reach, as "127.0.0.1:5432"
"""


def test_the_sample_of_the_design_is_read_whole() -> None:
    parsed = config.parse(SAMPLE.encode(), "relay.toml")
    assert parsed.base == "main"
    assert {name: agent.vendor for name, agent in parsed.agents.items()} == {
        "claude": "anthropic",
        "codex": "openai",
        "gpt": "openai",
        "local": "openai",
        "tidy": "mechanical",
    }
    command = ("ruff", "check", "--fix", ".")
    assert parsed.agents["tidy"] == Agent(
        name="tidy", backend="command", vendor="mechanical", command=command, reply="exit"
    )
    assert parsed.phase["review"] == config.PhaseOverride(agent="codex", rounds=3)
    assert parsed.checks == {"test": "pytest -q"}
    assert parsed.tests == Tests(paths=("tests/**",), command="pytest -q")
    assert parsed.recovery == ("git log --oneline -5",)
    assert parsed.worktree == Worktree(copy=(".env.test",), setup=("uv sync --frozen",))
    assert parsed.budget == Budget(usd=20.0, minutes=240.0, reserve=0.25)
    assert parsed.ship == Ship()
    assert parsed.jail == Jail()


def test_the_sample_lines_up_with_the_shipped_phases(tmp_path: Path) -> None:
    world = World(tmp_path)
    head, parsed = world.git("rev-parse", "HEAD"), config.parse(SAMPLE.encode(), "relay.toml")
    phases = catalog.phases(repository.discover(world.root), head, parsed)
    catalog.check(phases, parsed.agents)
    assert [(phase.name, phase.agent) for phase in phases] == [
        ("implement", "claude"),
        ("review", "codex"),
        ("acceptance", "claude"),
    ]


def test_an_empty_file_is_a_config_of_defaults() -> None:
    assert config.parse(b"", "relay.toml") == config.Config()
    assert config.Config().phases == ("implement", "review", "acceptance")


@pytest.mark.parametrize(
    ("backend", "vendor"),
    [
        ('backend = "claude-code"', "anthropic"),
        ('backend = "anthropic"', "anthropic"),
        ('backend = "codex"', "openai"),
        ('backend = "openai"', "openai"),
        ('backend = "human"', "human"),
        ('backend = "command"\ncommand = ["true"]', "mechanical"),
        ('backend = "scripted"\nscript = "a.toml"', "mechanical"),
        ('backend = "scripted"\nscript = "a.toml"\nvendor = "North"', "north"),
        ('backend = "openai"\nbase_url = "http://127.0.0.1:1/v1"\nvendor = "alibaba"', "alibaba"),
    ],
)
def test_a_backend_has_a_vendor_unless_the_line_says_another(backend: str, vendor: str) -> None:
    assert config.parse(f"[agents.a]\n{backend}\n".encode(), "relay.toml").agents["a"].vendor == vendor


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("phasess = []", "`phasess` is not a known key, did you mean `phases`?"),
        ("[agents.x]\nbackend = 'codex'\nmodle = 'a'", "`agents.x.modle` is not a known key, did you mean `model`?"),
        ("[agents.x]\nmodel = 'a'", "`agents.x.backend` is missing"),
        ("[agents.x]\nbackend = 'codx'", "`agents.x.backend`: `codx` is not a backend, did you mean `codex`?"),
        ("[agents.x]\nbackend = 3", "`agents.x.backend`: expected `str`, got `int`"),
        ("[agents.x]\nbackend = 'command'", "`agents.x.command` is missing"),
        ("[agents.x]\nbackend = 'command'\ncommand = 'true'", "`agents.x.command`: expected `array`, got `str`"),
        ("[agents.x]\nbackend = 'command'\ncommand = ['a', 3]", "`agents.x.command[1]`: expected `str`, got `int`"),
        ("[agents.x]\nbackend = 'scripted'", "`agents.x.script` is missing"),
        ("[agents.x]\nbackend = 'codex'\nreply = 'exit'", "`agents.x.reply`: only a command"),
        ("[agents.x]\nbackend = 'codex'\nvendor = 'mechanical'", "`agents.x.vendor`: only a command or a script"),
        ("[agents.x]\nbackend = 'codex'\nvendor = ' '", "`agents.x.vendor` is empty"),
        ("[agents.'a b']\nbackend = 'codex'", "`a b` cannot be an agent's name"),
        ("[agents.'a b']\nbackend = 1", '`agents."a b".backend`'),
        ("agents = ['claude']", "`agents`: expected `object`, got `array`"),
        ("[phase.review]\nround = 3", "`phase.review.round` is not a known key, did you mean `rounds`?"),
        ("[phase.review]\nrounds = '3'", "`phase.review.rounds`: expected `int`, got `str`"),
        ("[phase.review]\nkind = 'work'", "`phase.review.kind` is not a known key"),
        ("[phase.review]\nevidence = 'locatd'", "did you mean `located`?"),
        ("[checks]\ntest = ['a']", "`checks.test`: expected `str`, got `array`"),
        ("[checks]\ntest = ' '", "`checks.test` has an empty command"),
        ("[worktree]\nsetup = ['']", "`worktree.setup` has an empty command"),
        ("[worktree]\ncopy = ['../.env']", "`worktree.copy` has `../.env`"),
        ("[worktree]\nminutes = 0", "`worktree.minutes` is 0"),
        ("[worktree]\nenv = 'HOME'", "`worktree.env`: expected `array`, got `str`"),
        ("[worktree]\nenv = ['A B']", "`worktree.env` has `A B`, which is not the name of a variable"),
        ("[worktree]\nenv = ['']", "`worktree.env` has ``"),
        ("[worktree.env]\nKEY = '1'", "`worktree.env`: expected `array`, got `object`"),
        ("[agents.x]\nbackend = 'codex'\nenv = ['KEY=of mine']", "`agents.x.env` has `KEY=...`, which is not the name"),
        ("[tests]\npaths = ['/tests']", "`tests.paths` has `/tests`"),
        ("[budget]\nusd = -1", "`budget.usd` is -1.0"),
        ("[budget]\nminutes = true", "`budget.minutes`: expected `float`, got `bool`"),
        ("[ship]\nmethod = 'marge'", "`ship.method`: `marge` is not one of"),
        ("[jail]\nmode = 'none'", "`jail.mode`: `none` is not one of auto, required, external, off"),
        ("phases = []", "`phases` is empty"),
        ("base = 2026-11-29", "`base`: expected `str`, got `date`"),
        ("schema = 7", "schema `7` is unknown"),
        ("a = " + "[" * 5000, "it is nested too deeply"),
        ("a = " + "9" * 5000, "it is not TOML"),
        ("base =", "it is not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(text: str, words: str) -> None:
    with pytest.raises(RelayError) as caught:
        config.parse(text.encode(), "relay.toml")
    assert caught.value.message.startswith("`relay.toml`: ")
    assert words in caught.value.message
    assert caught.value.exit_code is Exit.USAGE
    assert caught.value.hint


@pytest.mark.parametrize(("data", "words"), [(b"\xff", "not UTF-8"), (b"a\0", "NUL byte"), (b"#" * (2 << 20), "limit")])
def test_bytes_that_are_no_text_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(RelayError, match=words):
        config.parse(data, "relay.toml")

"""README is run, not believed: its commands, verbs, tables and examples are those of the program."""

import re
import subprocess
from pathlib import Path

import click
import pytest

from relay import cli
from relay.errors import MEANING
from relay.record import config, spec
from tests.world import CHECKOUT, World

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
CI = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SPANS = [span for _, block in BLOCKS for span in block.splitlines()] + re.findall(r"`([^`\n]+)`", README)
SHELLS = ("bash", "zsh", "fish")


def _blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def _group() -> click.Group:
    [group] = {id(value): value for value in vars(cli).values() if isinstance(value, click.Group)}.values()
    return group


def _newcomers_commands() -> list[str]:
    """Return the lines that set everything up: each stands alone in a block of its own."""
    return [block.strip() for block in _blocks("sh") if "venv .venv" in block]


def test_the_two_commands_are_one_line_each_and_what_ci_runs() -> None:
    shown, tested = _newcomers_commands()
    assert shown.endswith("relay demo")
    assert tested.endswith("pytest")
    run = [line.removesuffix(" || exit") for line in CI.splitlines() if line.endswith(" || exit")]
    assert run == [shown, tested]


def test_ci_is_a_script_that_bash_can_read() -> None:
    subprocess.run(["bash", "-n", CHECKOUT / ".ci" / "run"], check=True, timeout=60)


def test_every_toml_block_and_the_sample_are_a_config() -> None:
    blocks = [*_blocks("toml"), (CHECKOUT / "relay.toml").read_text(encoding="utf-8")]
    assert len(blocks) > 1
    for number, block in enumerate(blocks):
        parsed = config.parse(block.encode(), f"block {number}")
        assert {override.agent for override in parsed.phase.values()} <= parsed.agents.keys()


def test_the_example_of_a_spec_is_one() -> None:
    [block] = _blocks("markdown")
    parsed = spec.parse(block, "README.md")
    assert parsed.title
    assert [criterion.check is not None for criterion in parsed.criteria] == [True, True, False]


def test_the_example_of_a_script_plays_a_reply_and_a_quota(tmp_path: Path) -> None:
    [script] = [block for block in _blocks("text") if "[[implement]]" in block]
    (tmp_path / "script.toml").write_text(script, encoding="utf-8")
    world = World.simple(tmp_path / "w")
    for name, phase in (("worker", "implement"), ("judge", "review")):
        world.agents[name] = {"backend": "scripted", "script": str(tmp_path / "script.toml"), "vendor": name}
        world.phases[phase]["agent"] = name
    world.save()
    ran = world.inside("run", world.spec("# Greet\n\n## Acceptance\n\n- it greets: `grep -q morning greet.py`\n"))
    assert ran.code == 5, ran
    worked, judged = world.receipts()
    assert (worked["status"], worked["score"], worked["cost_microusd"]) == ("done", "1/1", 0)
    assert (judged["ended_by"], judged["until"]) == ("quota", "2099-01-01T06:00:00Z")


def test_a_command_is_told_what_is_asked_and_what_it_cost_is_unknown_only_with_a_vendor(world: World) -> None:
    names = ("RELAY_RUN", "RELAY_LEG", "RELAY_PHASE", "RELAY_KIND", "RELAY_REPLY", "RELAY_NONCE")
    assert [name for name in names if f"`{name}`" not in README] == []
    said = world.folder / "said"
    asks = "; ".join(f'printf "%s\\n" "${{{name}:?}}"' for name in names)
    world.shell("worker", f"{{ {asks}; }} > {said}\nsed -i 's/a - b/a + b/' calc.py", phase="implement", reply="exit")
    world.save()
    world.inside("run", world.spec(), "--until", "implement")
    assert said.read_text().splitlines()[1:4] == ["01-implement", "implement", "work"]
    assert world.receipts()[0]["cost_microusd"] == 0
    world.agents["worker"]["vendor"] = "north"
    world.save()
    world.inside("run", world.spec(name="other.md"), "--until", "implement")
    [run] = [path.name for path in world.runs.iterdir() if path.name.endswith("other")]
    assert world.receipts(run)[0]["cost_microusd"] is None


def test_every_verb_that_is_named_exists() -> None:
    context = click.Context(_group())
    named = {match for span in SPANS for match in re.findall(r"(?:^|[ /])relay ([a-z]+)\b", span)}
    assert {"run", "resume", "approve", "status"} <= named
    assert named - set(_group().list_commands(context)) == set()


def test_the_table_of_exit_codes_is_that_of_the_program() -> None:
    rows = {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.+) \|$", README, re.MULTILINE)}
    assert rows == {int(code): text for code, text in MEANING.items()}


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_told_as_it_is_got(shell: str, world: World) -> None:
    assert f"_RELAY_COMPLETE={shell}_source relay" in README
    ran = world.relay(env={"_RELAY_COMPLETE": f"{shell}_source"})
    assert ran.code == 0, ran
    assert "relay" in ran.out, ran


def test_links_into_the_repository_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    headings = {f"#{re.sub('[^a-z0-9 -]', '', line[3:].lower()).replace(' ', '-')}" for line in README.splitlines()}
    assert [link for link in links if not (CHECKOUT / link).exists() and link not in headings] == []

"""The demo: its data is what it says it is, and the whole of it runs on the real command line."""

import json
import os
import secrets
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from relay.backends import scripted
from relay.commands import demo
from relay.errors import Exit, RelayError
from relay.record import config, reply, spec
from relay.terms import Agent, Ask, JudgeReply, Kind, Limits, WorkReply
from tests.backends.lanes import lane
from tests.world import CHECKOUT, SAFETY

DATA = CHECKOUT / "relay" / "demo"
PROJECT: dict[str, str] = tomllib.loads((DATA / "project.toml").read_text(encoding="utf-8"))
SUITE = "python3 -m unittest -q"


def project(folder: Path) -> Path:
    for name, text in PROJECT.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def play(folder: Path, agent: str, phase: str, turn: int) -> WorkReply | JudgeReply:
    """Play a turn of one of the demo's scripts, and return its reply as Relay would read it."""
    kind: Kind = "work" if phase == "implement" else "judge"
    asked = Ask(
        run="r",
        leg="01-x",
        phase=phase,
        kind=kind,
        boundary="implement",
        round=1,
        turn=turn,
        nonce=secrets.token_hex(16),
        prompt="",
        folder=str(folder),
        reply_path="",
        limits=Limits(seconds=SAFETY),
        agent=Agent(name=agent, backend="scripted", vendor=agent, script=str(DATA / f"{agent}.toml")),
    )
    taken = scripted.take(asked, lane())
    assert (taken.ended_by, taken.problem) == ("reply", None)
    said, problem = reply.decode(taken.reply, kind, asked.nonce)
    assert said is not None, problem
    return said


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, cwd=folder, capture_output=True, check=False, text=True, timeout=SAFETY)  # noqa: S602  the commands are the demo's own


def test_the_project_of_the_demo_has_a_bug_that_its_tests_do_not_see(tmp_path: Path) -> None:
    folder = project(tmp_path)
    assert shell(folder, SUITE).returncode == 0
    assert shell(folder, "python3 -m eggtimer 1h30m").stdout == "the egg is done in 3600 seconds\n"


def test_the_spec_of_the_demo_has_two_criteria_with_commands_and_one_for_the_judge() -> None:
    read = spec.parse(PROJECT[demo.SPEC], demo.SPEC)
    assert [criterion.check is not None for criterion in read.criteria] == [True, True, False]


def test_the_line_up_of_the_demo_is_two_vendors() -> None:
    read = config.parse(PROJECT["relay.toml"].encode(), "relay.toml")
    assert {agent.vendor for agent in read.agents.values()} == {"atlas", "borealis"}


def test_the_first_fix_passes_every_command_and_the_second_passes_the_review(tmp_path: Path) -> None:
    folder = project(tmp_path)
    checks = [criterion.check for criterion in spec.parse(PROJECT[demo.SPEC], demo.SPEC).criteria if criterion.check]
    first_review = play(folder, "borealis", "review", 1)
    assert isinstance(first_review, JudgeReply)
    shown, unfounded = first_review.findings
    assert shown.repro is not None
    for turn, shows in ((1, True), (2, False)):
        play(folder, "atlas", "implement", turn)
        assert [shell(folder, check).returncode for check in checks] == [0, 0]
        for name, text in shown.repro.files.items():
            (folder / name).write_text(text)
        ran = shell(folder, shown.repro.command)
        assert (ran.returncode == shown.repro.expect_exit) is shows
        assert ((shown.repro.expect_output or "") in ran.stderr) is shows
        lines = (folder / shown.path).read_text().splitlines()
        assert (shown.quote in lines[shown.line - 1]) is shows
        assert unfounded.quote not in "\n".join(lines)
    for phase, turn in (("review", 2), ("acceptance", 1)):
        judged = play(folder, "borealis", phase, turn)
        assert isinstance(judged, JudgeReply)
        assert judged.verdict == "approve"
        quotes = [(criterion.path, criterion.quote) for criterion in judged.criteria if criterion.path]
        assert all(quote and quote in (folder / str(path)).read_text() for path, quote in quotes)


def test_a_path_with_quotes_in_it_still_makes_a_relay_toml() -> None:
    text = demo._lead(PROJECT["relay.toml"], {"atlas.toml": '/a "b"\\c/ü', "borealis.toml": "/d"})  # noqa: SLF001
    read = config.parse(text.encode(), "relay.toml")
    assert read.agents["atlas"].script == '/a "b"\\c/ü'


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(RelayError, match="is not empty") as caught:
        demo.run(tmp_path)
    assert caught.value.exit_code is Exit.USAGE
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_missing_git_is_named_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RelayError, match="`git` is not on PATH"):
        demo.run(tmp_path / "place")
    assert not (tmp_path / "place").exists()


def relay(*argv: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "relay", *argv],
        capture_output=True,
        check=False,
        text=True,
        timeout=SAFETY,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **(env or {})},
    )


def _receipts(runs: Path) -> list[dict[str, Any]]:
    paths = sorted(runs.glob("*/legs/[0-9]*/receipt.json"))
    return [json.loads(path.read_bytes()) for path in paths]


def test_the_demo_relays_a_bug_to_a_shipped_fix(tmp_path: Path) -> None:
    home = Path(os.environ["HOME"])
    own = home / "config" / "relay" / "config.toml"
    own.parent.mkdir()
    own.write_text("this is no TOML, and the demo does not read it")
    (home / ".gitconfig").write_text("[commit]\ngpgsign = true\n[user]\nname = Somebody Else\n")
    place = tmp_path / "a demo"

    ran = relay("demo", "--folder", str(place))

    assert ran.returncode == 0, ran.stderr
    assert "No model was called" in ran.stderr
    receipts = _receipts(place / "project/.git/relay/runs")
    assert [receipt["leg"].partition("-")[2] for receipt in receipts] == [
        *("implement", "review", "implement", "review", "acceptance", "approve", "ship")
    ]
    first_review = receipts[1]
    assert first_review["verdict"] == "revise"
    assert [finding["evidence"] for finding in first_review["findings"]] == ["confirmed", "unfounded"]
    assert [receipt["verdict"] for receipt in receipts[3:5]] == ["approve", "approve"]
    shown = subprocess.run(
        ["git", "log", "-1", "--format=%an", "-p", "main"],
        cwd=place / "project",
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert "WHOLE.fullmatch(text)" in shown
    assert shown.startswith("relay demo\n")
    assert not (home / "state" / "relay").exists()
    own.unlink()
    (home / ".gitconfig").unlink()
    told = [shlex.split(line) for line in ran.stdout.splitlines() if line.startswith(f"  {sys.executable} -m relay ")]
    assert [words[5] for words in told] == ["trace", "show", "show", "verify"]
    for words in told:
        again = relay(*words[3:])
        assert again.returncode == 0, f"{words}\n{again.stderr}"
        assert receipts[0]["run"] in again.stdout + again.stderr


def test_the_demo_speaks_json_alone_where_that_is_asked_for(tmp_path: Path) -> None:
    ran = relay("demo", "--json", "-q", "--folder", str(tmp_path / "place"))
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert events[-1]["type"] == "demo"
    assert events[-1]["project"] == str(tmp_path / "place" / "project")
    assert {"start", "receipt", "run"} <= {event["type"] for event in events}

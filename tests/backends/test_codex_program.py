"""Which Codex is found, and what is asked of it before anything is spent."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from relay.backends import codex as backend
from relay.backends import codex_program
from relay.errors import Exit, RelayError
from relay.terms import Agent, Limits
from tests.backends import codex
from tests.backends.codex import DONE, Leg
from tests.service import Fault, Script, do, say

NOWHERE = Agent(name="codex", backend="codex", vendor="openai", base_url="http://127.0.0.1:9/v1")

Opened = Callable[[Script], Leg]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Return what opens a leg on a script."""
    with codex.opened(tmp_path, monkeypatch) as open_:
        yield open_


def test_preflight_says_version_and_hash_of_the_program_itself(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    said = backend.preflight(leg.agent(), leg.tree)
    assert said == leg.take(leg.ask()).version
    digits = said.partition(" (")[2].rstrip(")")
    assert len(digits) == 12


def test_preflight_names_a_program_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f".:{tmp_path}")
    with pytest.raises(RelayError, match="`codex` is not on PATH") as caught:
        backend.preflight(NOWHERE, tmp_path)
    assert caught.value.exit_code is Exit.HUMAN
    assert caught.value.hint


def test_preflight_refuses_a_version_that_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "codex"
    old.write_text("#!/bin/sh\necho codex-cli 0.99.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RelayError, match=r"is version 0\.99\.1, and Relay needs 0\.160 or later"):
        backend.preflight(NOWHERE, tmp_path)


def test_a_sign_of_life_costs_one_small_call(opened: Opened) -> None:
    leg = opened({"": [say("ok")]})
    said = backend.probe(leg.agent())
    assert said.startswith(f"{codex.MODEL} answered in ")
    assert len(leg.bodies()) == 1


def test_preflight_starts_the_sandbox_once(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    leg = opened({"": [do.reply(DONE)]})
    monkeypatch.setenv("RELAY_TEST_AGENT", msgspec.json.encode(leg.agent()).decode())
    said = codex.walled(
        "import os, msgspec, pathlib\n"
        "from relay.backends import codex\n"
        "from relay.errors import RelayError\n"
        "from relay.terms import Agent\n"
        "try:\n"
        "    codex.preflight(msgspec.json.decode(os.environ['RELAY_TEST_AGENT'], type=Agent), pathlib.Path('/'))\n"
        "except RelayError as error:\n"
        "    print(int(error.exit_code), error.message)\n"
    )
    assert said.startswith("4 the sandbox of Codex does not start here: "), said


def test_the_program_behind_the_script_is_the_one_that_runs(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    found = codex_program.find(leg.agent())
    assert not codex_program.by_script(found)
    assert codex_program.silences(found)


def test_a_script_with_no_program_behind_it_does_and_is_told(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leg = opened({"": [do.run("sleep 300 & sleep 300"), do.reply(DONE)]})
    script = tmp_path / "bin" / "codex"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\n{codex_program.find(leg.agent()).path} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    backend.preflight(leg.agent(), leg.tree)
    assert "only the script" in capsys.readouterr().err
    assert leg.take(leg.ask(limits=Limits(seconds=2))).ended_by == "timeout"


def test_a_sign_of_life_tells_set_up_from_a_service_that_refuses(opened: Opened) -> None:
    leg = opened({"": [Fault("auth")]})
    with pytest.raises(RelayError, match="401") as refused:
        backend.probe(leg.agent())
    assert refused.value.exit_code is Exit.AGENT
    with pytest.raises(RelayError, match="nobody is logged in") as missing:
        backend.probe(leg.agent(billing="subscription"))
    assert missing.value.exit_code is Exit.HUMAN

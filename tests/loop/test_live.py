"""A leg is shown while it runs: one calm line on a terminal, nothing that moves elsewhere."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.service import Script, Service, do, nonce
from tests.world import CHECKOUT, SAFETY, World

SCRIPT: Script = {
    "phase `implement`": [
        do.run("echo looked; sleep 0.1"),
        do.edit("calc.py", "return a - b", "return a + b"),
        do.reply({"status": "done", "summary": "mended"}),
    ],
    "": [do.reply({"verdict": "approve", "nonce": nonce})],
}


@pytest.fixture
def served(world: World) -> Iterator[World]:
    """Make a world whose implementer is a model, and whose judges are another one."""
    with Service(SCRIPT) as service:
        line = {"backend": "openai", "base_url": f"{service.url}/v1", "model": "gpt-6-sol"}
        world.agents = {"gpt": line, "qwen": {**line, "vendor": "qwen"}}
        world.phases = {"implement": {"agent": "gpt"}, "review": {"agent": "qwen"}, "acceptance": {"agent": "qwen"}}
        world.save()
        yield world


def _on_a_terminal(world: World, *argv: str) -> str:
    own, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "relay", *argv],
        cwd=world.root,
        env=env | {"PYTHONPATH": str(CHECKOUT), "TERM": "xterm", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            chunk = os.read(own, 1 << 16)
        except OSError:  # the other side has gone
            break
        said += chunk
    os.close(own)
    assert process.wait(SAFETY) == 0, said
    return said.decode()


def test_a_terminal_has_one_line_that_changes_and_leaves_nothing_behind(served: World) -> None:
    said = _on_a_terminal(served, "run", str(served.spec()), "--until", "implement")
    pieces = [piece.partition("\n")[0] for piece in said.split("\r\x1b[2K")[1:]]
    lines = [piece for piece in pieces if piece.startswith("  implement  gpt  turn ")]
    assert any("bash echo looked" in line for line in lines)
    assert any("k tokens  $0." in line for line in lines)
    assert all(len(line) < 80 for line in lines)
    assert not said.rpartition("\r\x1b[2K")[2].startswith("  implement")


def test_a_pipe_has_no_line_that_changes(served: World) -> None:
    ran = served.relay("run", served.spec(), "--until", "implement")
    assert "\r" not in ran.err
    assert "bash echo looked" not in ran.err


def test_v_tells_all_of_it_and_json_has_an_event_for_each(served: World) -> None:
    ran = served.relay("-v", "--json", "run", served.spec(), "--until", "implement")
    assert "looked\n" in ran.err
    told = [event for event in ran.events if event["type"] == "told"]
    assert [event["what"] for event in told[:3]] == ["usage", "call", "result"]
    assert (told[1]["tool"], told[1]["turn"]) == ("bash", 1)

"""Relay is killed while an agent with a model works: its programs end, its work is kept, and the run goes on."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from relay.host import jail
from tests.backends.conforming import Sleepers
from tests.loop import doomed, vendors
from tests.loop.faults import through
from tests.service import Hits, Script, Service, do
from tests.world import FIXED, World

LINES: Final[dict[str, dict[str, Any]]] = {
    "claude": {"backend": "claude-code", "model": "claude-sonnet-4-5", "key": "KEY_OF_CLAUDE"},
    "codex": {"backend": "codex", "model": "gpt-5.5", "key": "KEY_OF_CODEX"},
    "api": {"backend": "anthropic", "model": "claude-opus-5-5", "key": "KEY_OF_CLAUDE"},
}
FINDING: Final = {"severity": "major", "title": "it multiplies", "path": "calc.py", "line": 2, "quote": "return a * b"}
PHASES: Final = {"implement": "worker", "review": "reviewer", "acceptance": "acceptor"}
ENDS: Final = [
    ("implement", "reply"),
    ("review", "reply"),
    ("implement", "interrupted"),
    ("implement", "reply"),
    ("review", "reply"),
    ("acceptance", "reply"),
]
CUT: Final = "03-implement"
SEALED: Final = "phase `implement`"
"""What is asked of the service by the leg that is sealed when Relay is killed."""
CUT_SHORT: Final = "it multiplies"
"""What is asked of it by the leg that is not, and by the one after it."""


def script(sleepers: Sleepers) -> Script:
    """Return the steps of the worker; the second time it works, it is killed in the middle."""
    return {
        CUT_SHORT: Hits(
            [
                do.write("half.txt", "half\n"),
                do.run(f"{sleepers.begin} sleep 300"),
                do.read("calc.py"),
                do.edit("calc.py", "    return a * b\n", "    return a + b\n"),
                do.reply({"status": "done", "summary": "it adds"}),
            ]
        ),
        SEALED: [
            do.read("calc.py"),
            do.edit("calc.py", "    return a - b\n", "    return a * b\n"),
            do.reply({"status": "done", "summary": "it multiplies now"}),
        ],
    }


def line_up(world: World, service: Service, worker: str, mode: str) -> None:
    """Give the work to one who has a model, and the judging to scripts."""
    url = f"{service.url}/v1" if worker == "codex" else service.url
    revise, approve = {"reply": {"verdict": "revise", "findings": [FINDING]}}, {"reply": {"verdict": "approve"}}
    world.script("reviewer", revise, approve, phase="review", vendor="x")
    world.script("acceptor", approve, phase="acceptance", vendor="x")
    world.agents["worker"] = {**LINES[worker], "base_url": url}
    world.phases = {name: {"agent": agent} for name, agent in PHASES.items()}
    world.save(jail={"mode": mode})


@pytest.mark.parametrize(
    ("worker", "mode"), [("claude", "off"), ("codex", "off"), ("api", "off"), ("codex", "required")]
)
def test_an_agent_whose_runner_is_killed_ends_and_its_work_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker: str, mode: str
) -> None:
    rung, said = jail.choose("off" if mode == "off" else "auto")
    if mode == "required" and not rung.holds:
        pytest.skip(said)
    vendors.have(monkeypatch, *({"claude", "codex"} & {worker}))
    world, sleepers = World.simple(tmp_path), Sleepers(jailed=mode == "required")
    with Service(script(sleepers)) as service:
        line_up(world, service, worker, mode)
        with world.start("run", world.spec()) as running:
            try:
                sleepers.wait(lambda: running.poll() is None)
            finally:
                running.kill()
        nonce = json.loads(world.text(CUT, "start.json"))["nonce"]
        if mode == "required":
            doomed.await_that(lambda: not sleepers.alive(), "a jail outlived its runner")
        else:
            assert sleepers.alive()
            assert doomed.carriers(f"RELAY_NONCE={nonce}")
        before = [request for request in service.requests if request.pattern == SEALED]
        resumed = world.relay("resume")
        through(resumed)
        assert service.problems == []
        assert sleepers.alive() == []
        assert doomed.carriers(f"RELAY_NONCE={nonce}") == []
        after = [request for request in service.requests if request.pattern == SEALED]
        played = Counter(request.turn for request in service.requests if request.pattern == CUT_SHORT)
    assert [request.turn for request in after] == [request.turn for request in before] == [0, 1, 2]
    assert played == Counter(range(5))
    receipts = world.receipts()
    ends = [(receipt["phase"], receipt["ended_by"]) for receipt in receipts]
    assert ends == ENDS
    assert world.refs()[f"refs/relay/{world.only_run()}/{CUT}.cut"] == receipts[2]["head"] == receipts[3]["start"]
    assert world.show(receipts[2]["head"], "half.txt") == "half\n"
    assert world.show(receipts[-1]["head"], "calc.py") == FIXED
    assert doomed.worktrees(world) == []
    through(world.relay("verify", world.only_run()))

"""Whole relays in which the vendors' own programs check each other, against the service of the tests."""

import re
from pathlib import Path
from typing import Any

import pytest

from relay.host import jail
from tests.loop import alone, vendors
from tests.loop.faults import through
from tests.service import Service
from tests.world import FIXED, World

VENDORS = {"claude": "anthropic", "codex": "openai"}
VERDICTS = [None, "revise", None, "approve", "approve"]
BACKENDS = {"claude": "claude-code", "codex": "codex"}


@pytest.fixture
def mode(request: pytest.FixtureRequest) -> str:
    """Return how the relay is jailed; skipped aloud where no jail holds."""
    wanted = str(request.param)
    if wanted == "required":
        rung, said = jail.choose("auto")
        if not rung.holds:
            pytest.skip(said)
    return wanted


@pytest.mark.parametrize(
    ("worker", "judge", "mode"),
    [("claude", "codex", "required"), ("codex", "claude", "off"), ("codex", "claude", "required")],
    indirect=["mode"],
)
def test_one_program_works_the_other_finds_it_wrong_and_what_was_mended_is_accepted(
    world: World, monkeypatch: pytest.MonkeyPatch, worker: str, judge: str, mode: str
) -> None:
    vendors.have(monkeypatch, "claude", "codex")
    with Service(vendors.script()) as service:
        vendors.line_up(world, service, worker, judge, jail={"mode": mode})
        ran = world.relay("run", world.spec())
        through(ran)
        assert service.problems == []
    receipts = world.receipts()
    assert [receipt["phase"] for receipt in receipts] == vendors.PHASES
    assert world.show(receipts[0]["head"], "calc.py") == vendors.WRONG
    assert world.show(receipts[-1]["head"], "calc.py") == FIXED
    [found] = receipts[1]["findings"]
    assert (found["evidence"], found["blocks"], found["path"]) == ("confirmed", True, "calc.py")
    assert [receipt["verdict"] for receipt in receipts] == VERDICTS
    assert receipts[-1]["score"] == "1/1"
    assert [receipt["breaches"] for receipt in receipts] == [[]] * 5
    assert {receipt["jail"] for receipt in receipts} == {"off" if mode == "off" else "bwrap"}
    _who_did_it_is_said(receipts, [worker, judge, worker, judge, worker])
    _no_key_is_kept(world)
    through(world.relay("verify", world.only_run()))
    through(world.relay("approve"))
    assert world.show("main", "calc.py") == FIXED


def _who_did_it_is_said(receipts: list[dict[str, Any]], names: list[str]) -> None:
    """Require that each receipt says who took the leg, in which session, what it used, and who pays."""
    for receipt, name in zip(receipts, names, strict=True):
        assert (receipt["agent"], receipt["backend"], receipt["vendor"]) == (name, BACKENDS[name], VENDORS[name])
        assert receipt["model"] == vendors.MODELS[name]
        assert re.fullmatch(r"\d+\.\d+\.\d+ \([0-9a-f]{12}\)", receipt["version"])
        assert (receipt["billing"], receipt["settings"]) == ("api", "none")
        used = receipt["usage"]
        assert used["complete"], receipt
        assert used["turns"] > 0
        assert used["input"] > used["output"] > 0
        assert receipt["cost_microusd"] > 0
    assert len({receipt["session"] for receipt in receipts}) == len(receipts)


def _no_key_is_kept(world: World) -> None:
    kept = b"".join(path.read_bytes() for path in world.runs.rglob("*") if path.is_file())
    assert b"it multiplies" in kept
    assert not [name for name, key in vendors.KEYS.items() if key.encode() in kept]


def test_a_whole_relay_reaches_nothing_but_its_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vendors.have(monkeypatch, "claude", "codex")
    came = alone.relay(tmp_path / "alone", "claude", "codex")
    assert came["code"] == 0, came["err"]
    assert came["networks"] == ["lo"]
    assert came["tries"] == {}
    assert came["tried"] == ["IpOutNoRoutes", "TcpAttemptFails", "UdpNoPorts", "UdpOutDatagrams"]
    assert (came["problems"], came["asked"]) == ([], ["/v1/messages", "/v1/responses"])
    assert came["phases"] == vendors.PHASES
    assert came["verdicts"] == VERDICTS

"""A whole relay over OpenAI's protocols: one model implements by Responses, another one reviews and accepts by chat."""

import json
import secrets

import pytest

from tests.service import Fault, Hits, Script, Service, do, nonce
from tests.world import FIXED, World

KEY = f"sk-test-{secrets.token_hex(16)}"
FINDING = {
    "severity": "major",
    "title": "still wrong",
    "path": "calc.py",
    "line": 2,
    "quote": "return b",
    "why": "no sum",
}


def test_a_run_is_implemented_reviewed_repaired_and_accepted_over_two_protocols(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    script: Script = {
        "phase `acceptance`": [do.reply({"verdict": "approve", "nonce": nonce})],
        "phase `review`": Hits(
            [
                do.search("def add"),
                do.reply({"verdict": "revise", "nonce": nonce, "findings": [FINDING]}),
                do.reply({"verdict": "approve", "nonce": nonce}),
            ]
        ),
        "still wrong": [
            Fault("drop", times=1),
            do.edit("calc.py", "return b", "return a + b"),
            do.run("python3 -B -c 'import calc; assert calc.add(2, 3) == 5'"),
            do.reply({"status": "done", "summary": "mended for good"}),
        ],
        "phase `implement`": [
            do.read("calc.py"),
            do.edit("calc.py", "return a - b", "return b"),
            do.reply({"status": "done", "summary": "mended"}),
        ],
    }
    with Service(script) as service:
        line = {"backend": "openai", "base_url": f"{service.url}/v1", "key": "GATEWAY_KEY"}
        world.agents = {
            "gpt": {**line, "model": "gpt-6-sol"},
            "qwen": {**line, "model": "qwen3-coder", "api": "chat", "vendor": "qwen"},
        }
        world.phases = {"implement": {"agent": "gpt"}, "review": {"agent": "qwen"}, "acceptance": {"agent": "qwen"}}
        world.save()
        ran = world.relay("run", world.spec())
        assert (ran.code, service.problems) == (0, []), ran
        paths = {request.path.rpartition("/v1")[2] for request in service.requests}
    assert paths == {"/responses", "/chat/completions"}
    receipts = world.receipts()
    assert [receipt["phase"] for receipt in receipts] == ["implement", "review", "implement", "review", "acceptance"]
    assert world.show(receipts[-1]["head"], "calc.py") == FIXED
    assert [receipt["model"] for receipt in receipts[:2]] == ["gpt-6-sol", "qwen3-coder"]
    assert receipts[0]["cost_microusd"] > 0
    assert receipts[1]["cost_microusd"] is None
    assert receipts[2]["usage"]["complete"] is False
    kept = b"".join(path.read_bytes() for path in world.runs.rglob("*") if path.is_file())
    assert KEY.encode() not in kept
    assert json.loads(world.text(receipts[0]["leg"], "reply.json"))["summary"] == "mended"

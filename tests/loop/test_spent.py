"""What a leg used counts however the leg ended, and what a person adds lets it go on."""

import signal
import time
from collections.abc import Iterator

import pytest

from tests.service import Script, Service, Turn, Usage, do, nonce
from tests.world import SAFETY, World

DEAR = Usage(input=800_000, output=10)


@pytest.fixture
def served(world: World) -> Iterator[World]:
    """Make a world whose implementer is a model that costs a dollar a turn."""
    once = f"echo spent; mkdir {world.folder}/once && sleep 60"
    script: Script = {
        "phase `implement`": [
            Turn(do.run(once), usage=DEAR),
            do.reply({"status": "done", "summary": "mended"}),
        ],
        "": [do.reply({"verdict": "approve", "nonce": nonce})],
    }
    with Service(script) as service:
        line = {"backend": "openai", "base_url": f"{service.url}/v1", "model": "gpt-6-sol"}
        world.agents = {"gpt": {**line, "price": [2.0, 10.0]}, "qwen": {**line, "vendor": "qwen"}}
        world.phases = {"implement": {"agent": "gpt"}, "review": {"agent": "qwen"}, "acceptance": {"agent": "qwen"}}
        yield world


def _spent(world: World) -> bool:
    return any("spent" in path.read_text() for path in world.runs.glob("*/legs/*/transcript.jsonl"))


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_money_of_a_leg_that_was_cut_short_is_not_forgotten(served: World, signum: signal.Signals) -> None:
    served.save(budget={"usd": 2.0, "reserve": 0})
    running = served.start("run", served.spec())
    while not _spent(served):
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signum)
    running.communicate(timeout=SAFETY)
    ran = served.relay("resume", "--until", "implement")
    first = served.receipts()[0]
    assert (first["ended_by"], first["cost_microusd"], first["usage"]["turns"]) == ("interrupted", 1_600_100, 1), first[
        "breaches"
    ]
    assert first["usage"]["complete"] is False, first["breaches"]
    assert served.receipts()[1]["ended_by"] == "budget", ran


def test_what_a_person_adds_raises_the_agents_own_bound_too(served: World) -> None:
    served.agents["qwen"] |= {"turns": 1}
    served.agents["gpt"] = {**served.agents["qwen"], "vendor": "gpt"}
    served.save()
    quick: Script = {
        "": [do.run("sed -i 's/a - b/a + b/' calc.py"), do.reply({"status": "done", "summary": "as it was"})]
    }
    with Service(quick) as service:
        for agent in served.agents.values():
            agent["base_url"] = f"{service.url}/v1"
        served.save()
        ran = served.relay("run", served.spec(), "--until", "implement")
        assert (ran.code, served.receipts()[0]["ended_by"]) == (4, "budget")
        assert f"relay resume {served.only_run()} --turns 1\n" in ran.err
        served.relay("resume", "--turns", "1", "--until", "implement")
    assert [receipt["ended_by"] for receipt in served.receipts() if receipt["kind"] == "work"] == ["budget", "reply"]

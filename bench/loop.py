"""What Relay's agent loop costs: turns of a command that does nothing, against the service of the tests.

    python bench/loop.py [TURNS] [ROUNDS] [--peer PYTHON]

Beside it, in turn, on the same service in the same run: a loop of ten lines over the SDK, and mini-swe-agent, where
`--peer` names a python that has it. Each runs in a process of its own, in the open. A turn's time is that between two
requests as the service sees them, so its own time is part of everybody's. Start-up ends with the first request.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
MODEL = "claude-opus-5-5"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


# --- those that take part, each in its own process ----------------------------------------------------------------


def relay(url: str, folder: Path) -> None:
    """Take a leg as `relay run` does, transcript and all."""
    from relay.backends import anthropic
    from relay.backends.base import Lane
    from relay.host.redact import Redactor
    from relay.record import reply
    from relay.record.transcript import Transcript
    from relay.terms import Agent, Ask, Limits

    ask = Ask(
        run="261129-0230-bench",
        leg="01-implement",
        phase="implement",
        kind="work",
        boundary="implement",
        round=1,
        turn=1,
        nonce="0" * 32,
        prompt="bench",
        folder=str(folder),
        reply_path=str(folder / "reply.json"),
        limits=Limits(seconds=3600, turns=100_000),
        agent=Agent(name="a", backend="anthropic", vendor="anthropic", model=MODEL, base_url=url),
        schema=reply.schema("work"),
    )
    with Transcript(folder / "transcript.jsonl", Redactor({})) as transcript:
        lane = Lane(
            sink=transcript.write,
            told=transcript.tell,
            spawned=lambda _: None,
            unfit=lambda raw: reply.decode(raw, "work", None)[1],
        )
        taken = anthropic.take(ask, lane)
    if taken.ended_by != "reply":
        raise SystemExit(f"{taken.ended_by}: {taken.problem}")


def ten_lines(url: str, folder: Path) -> None:
    """Do the same with nothing but the SDK."""
    import anthropic

    client, messages = anthropic.Anthropic(base_url=url, api_key="none"), [{"role": "user", "content": "bench"}]
    shell = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    asked: Any = {"model": MODEL, "max_tokens": 32_000, "cache_control": {"type": "ephemeral"}}
    asked["tools"] = [{"name": "bash", "description": "Run a command.", "input_schema": shell}]
    while True:
        with client.messages.stream(messages=messages, **asked) as stream:
            answer: Any = stream.get_final_message()
        messages.append({"role": "assistant", "content": answer.content})
        results: Any = []
        for call in [block for block in answer.content if block.type == "tool_use"]:
            ran = subprocess.run(call.input["command"], shell=True, cwd=folder, capture_output=True, check=False)  # noqa: S602
            results.append({"type": "tool_result", "tool_use_id": call.id, "content": ran.stdout.decode() or "nothing"})
        if not results:
            return
        messages.append({"role": "user", "content": results})


def peer(url: str, folder: Path) -> None:
    """Do it with mini-swe-agent, as it comes."""
    from minisweagent.agents.default import DefaultAgent  # type: ignore[import-not-found]
    from minisweagent.environments.local import LocalEnvironment  # type: ignore[import-not-found]
    from minisweagent.models.litellm_model import LitellmModel  # type: ignore[import-not-found]

    model = LitellmModel(
        model_name=f"anthropic/{MODEL}",
        model_kwargs={"api_base": url, "api_key": "none"},
        set_cache_control="default_end",
        cost_tracking="ignore_errors",
    )
    agent = DefaultAgent(
        model,
        LocalEnvironment(cwd=str(folder)),
        system_template="You are an agent.",
        instance_template="{{task}}",
        cost_limit=0,
    )
    agent.run("bench")


WAYS = {"relay": relay, "ten lines of the SDK": ten_lines, "mini-swe-agent": peer}


def take_part(name: str, url: str, folder: Path) -> None:
    """Run one of them and say what it used of the processor, and how much memory it held at most."""
    WAYS[name](url, folder)
    own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(used.ru_utime + used.ru_stime for used in (own, below))
    print(json.dumps({"cpu": cpu, "memory": own.ru_maxrss / 1024}))


# --- the one that measures ----------------------------------------------------------------------------------------


def measure(name: str, python: str, turns: int) -> dict[str, float]:
    """Let one of them play a script, and count."""
    from tests.service import Service, do, say, uncovered

    end = {"relay": do.reply({"status": "done"}), "mini-swe-agent": do.run(SUBMIT)}.get(name, say("Done."))
    script = {"": [*[do.run(f"true {number}") for number in range(turns)], end]}
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as folder, Service(script) as service:
        env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        env |= {"HOME": folder, "NO_PROXY": "127.0.0.1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        env |= {"MSWEA_SILENT_STARTUP": "1", "PYTHONPATH": str(CHECKOUT) if name == "relay" else ""}
        began = time.monotonic()
        words = [python, str(Path(__file__).resolve()), "--as", name, service.url, folder]
        ran = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        if ran.returncode or service.problems:
            raise SystemExit(f"{name} failed: {service.problems}\n{ran.stdout}\n{ran.stderr}")
        at = [request.at for request in service.requests]
        took = [after - before for before, after in pairwise(at)]
        used = json.loads(ran.stdout.splitlines()[-1])
        return {
            "start-up s": at[0] - began,
            "ms a turn": 1000 * statistics.median(took),
            "first 20": 1000 * statistics.median(took[:20]),
            "last 20": 1000 * statistics.median(took[-20:]),
            "CPU s": used["cpu"],
            "sent MB": sum(request.size for request in service.requests) / 1e6,
            "uncached B": sum(uncovered(service.requests)),
            "peak MB": used["memory"],
        }


def main() -> None:
    """Measure all of them in turn, and print a table of medians."""
    parser = argparse.ArgumentParser(description="What the agent loop costs.")
    parser.add_argument("turns", nargs="?", type=int, default=100)
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    parser.add_argument("--peer", metavar="PYTHON", help="a python that has mini-swe-agent")
    parser.add_argument("--as", nargs=3, dest="part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        take_part(args.part[0], args.part[1], Path(args.part[2]))
        return
    sys.path.insert(0, str(CHECKOUT))
    pythons = {"relay": sys.executable, "ten lines of the SDK": sys.executable}
    if args.peer:
        pythons["mini-swe-agent"] = args.peer
    else:
        print("mini-swe-agent is left out: name a python that has it with --peer")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    idle: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    bare = []
    for _ in range(args.rounds):
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", "import anthropic"], check=True)
        bare.append(time.monotonic() - began)
        for name, python in pythons.items():
            found[name].append(measure(name, python, args.turns))
            idle[name].append(measure(name, python, 2))
    print(
        f"{args.turns} turns, medians of {args.rounds} rounds; bare import of the SDK: {statistics.median(bare):.2f} s"
    )
    for name, rounds in found.items():
        row = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        start = statistics.median(one["CPU s"] for one in idle[name])
        row["CPU ms a turn"] = 1000 * (row.pop("CPU s") - start) / (args.turns - 2)
        print(f"{name:22}" + "  ".join(f"{key} {value:.4g}" for key, value in row.items()))


if __name__ == "__main__":
    main()

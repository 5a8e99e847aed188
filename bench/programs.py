"""What a leg of a vendor's own program costs on top of the bare program, on the same script.

    python bench/programs.py [ROUNDS] [--programs FOLDER]

In turn, against the service of the tests: the backend takes a leg, and the bare program is run with the very words and
variables that Relay started it with. Before that what Relay asks of a program once for a run, and the first leg of a
process. Then a whole `relay run` of three such legs, worktrees, commits and receipts and all; and, for comparison, one
of a command that does the same without any model. Wall clock in milliseconds, median (least to most); memory is what
Relay's own process held at most.
"""

import argparse
import json
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relay.terms import Agent

CHECKOUT = Path(__file__).resolve().parent.parent
KEY = "sk-bench-of-relay"
PROGRAMS = {"claude": ("claude-code", "claude-sonnet-4-5", ""), "codex": ("codex", "gpt-5.5", "/v1")}
"""Program, and backend, model and end of the address."""
NAMES = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY"}
SPEC = "# Make it\n\n## Acceptance\n\n- It is there: `test -f made.txt`\n"
CONFIG = """
phases = ["implement", "review", "acceptance"]
[agents.a]
{agent}
[phase.implement]
agent = "a"
[phase.review]
agent = "a"
allow_same_vendor = true
[phase.acceptance]
agent = "a"
[jail]
mode = "off"
"""


# --- the one that stands for Relay, in a process of its own -------------------------------------------------------


class Started:
    """How Relay started a program: its words, its variables, and the files that it made for it."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.env: dict[str, str] = {}
        self.files: dict[Path, bytes] = {}
        self._pid = 0

    def spawned(self, process: Any) -> None:  # noqa: ANN401 - a Process
        """Note which one it is."""
        self._pid = process.pid

    def told(self, io: Path) -> None:
        """Look at it, once it has said something."""
        if not self.words:
            found = Path(f"/proc/{self._pid}")
            self.words = (found / "cmdline").read_bytes().decode().split("\0")[:-1]
            pairs = (found / "environ").read_bytes().decode().split("\0")[:-1]
            self.env = dict(pair.split("=", 1) for pair in pairs)
            self.files = {path: path.read_bytes() for path in io.glob("*/*") if path.is_file()}


def take(agent: "Agent", top: Path, started: Started | None = None) -> float:
    """Take a leg as `relay run` does, transcript and all; return its seconds."""
    from relay.backends import named
    from relay.backends.base import Lane
    from relay.host.redact import Redactor
    from relay.record import reply
    from relay.record.transcript import Transcript
    from relay.terms import Ask, Limits, Told

    folder, io = top / "leg", top / "leg.io"
    shutil.rmtree(io, ignore_errors=True)
    io.mkdir()
    nonce = secrets.token_hex(16)
    ask = Ask(
        run="261129-0230-bench",
        leg="01-implement",
        phase="implement",
        kind="work",
        boundary="implement",
        round=1,
        turn=1,
        nonce=nonce,
        prompt="bench",
        folder=str(folder),
        reply_path=str(io / "reply.json"),
        limits=Limits(seconds=600),
        agent=agent,
        schema=reply.schema("work"),
        env={"RELAY_NONCE": nonce},
    )
    backend = named(agent.backend)
    with Transcript(top / "transcript.jsonl", Redactor({})) as transcript:

        def told(one: Told) -> None:
            if started is not None:
                started.told(io)
            transcript.tell(one)

        lane = Lane(
            sink=transcript.write,
            told=told,
            spawned=started.spawned if started else lambda _: None,
            unfit=lambda raw: reply.decode(raw, "work", None)[1],
        )
        began = time.monotonic()
        backend.needs(ask)
        taken = backend.take(ask, lane)
        took = time.monotonic() - began
    if taken.ended_by != "reply":
        raise SystemExit(f"{taken.ended_by}: {taken.problem}")
    return took


def bare(program: str, top: Path, started: Started) -> float:
    """Run the program alone, from where Relay began; return its seconds."""
    place = top / "leg.io" / program
    shutil.rmtree(place, ignore_errors=True)
    for name in ("home", "tmp"):
        (place / name).mkdir(parents=True)
    for path, data in started.files.items():
        path.write_bytes(data)
    words = list(started.words)
    env = {name: value for name, value in started.env.items() if name != "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"}
    env[NAMES[program]] = KEY
    if "--session-id" in words:
        words[words.index("--session-id") + 1] = str(uuid.uuid4())
    began = time.monotonic()
    ran = subprocess.run(words, cwd=top / "leg", env=env, input=b"bench", capture_output=True, check=False)
    took = time.monotonic() - began
    if ran.returncode:
        raise SystemExit(f"the bare {program} failed: {ran.stdout[-2000:]!r} {ran.stderr[-2000:]!r}")
    return took


def take_part(program: str, url: str, top: Path, rounds: int) -> None:
    """Do one after the other so often, and say how long each took, and how much memory this process held at most."""
    from relay.backends import named
    from relay.terms import Agent

    name, model, end = PROGRAMS[program]
    agent = Agent(name="a", backend=name, vendor="any", model=model, base_url=f"{url}{end}", key=NAMES[program])
    began = time.monotonic()
    named(name).preflight(agent, top / "leg")
    before = time.monotonic() - began
    started, ours, alone = Started(), [], []
    first = take(agent, top, started)
    bare(program, top, started)
    for _ in range(rounds):
        ours.append(take(agent, top))
        alone.append(bare(program, top, started))
    print(json.dumps({"before": before, "first": first, "ours": ours, "alone": alone, "memory": _peak("self")}))


def _peak(pid: str | int) -> float:
    """Return the most memory that a process held, in MB; 0 where it has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


# --- the one that measures ----------------------------------------------------------------------------------------


def whole(agent: str, top: Path, env: dict[str, str]) -> tuple[list[float], float]:
    """Run a whole relay of one agent, given by its line; return the seconds of its legs, the memory of its process."""
    project = top / f"project-{secrets.token_hex(4)}"
    project.mkdir()
    (project / "relay.toml").write_text(CONFIG.format(agent=agent))
    (top / "task.md").write_text(SPEC)
    git = ["git", "-c", "user.name=Bench", "-c", "user.email=bench@localhost"]
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "base")):
        subprocess.run([*git, *words], cwd=project, check=True)
    words = [sys.executable, "-m", "relay", "-q", "run", str(top / "task.md")]
    running = subprocess.Popen(words, cwd=project, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0.0
    while running.poll() is None:
        peak = max(peak, _peak(running.pid))
        time.sleep(0.02)
    _, err = running.communicate()
    if running.returncode:
        raise SystemExit(f"the relay ended with {running.returncode}: {err.decode()}")
    legs = sorted((project / ".git" / "relay" / "runs").glob("*/legs/*/receipt.json"))
    return [json.loads(path.read_bytes())["seconds"] for path in legs], peak


def measure(program: str, folder: str, rounds: int) -> None:
    """Measure one program, and print its table."""
    from tests.service import Service, do, nonce

    name, model, end = PROGRAMS[program]
    make = [do.run("echo made > made.txt"), do.run("cat made.txt"), do.reply({"status": "done"})]
    judge = [do.run("ls"), do.run("cat made.txt"), do.reply({"verdict": "approve", "nonce": nonce})]
    script = {"phase `implement`": make, "phase `(review|acceptance)`": judge, "": make}
    with tempfile.TemporaryDirectory(prefix="relay-bench-", dir="/var/tmp") as place, Service(script) as service:
        top = Path(place)
        (top / "leg").mkdir()
        (top / "home").mkdir()
        env = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(top / "home"), "NO_PROXY": "127.0.0.1"}
        env |= {"PYTHONPATH": str(CHECKOUT), NAMES[program]: KEY, "XDG_STATE_HOME": str(top / "state")}
        words = [sys.executable, str(Path(__file__).resolve()), "--as", program, service.url, str(top), str(rounds)]
        ran = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        if ran.returncode or service.problems:
            raise SystemExit(f"{program} failed: {service.problems}\n{ran.stdout}\n{ran.stderr}")
        found = json.loads(ran.stdout)
        line = {"backend": name, "model": model, "base_url": f"{service.url}{end}", "key": NAMES[program]}
        agent = "\n".join(f"{key} = {json.dumps(value)}" for key, value in line.items())
        worker = 'backend = "command"\ncommand = ["sh", "-c", "echo made > made.txt"]\nreply = "exit"'
        count = max(2, rounds // 4)
        runs = [whole(agent, top, env) for _ in range(count)]
        plain = [whole(worker, top, env) for _ in range(count)]
    pairs = [ours - alone for ours, alone in zip(found["ours"], found["alone"], strict=True)]
    print(f"{program}, {rounds} rounds, a leg of three turns")
    _row("before the run, once", [found["before"]])
    _row("the bare program", found["alone"])
    _row("the backend's leg", found["ours"], found["memory"])
    _row("  on top", pairs)
    _row("  the first one", [found["first"]])
    for title, these in (("legs of `relay run`", runs), ("  of a command", plain)):
        _row(title, [seconds for legs, _ in these for seconds in legs], max(peak for _, peak in these))


def _row(name: str, seconds: list[float], memory: float = 0.0) -> None:
    low, middle, high = (1000 * of(seconds) for of in (min, statistics.median, max))
    print(f"  {name:22}{middle:7.0f} ms ({low:.0f} to {high:.0f})" + (f"{memory:8.1f} MB" if memory else ""))


def main() -> None:
    """Measure each program that is there."""
    parser = argparse.ArgumentParser(description="What a leg of a vendor's own program costs.")
    parser.add_argument("rounds", nargs="?", type=int, default=11)
    parser.add_argument("--programs", metavar="FOLDER", help="where they are, if not on PATH")
    parser.add_argument("--as", nargs=4, dest="part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        take_part(args.part[0], args.part[1], Path(args.part[2]), int(args.part[3]))
        return
    sys.path.insert(0, str(CHECKOUT))
    for program in PROGRAMS:
        found = shutil.which(program, path=args.programs)
        if found is None:
            print(f"`{program}` is not installed: name its folder with --programs")
            continue
        measure(program, str(Path(found).absolute().parent), args.rounds)


if __name__ == "__main__":
    main()

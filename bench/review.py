"""What settling costs Relay itself: three rounds of review, twenty findings with repros, acceptance with swapped tests.

    python bench/review.py [RUNS] [--checks SECONDS ...] [--jail MODE]

The agents are scripts that take no time. What a run takes is split into git, the commands that Relay runs (checks,
criteria, repros, tests between base and head), and the rest: Relay itself, its files and their syncing to disk. The
last line sets that beside git and the commands together. `--checks` is how long one run of the tests takes.
"""

import argparse
import contextlib
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

CHECKOUT: Final = Path(__file__).resolve().parent.parent
ROUNDS: Final = 3
FINDINGS: Final = 20
TEST: Final = """\
import time
import unittest

import calc


class Test(unittest.TestCase):
    def test_{name}(self):
        time.sleep({seconds})
        self.assertGreaterEqual(calc.part_0(), 0)
"""


def code(fixed: int) -> str:
    """Return a module of which the first parts are right."""
    parts = (f"def part_{n}():\n    return {n if n < fixed else n + 1000}\n" for n in range(FINDINGS))
    return "\n\n".join(parts)


def finding(number: int) -> dict[str, Any]:
    """Return a finding that Relay can confirm."""
    return {
        "severity": "major",
        "title": f"part {number} is wrong",
        "path": "calc.py",
        "line": 1,
        "quote": f"return {number + 1000}",
        "repro": {
            "files": {"probe.py": f"import calc\nassert calc.part_{number}() == {number}, 'wrong'\n"},
            "command": "python3 -B probe.py",
            "expect_output": "AssertionError: wrong",
        },
    }


def reply(**fields: object) -> dict[str, object]:
    """Return a turn of a script that replies."""
    return {"reply": fields}


def make(folder: Path, seconds: float, mode: str) -> Path:
    """Make the repository, the scripts and the spec."""
    from tests.world import World

    world = World(
        folder, {"calc.py": code(0), "tests/__init__.py": "", "tests/test_a.py": TEST.format(name="a", seconds=seconds)}
    )
    new = {"tests/test_b.py": TEST.format(name="b", seconds=seconds)}
    steps = [0, FINDINGS // 2, FINDINGS]
    work = [
        {"write": {"calc.py": code(fixed) + f"\n\nTRY = {fixed}\n", **new}, **reply(status="done")} for fixed in steps
    ]
    first, second = range(FINDINGS), range(FINDINGS // 2, FINDINGS)
    reviews = [reply(verdict="revise", findings=[finding(n) for n in some]) for some in (first, second)]
    world.script("worker", *work, phase="implement", vendor="north")
    world.script("critic", *reviews, reply(verdict="approve"), phase="review", vendor="south")
    world.script("judge", reply(verdict="approve"), phase="acceptance", vendor="south")
    suite = "python3 -B -m unittest -q"
    world.save(checks={"test": suite}, tests={"paths": ["tests/**"], "command": suite}, jail={"mode": mode})
    world.spec(f"# Mend the parts\n\n## Acceptance\n\n- the tests pass: `{suite}`\n- it tries: `grep -q TRY calc.py`\n")
    return world.root


class Clock:
    """Adds up the time inside some functions, wherever they are called from, without counting one inside another."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._inside = False

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its time counted."""

        def run(*args: object, **named: object) -> object:
            if self._inside:
                return function(*args, **named)
            self._inside, began = True, time.perf_counter()
            try:
                return function(*args, **named)
            finally:
                self._inside = False
                self.spent[name] = self.spent.get(name, 0) + time.perf_counter() - began
                self.calls[name] = self.calls.get(name, 0) + 1

        return run


@contextlib.contextmanager
def watched(clock: Clock) -> Iterator[None]:
    """Count git and commands; a measure may put itself between, a test may not."""
    from relay.host import git, proc

    before = git._once, proc.run  # noqa: SLF001 - the one place where git is run
    git._once, proc.run = clock.timed("git", git._once), clock.timed("commands", proc.run)  # type: ignore[assignment]  # noqa: SLF001
    try:
        yield
    finally:
        git._once, proc.run = before  # noqa: SLF001


def measure(seconds: float, mode: str) -> dict[str, float]:
    """Run once, in this process, and split the time."""
    from relay import cli

    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as name:
        folder = Path(name).resolve()
        os.environ |= {"HOME": name, "XDG_STATE_HOME": f"{name}/state", "XDG_CONFIG_HOME": f"{name}/config"}
        root = make(folder / "world", seconds, mode)
        said = io.StringIO()
        with watched(clock), contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            began = time.perf_counter()
            exit_code = cli.main(["-q", "-C", str(root), "run", str(folder / "world/specs/task.md")])
            whole = time.perf_counter() - began
        paths = sorted(root.glob(".git/relay/runs/*/legs/*/receipt.json"))
        sealed = [json.loads(path.read_bytes()) for path in paths]
    found = {finding["id"] for one in sealed for finding in one["findings"]}
    rounds = [one["verdict"] for one in sealed if one["phase"] == "review"]
    if exit_code or len(found) != FINDINGS or rounds != ["revise"] * (ROUNDS - 1) + ["approve"]:
        raise SystemExit(
            f"the run was not what it should be: exit {exit_code}, {rounds}, {len(found)}\n{said.getvalue()}"
        )
    parts = {"whole": whole, "git": clock.spent["git"], "commands": clock.spent["commands"]}
    own = whole - parts["git"] - parts["commands"]
    share = 100 * own / (parts["git"] + parts["commands"])
    return parts | {
        "relay": own,
        "share %": share,
        "legs": len(sealed),
        "calls of git": clock.calls["git"],
        "commands run": clock.calls["commands"],
    }


def main() -> None:
    """Measure, and print medians."""
    parser = argparse.ArgumentParser(description="What settling costs.")
    parser.add_argument("runs", nargs="?", type=int, default=3)
    parser.add_argument("--checks", nargs="+", type=float, default=[0.0, 1.0, 5.0], metavar="SECONDS")
    parser.add_argument("--jail", default="auto")
    args = parser.parse_args()
    sys.path.insert(0, str(CHECKOUT))
    print(f"{ROUNDS} rounds, {FINDINGS} findings with a repro each; medians of {args.runs} runs, in seconds")
    for seconds in args.checks:
        runs = [measure(seconds, args.jail) for _ in range(args.runs)]
        row = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        print(f"tests of {seconds:g} s: " + "  ".join(f"{name} {value:.4g}" for name, value in row.items()))


if __name__ == "__main__":
    main()

"""What Relay itself costs: a whole mechanical relay beside the plain git commands that any such run needs.

    python bench/overhead.py [FILES] [RUNS]

Both sides work on the same generated repository, in turn: three worktrees made and removed, one change committed,
each side's state looked at as often as Relay has to. Prints seconds: minimum, median, maximum, and the ratio.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SPEC = "# Add a line\n\n## Acceptance\n\n- It is there: `test -f added.txt`\n"
CONFIG = """
[agents.worker]
backend = "command"
command = ["{folder}/worker"]
reply = "exit"

[agents.judge]
backend = "command"
command = ["true"]
reply = "exit"

[phase.implement]
agent = "worker"
[phase.review]
agent = "judge"
[phase.acceptance]
agent = "judge"
"""


def main() -> None:
    """Build the repository, run both sides in turn, print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory(prefix="relay-bench-") as name:
        folder = Path(name)
        top = _repository(folder, count)
        env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
        sides: dict[str, Callable[[], None]] = {
            "relay run": lambda: _relay(top, folder, env),
            "git alone": lambda: _git_alone(top, folder, env),
        }
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(runs + 1):
            for side, work in sides.items():
                began = time.perf_counter()
                work()
                seconds[side].append(time.perf_counter() - began)
    print(f"{count} files, {runs} runs after one to warm up; a relay of three legs without a model")
    for side, found in seconds.items():
        counted = found[1:]
        print(f"{side:10}  min {min(counted):.3f}  median {statistics.median(counted):.3f}  max {max(counted):.3f} s")
    pairs = [ours / plain for ours, plain in zip(*(found[1:] for found in seconds.values()), strict=True)]
    print(f"ratio       min {min(pairs):.2f}  median {statistics.median(pairs):.2f}  max {max(pairs):.2f}")


def _repository(folder: Path, count: int) -> Path:
    """Make a repository of `count` small files in folders of a hundred."""
    top = folder / "project"
    for number in range(count):
        path = top / f"part{number // 100}" / f"file{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {number}\n" * 20)
    worker = folder / "worker"
    worker.write_text("#!/bin/sh\ncat > /dev/null\necho added > added.txt\n")
    worker.chmod(0o755)
    (top / "relay.toml").write_text(CONFIG.format(folder=folder))
    (folder / "task.md").write_text(SPEC)
    for args in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "Bench"),
        ("config", "user.email", "bench@localhost"),
        ("add", "-A"),
        ("commit", "-q", "-m", "base"),
    ):
        _run(["git", *args], top, dict(os.environ))
    return top


def _relay(top: Path, folder: Path, env: dict[str, str]) -> None:
    """Run the relay up to acceptance; what it left is removed outside the measure of the next side."""
    _run([sys.executable, "-m", "relay", "-q", "run", str(folder / "task.md")], top, env)


def _git_alone(top: Path, folder: Path, env: dict[str, str]) -> None:
    """Do with git what no such run can do without: a worktree a leg, two looks at it, two at the checkout, a commit."""
    for number in range(4):  # three legs, and the clean checkout that acceptance judges
        tree = folder / f"plain-{number}"
        _run(["git", "worktree", "add", "-q", "--detach", str(tree), "HEAD"], top, env)
        for _ in range(2):
            _run(["git", "status", "--porcelain=v2", "--untracked-files=all", "--ignored=matching"], top, env)
            _run(["git", "status", "--porcelain=v2", "--untracked-files=all", "--ignored=matching"], tree, env)
        if number == 0:
            (tree / "added.txt").write_text("added\n")
            _run(["git", "add", "-A"], tree, env)
            _run(["git", "commit", "-q", "-m", "work"], tree, env)
        shutil.rmtree(tree)
        _run(["git", "worktree", "prune"], top, env)


def _run(command: list[str], folder: Path, env: dict[str, str]) -> None:
    subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()

"""What a jail costs: `true` by itself, through `proc.run`, and jailed in each access, side by side.

Run it from the checkout: python bench/jail.py [ROUNDS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from relay.host import jail, proc, term
from relay.terms import Limits

LIMITS = Limits(seconds=60)


def milliseconds(act: Callable[[], object], rounds: int) -> list[float]:
    """Return how long each round took, after two that do not count."""
    taken = []
    for _ in range(rounds + 2):
        began = perf_counter()
        act()
        taken.append((perf_counter() - began) * 1000)
    return sorted(taken[2:])


def main() -> None:
    """Print a table of medians."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    rung, said = jail.choose("auto")
    term.say(said)
    home = Path.home()
    tools = jail.readable(os.environ.get("PATH", os.defpath), home)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve()
        (tree / "a.py").write_text("a = 1\n", encoding="utf-8")

        def jailed(access: jail.Access) -> Callable[[], object]:
            mounts = jail.Mounts(tree=tree, access=access, home=home, readable=tools)
            return lambda: jail.jailed(rung, ["true"], mounts, env={}, limits=LIMITS)

        acts: dict[str, Callable[[], object]] = {
            "subprocess": lambda: subprocess.run(["true"], check=True, capture_output=True),
            "proc.run": lambda: proc.run(["true"], cwd=folder, env=proc.clean_env(), limits=LIMITS),
            **{f"{rung.name}, {access.value}": jailed(access) for access in jail.Access},
        }
        rows = []
        for name, act in acts.items():
            taken = milliseconds(act, rounds)
            rows.append([name, f"{statistics.median(taken):.1f}", f"{taken[int(len(taken) * 0.9)]:.1f}"])
    term.table(rows, ["true, run by", "median ms", "90 % ms"])


if __name__ == "__main__":
    main()

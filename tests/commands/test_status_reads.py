"""`relay status` reads no more than it has to: it is what people wait for."""

import os
import subprocess
import sys

from tests.world import CHECKOUT, SAFETY, SPEC, World

_COUNTED = """
import sys
read = []
sys.addaudithook(lambda event, args: read.append(str(args[0])) if event == "open" else None)
from relay import cli
code = cli.main(["status", "--offline"])
for name in read:
    if name.endswith("plan.toml"):
        print(name, file=sys.stderr)
sys.exit(code)
"""


def test_the_plan_of_each_run_is_read_once(world: World) -> None:
    for number in range(2):
        assert world.relay("run", world.spec(SPEC, f"spec-{number}.md")).code == 0
    done = subprocess.run(
        [sys.executable, "-c", _COUNTED],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        check=True,
        text=True,
        timeout=SAFETY,
    )
    plans = [line for line in done.stderr.splitlines() if line.endswith("plan.toml")]
    assert sorted(plans) == sorted(str(path / "plan.toml") for path in world.runs.iterdir())

"""Commands of acceptance see the commit that is judged, and nothing that another command wrote."""

from pathlib import Path

import pytest

from relay.host import jail
from tests.loop.faults import sober
from tests.world import World

SUITE = "python3 -B -m unittest -q"
TESTS = """\
import unittest

import calc


class TestCalc(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(calc.add(2, 3), 5)
"""
GAMED = """\
import pathlib, sys

if "unittest" not in sys.modules:
    pathlib.Path("tests/test_calc.py").write_text("import unittest\\n")


def add(a, b):
    return a - b
"""
SPEC = f"# Fix\n\n## Acceptance\n\n- it loads: `python3 -B -c 'import calc'`\n- the tests pass: `{SUITE}`\n"


@pytest.mark.parametrize("mode", ["off", "auto"])
def test_a_command_that_blanks_the_tests_makes_no_later_one_green(tmp_path: Path, mode: str) -> None:
    if mode == "auto" and not jail.choose("auto")[0].holds:
        pytest.skip(jail.choose("auto")[1])
    files = {"calc.py": "def add(a, b):\n    return 0\n", "tests/__init__.py": "", "tests/test_calc.py": TESTS}
    world = World(tmp_path, files)
    (tmp_path / "agents" / "calc.py").write_text(GAMED)
    world.shell("implementer", f"cat > calc.py <<'END'\n{GAMED}END", phase="implement", reply="exit")
    for phase in ("review", "acceptance"):
        world.shell(f"{phase}-judge", "true", phase=phase, reply="exit")
    world.save(jail={"mode": mode}, phase={**world.phases, "acceptance": {**world.phases["acceptance"], "rounds": 1}})
    ran = world.relay("run", world.spec(SPEC))
    sober(ran)
    judged = [receipt for receipt in world.receipts() if receipt["phase"] == "acceptance"]
    assert [receipt["verdict"] for receipt in judged] == ["revise"], ran
    assert [one["met"] for one in judged[0]["criteria"]] == [True, False]

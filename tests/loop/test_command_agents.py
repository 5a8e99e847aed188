"""Programs without a model take legs: a codemod works, a linter and a test suite judge, and Relay runs all of it."""

import json
import sys
from pathlib import Path

from tests.loop.faults import stopped, through
from tests.world import FIXED, World

CODEMOD = """
import pathlib

files = sorted(pathlib.Path("pkg").glob("*.py"))
again = any("return new(" in file.read_text() for file in files)
for file in files:
    # The first time it overlooks some, as a codemod does; what a linter then names, it mends.
    if again or not file.stem.endswith("7"):
        file.write_text(file.read_text().replace("old(", "new("))
"""

LINTER = """
import pathlib, sys

found = [file for file in sorted(pathlib.Path("pkg").glob("*.py")) if "old(" in file.read_text()]
for file in found:
    print(f"{file}:4: old() is deprecated")
sys.exit(3 if found else 0)
"""

TEST = """
import importlib, pathlib, unittest

class TestEverything(unittest.TestCase):
    def test_each_module_counts_on(self):
        for number, file in enumerate(sorted(pathlib.Path("pkg").glob("m*.py"))):
            self.assertEqual(importlib.import_module(f"pkg.{file.stem}").value(), number + 1)
"""


def program(world: World, name: str, text: str, phase: str) -> None:
    """Make a mechanical agent out of a Python program, which answers by its exit."""
    path = world.folder / "agents" / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    world.agent(name, [sys.executable, str(path)], phase=phase, vendor="mechanical", reply="exit")


def test_a_codemod_a_linter_and_a_test_suite_relay_three_thousand_files_to_the_base(tmp_path: Path) -> None:
    module = "from pkg.api import new, old\n\ndef value():\n    return old({})\n"
    files = {f"pkg/m{number:04}.py": module.format(number) for number in range(3000)}
    api = "def new(number):\n    return number + 1\n\n\nold = new\n"
    world = World(tmp_path, {"README.md": "Many files\n"})
    world.write(files | {"pkg/api.py": api, "test_all.py": TEST, ".gitignore": "__pycache__/\n"})
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "three thousand modules")
    program(world, "codemod", CODEMOD, "implement")
    program(world, "linter", LINTER, "review")
    suite = [sys.executable, "-m", "unittest", "-q", "test_all"]
    world.agent("suite", suite, phase="acceptance", vendor="mechanical", reply="exit")
    world.save()
    text = "# Use new\n\n## Acceptance\n\n- nobody calls old: `! grep -rn 'old(' pkg`\n"
    through(world.inside("run", world.spec(text)))

    legs = ["01-implement", "02-review", "03-implement", "04-review", "05-acceptance"]
    assert [leg.name for leg in world.legs()] == legs
    receipts = world.receipts()
    assert [len(receipt["changed"]) for receipt in receipts] == [2700, 0, 300, 0, 0]
    assert [receipt["verdict"] for receipt in receipts] == [None, "revise", None, "approve", "approve"]
    [finding] = receipts[1]["findings"]
    assert (finding["severity"], finding["evidence"], finding["blocks"]) == ("blocker", "confirmed", True)
    note = world.text("02-review", "note.md")
    assert "linter.py` exited 3: pkg/m" in note, "what it said begins with a whole line"
    assert len(note) < 10_000
    assert "pkg/m2997.py:4: old() is deprecated" in world.text("03-implement", "prompt.md")
    assert len(world.text("03-implement", "note.md")) < 10_000
    through(world.inside("approve"))
    assert "new(2997)" in (world.root / "pkg" / "m2997.py").read_text()
    assert world.git("status", "--porcelain") == ""


def test_ruff_mends_and_ruff_judges(tmp_path: Path) -> None:
    ruff = str(Path(sys.executable).with_name("ruff"))
    rules = ["--isolated", "--no-cache", "-q", "--select", "F401", "."]
    world = World(tmp_path, {"app.py": "import os\nimport sys\n\nprint(sys.argv)\n"})
    world.agent("fix", [ruff, "check", "--fix", *rules], phase="implement", vendor="mechanical", reply="exit")
    for phase in ("review", "acceptance"):
        world.agent(phase, [ruff, "check", *rules], phase=phase, vendor="mechanical", reply="exit")
    world.save()
    text = "# Tidy the imports\n\n## Acceptance\n\n- no import of os: `! grep -q os app.py`\n"
    through(world.inside("run", world.spec(text)))
    assert [leg.name for leg in world.legs()] == ["01-implement", "02-review", "03-acceptance"]
    through(world.inside("approve"))
    assert (world.root / "app.py").read_text() == "import sys\n\nprint(sys.argv)\n"


def test_a_check_that_is_red_at_the_base_too_is_told_and_blocks_nobody(tmp_path: Path) -> None:
    world = World.simple(tmp_path, checks={"debt": "test ! -e README.md", "fine": "true"})
    through(world.inside("run", world.spec()))
    work, _, acceptance = world.receipts()
    for receipt in (work, acceptance):
        debt, fine = receipt["checks"]
        assert (debt["exit"], debt["base_exit"], fine["exit"], fine["base_exit"]) == (1, 1, 0, None)
    note = world.text("01-implement", "note.md")
    assert "- check: `test ! -e README.md` exited 1 (red at the base too)" in note


def test_a_check_that_is_newly_red_sends_the_leg_back_with_what_it_said(tmp_path: Path) -> None:
    world = World.simple(tmp_path, checks={"no-boom": "! grep -n boom calc.py"})
    world.implementer({"calc.py": FIXED + "# boom\n"}, {"calc.py": FIXED})
    through(world.inside("run", world.spec()))
    assert [leg.name for leg in world.legs()][:3] == ["01-implement", "02-implement", "03-review"]
    [check] = world.receipts()[0]["checks"]
    assert (check["exit"], check["base_exit"]) == (1, 0)
    assert world.text("01-implement", "check-1.log") == "3:# boom\n"
    prompt = world.text("02-implement", "prompt.md")
    assert "Why this leg runs: a check is red that was green at the base" in prompt
    assert "`! grep -n boom calc.py` (checks.no-boom) ended with 1" in prompt
    assert "3:# boom" in prompt
    assert "(newly red)" in world.text("01-implement", "note.md")


def test_a_check_that_stays_red_is_a_persons_after_three_tries(tmp_path: Path) -> None:
    world = World.simple(tmp_path, checks={"no-boom": "! grep -n boom calc.py"})
    world.implementer({"calc.py": FIXED + "# boom\n"})
    stopped(world.inside("run", world.spec()), 4, "a check is red that was green at the base")
    assert [leg.name for leg in world.legs()] == ["01-implement", "02-implement", "03-implement"]
    world.implementer({"calc.py": FIXED})
    through(world.inside("resume"))


def judged(folder: Path, *criteria: dict[str, object], verdict: str = "approve") -> World:
    """Make a world whose spec has a criterion that no command decides, and an acceptance that says this of it."""
    world = World.simple(folder)
    turn = {"reply": {"verdict": verdict, "criteria": list(criteria)}}
    world.script("acceptance-judge", turn, phase="acceptance", vendor="south")
    world.save(phases=["implement", "acceptance"])
    return world


def spec(world: World) -> Path:
    return world.spec(
        "# Make add add\n\n## Acceptance\n\n- the sum is right: `grep -q 'a + b' calc.py`\n- it is plain\n"
    )


def test_a_criterion_without_a_command_is_met_by_evidence_that_relay_found_to_stand(tmp_path: Path) -> None:
    quoted = {"id": "c2", "met": True, "path": "calc.py", "quote": "return a + b"}
    shown = {"id": "c2", "met": True, "command": "test $(wc -l < calc.py) -eq 2"}
    for name, answer in (("quoted", quoted), ("shown", shown)):
        world = judged(tmp_path / name, answer)
        through(world.inside("run", spec(world)))
        acceptance = world.receipts()[-1]
        assert acceptance["score"] == "2/2"
        assert [(result["id"], result["met"], result["by"]) for result in acceptance["criteria"]] == [
            ("c1", True, "relay"),
            ("c2", True, "judge"),
        ]
    assert (acceptance["criteria"][1]["command"], acceptance["criteria"][1]["exit"]) == (shown["command"], 0)


def test_a_criterion_that_nobody_judged_or_without_evidence_that_stands_is_no_approval(tmp_path: Path) -> None:
    unjudged: list[list[dict[str, object]]] = [
        [],
        [{"id": "c2", "met": True}],
        [{"id": "c2", "met": True, "path": "calc.py", "quote": "return a * b"}],
        [{"id": "c2", "met": True, "path": "gone.py", "quote": "return a + b"}],
    ]
    for number, answers in enumerate(unjudged):
        world = judged(tmp_path / str(number), *answers)
        stopped(world.inside("run", spec(world)), 4, "inconclusive twice")
        receipts = world.receipts()
        assert [receipt["verdict"] for receipt in receipts[1:]] == ["inconclusive", "inconclusive"]
        assert receipts[-1]["score"] == "1/2"
        assert receipts[-1]["criteria"][1]["by"] == "nobody"


def test_a_criterion_that_a_judge_or_its_own_command_finds_unmet_sends_the_work_back(tmp_path: Path) -> None:
    refuted = [{"id": "c2", "met": False}, {"id": "c2", "met": True, "command": "grep -q nothing calc.py"}]
    for number, answer in enumerate(refuted):
        world = judged(tmp_path / str(number), answer)
        assert world.inside("run", spec(world), "--until", "acceptance").code == 0
        acceptance = world.receipts()[-1]
        assert (acceptance["verdict"], acceptance["score"]) == ("revise", "1/2")
        assert "- criterion c2 is not met: it is plain" in world.text("02-acceptance", "note.md")
        assert json.loads(world.text("02-acceptance"))["claimed_verdict"] == "approve"

"""What a red base excuses: only its own tests, on its own code, and none that the work changed or took out."""

from pathlib import Path
from typing import Any

import pytest

from tests.loop.faults import through, untouched
from tests.loop.test_gamed import DELETED, SUITE, TESTS, WEAKENED, lenient
from tests.world import BROKEN, FIXED, World

SPEC = "# Make add add\n\n`add` subtracts.\n\n## Acceptance\n\n- there is an `add`: `grep -q 'def add' calc.py`\n"
ALWAYS_RED = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_later(self):\n        self.fail()\n"
CHECK = "test \"$(python3 -B -c 'import calc; print(calc.add(2, 3))')\" = 5\n"


@pytest.fixture
def tested(tmp_path: Path) -> World:
    """Return a world whose suite is red at the base, and whose task has no criterion that runs it."""
    return lenient(tmp_path, SUITE)


def _accepted(world: World, spec: str = SPEC) -> dict[str, Any]:
    """Run, and return the receipt of the first acceptance."""
    with untouched(world):
        through(world.inside("run", world.spec(spec)))
    receipts: list[dict[str, Any]] = [one for one in world.receipts() if one["phase"] == "acceptance"]
    assert receipts[-1]["verdict"] == "approve"
    return receipts[0]


def test_a_red_test_that_the_work_adds_excuses_none_that_it_deletes(tested: World) -> None:
    gamed = {"calc.py": f"{BROKEN}# tried\n", "tests/test_calc.py": DELETED, "tests/test_later.py": ALWAYS_RED}
    tested.implementer(gamed, {"calc.py": FIXED, "tests/test_calc.py": TESTS})
    first = _accepted(tested)
    old = first["tests"]["old"]
    assert (old["exit"], old["base_exit"], first["verdict"]) == (1, None, "revise")
    prompt = tested.text(first["leg"], "prompt.md")
    assert "(tests.base) ended with 1" in prompt, "the judge sees both"
    assert "not by the same tests alone: that excuses nothing" in prompt


def test_a_base_that_is_red_excuses_no_test_that_was_green_there(tested: World) -> None:
    breaks = "def add(a, b):\n    return a - b - 1\n"
    tested.implementer({"calc.py": breaks}, {"calc.py": FIXED})
    first = _accepted(tested)
    assert (first["tests"]["old"]["exit"], first["tests"]["old"]["base_exit"]) == (1, None)
    assert first["verdict"] == "revise"


def test_the_same_tests_red_at_the_base_are_excused_and_said_aloud(tested: World) -> None:
    tested.implementer({"calc.py": f"{BROKEN}# tried\n"})
    first = _accepted(tested)
    assert (first["tests"]["old"]["exit"], first["tests"]["old"]["base_exit"], first["verdict"]) == (1, 1, "approve")
    prompt = tested.text(first["leg"], "prompt.md")
    assert "red at the base too, by the same tests: what fails here proves nothing about the change" in prompt
    assert "(tests.old) ended with 1" in prompt
    assert "FAIL: test_sum" in tested.text(first["leg"], "tests.base.log")
    trace = tested.inside("trace").out
    assert f"the base's tests on the new code: `{SUITE}` exited 1 (red at the base too)" in trace


@pytest.mark.parametrize("changed", [True, False])
def test_red_tests_without_a_name_are_excused_only_where_none_of_the_bases_was_changed(
    tested: World, *, changed: bool
) -> None:
    tested.commit({"tests/check.sh": CHECK})
    tested.save(tests={"paths": ["tests/**"], "command": "sh tests/check.sh"})
    gamed = {"calc.py": f"{BROKEN}# tried\n"} | ({"tests/check.sh": f"{CHECK}exit 1\n"} if changed else {})
    tested.implementer(gamed, {"calc.py": FIXED, "tests/check.sh": CHECK})
    first = _accepted(tested)
    assert first["tests"]["old"]["base_exit"] == (None if changed else 1)
    assert first["verdict"] == ("revise" if changed else "approve")
    said = "that excuses nothing" if changed else "the swap of the tests proves nothing, for better or worse"
    assert said in tested.text(first["leg"], "prompt.md")


# --- criteria, with the tests of the base -------------------------------------------------------------------------

RUNS_IT = SPEC.replace("grep -q 'def add' calc.py", SUITE)


@pytest.fixture
def uncommanded(tested: World) -> World:
    """Return the world without a command for the tests: only criteria run them."""
    tested.save(tests={"paths": ["tests/**"]})
    return tested


def _with_base(receipt: dict[str, Any]) -> list[tuple[str, int, int | None]]:
    return [(one["by"], one["exit"], one["base_exit"]) for one in receipt["checks"] if one["by"].startswith("tests.c")]


def test_a_criterion_is_not_met_by_weakening_the_test_that_it_runs(uncommanded: World) -> None:
    uncommanded.implementer({"tests/test_calc.py": WEAKENED}, {"calc.py": FIXED, "tests/test_calc.py": TESTS})
    first = _accepted(uncommanded, RUNS_IT)
    assert (first["score"], first["verdict"]) == ("1/1", "revise"), "its own test is green"
    assert _with_base(first) == [("tests.c1", 1, None)]
    assert "FAIL: test_sum" in uncommanded.text(first["leg"], "prompt.md")
    assert f"`{SUITE}` exited 1 (newly red), for tests.c1" in uncommanded.inside("trace").out


def test_a_criterion_is_not_met_by_changing_the_script_that_it_runs(uncommanded: World) -> None:
    uncommanded.commit({"tests/check.sh": CHECK})
    uncommanded.implementer({"tests/check.sh": "exit 0\n"}, {"calc.py": FIXED, "tests/check.sh": CHECK})
    first = _accepted(uncommanded, SPEC.replace("grep -q 'def add' calc.py", "sh tests/check.sh"))
    assert (first["verdict"], _with_base(first)) == ("revise", [("tests.c1", 1, None)])


def test_a_criterion_may_ask_for_new_tests_in_a_file_that_the_base_has(uncommanded: World) -> None:
    more = f"{TESTS}\n    def test_minus(self):\n        self.assertEqual(calc.add(2, -3), -1)\n"
    uncommanded.implementer({"calc.py": FIXED, "tests/test_calc.py": more, "tests/test_new.py": DELETED})
    spec = RUNS_IT.replace(SUITE, f"{SUITE} tests.test_calc.TestCalc.test_minus")
    spec += f"- more of them: `{SUITE} tests.test_new`\n- named: `grep -q test_minus tests/test_calc.py`\n"
    spec += "- all of it: `test $(grep -c 'def test' tests/test_calc.py) -eq 3`\n"
    first = _accepted(uncommanded, spec)
    assert (first["score"], first["verdict"]) == ("4/4", "approve")
    assert _with_base(first) == [("tests.c2", 0, None)], "what only looks at files is not run again"
    prompt = uncommanded.text(first["leg"], "prompt.md")
    assert "(tests.c1) ended with 1" in prompt, "and the judge is told"
    assert "it is met with the run's own tests, and not with those of the base" in prompt


def test_criteria_run_once_where_the_spec_lets_tests_change_and_where_none_did(uncommanded: World) -> None:
    uncommanded.implementer({"tests/test_calc.py": WEAKENED})
    assert _with_base(_accepted(uncommanded, f"+++\nmay_change_tests = true\n+++\n{RUNS_IT}")) == []


def test_criteria_run_once_where_no_test_of_the_base_changed(uncommanded: World) -> None:
    uncommanded.implementer({"calc.py": FIXED, "tests/test_new.py": DELETED})
    assert _with_base(_accepted(uncommanded, RUNS_IT)) == []

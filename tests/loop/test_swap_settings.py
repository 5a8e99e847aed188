"""Which files are tests: settings that steer them go with them, and patterns that mean nothing are said aloud."""

from pathlib import Path
from typing import Any

import pytest

from tests.loop.faults import refused, through, untouched
from tests.loop.test_gamed import SUITE, TESTS, lenient
from tests.world import FIXED, World

ALL = "import os, unittest; os.path.exists('conftest.py') and __import__('conftest')"
RUNNER = f"python3 -B -c \"{ALL}; unittest.main(module=None, argv=['all', 'discover', '-q'])\""
"""A test program that reads conftest.py, as pytest does."""

STEERS = "import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n"
SPEC = f"# Make add add\n\n`add` subtracts.\n\n## Acceptance\n\n- the tests pass: `{RUNNER}`\n"
PYPROJECT = '[project]\nname = "calc"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n'


@pytest.fixture
def tested(tmp_path: Path) -> World:
    """Return a world whose tests are run by a program that reads their settings."""
    return lenient(tmp_path, RUNNER, pyproject_toml=PYPROJECT)


def _accepted(world: World, spec: str = SPEC) -> dict[str, Any]:
    """Run, and return the receipt of the first acceptance."""
    with untouched(world):
        through(world.inside("run", world.spec(spec)))
    found: dict[str, Any] = next(one for one in world.receipts() if one["phase"] == "acceptance")
    return found


@pytest.mark.parametrize("command", [RUNNER, None])
def test_settings_that_make_tests_pass_are_swapped_with_them(tested: World, command: str | None) -> None:
    tested.save(tests={"paths": ["tests/**"]} | ({"command": command} if command else {}))
    tested.implementer({"conftest.py": STEERS}, {"calc.py": FIXED, "conftest.py": ""})
    first = _accepted(tested)
    assert (first["score"], first["verdict"]) == ("1/1", "revise")
    assert first["tests"]["changed"] == ["conftest.py"]
    assert "unittest.TestCase.assertEqual = lambda" in tested.text(first["leg"], "prompt.md").partition("<<<tests ")[2]


def test_a_mixed_file_whose_part_about_tests_changed_is_named_to_the_judge(tested: World) -> None:
    tested.implementer({"calc.py": FIXED, "pyproject.toml": PYPROJECT.replace('"-q"', '"-q --deselect tests"')})
    first = _accepted(tested)
    assert [(one["by"], one["exit"]) for one in first["checks"]] == [("tests.settings", 0), ("tests.old", 0)]
    prompt = tested.text(first["leg"], "prompt.md")
    assert "these steer how tests run, and the run changed that: pyproject.toml" in prompt
    assert '+addopts = "-q --deselect tests"' in prompt.partition("(tests.settings)")[2]
    assert " -- pyproject.toml` exited 0, for tests.settings" in tested.inside("trace").out


def test_a_mixed_file_that_changed_in_something_else_is_not_named(tested: World) -> None:
    tested.implementer({"calc.py": FIXED, "pyproject.toml": PYPROJECT.replace('"calc"', '"calculator"')})
    assert [one["by"] for one in _accepted(tested)["checks"]] == ["tests.old"]


def test_a_test_that_is_moved_out_of_the_paths_counts_as_removed(tested: World) -> None:
    text = f"""
path = pathlib.Path("tests/test_calc.py")
if turn == 1:
    path.rename("old_calc.py.txt")
else:
    write({{"tests/test_calc.py": {TESTS!r}, "calc.py": {FIXED!r}}})
reply(status="done")
"""
    tested.python("implementer", text, phase="implement", vendor="north")
    tested.save(tests={"paths": ["tests/**"], "command": SUITE})
    first = _accepted(tested, SPEC.replace(RUNNER, "grep -q add calc.py"))
    assert (first["tests"]["tests_removed"], first["tests"]["assertions_removed"]) == (2, 2)
    assert first["verdict"] == "revise"
    prompt = tested.text(first["leg"], "prompt.md")
    assert "- removed: `test_sum`\n" in prompt
    assert "-    def test_sum(self):" in prompt.partition("<<<tests ")[2]


def test_paths_that_mean_no_file_are_said_aloud(tested: World) -> None:
    tested.save(tests={"paths": ["test/**", "spec"], "command": RUNNER})
    first = _accepted(tested)
    [looked, old] = first["checks"]
    assert (looked["by"], looked["exit"], looked["base_exit"]) == ("tests.paths", 1, 1)
    assert (old["by"], old["exit"]) == ("tests.old", 0)
    said = "means no file, at the base or now, so no test is compared: test/**, spec"
    assert said in tested.text(first["leg"], "prompt.md")
    assert "`the files that `[tests] paths` means: test/**, spec` exited 1" in tested.inside("trace").out


def test_paths_that_mean_no_file_are_said_before_anything_is_paid(tested: World) -> None:
    tested.save(tests={"paths": ["specs/**"], "command": "true"})
    ran = tested.relay("run", tested.spec(), "--until", "implement")
    assert "no file of the base fits `tests.paths`: specs/**" in ran.err
    tested.save(tests={"paths": ["tests/**"], "command": "true"})
    assert "tests.paths" not in tested.relay("run", tested.spec(), "--until", "implement").err


@pytest.mark.parametrize("pattern", ["./tests/**", "tests//**", "**/test_*.py", "tests/**/test_*.py", "tests/"])
def test_paths_mean_what_they_mean_to_git(tested: World, pattern: str) -> None:
    tested.save(tests={"paths": [pattern], "command": SUITE})
    tested.implementer({"tests/test_calc.py": TESTS[: TESTS.index("    def test_sum")]}, {"calc.py": FIXED})
    first = _accepted(tested, SPEC.replace(RUNNER, SUITE))
    assert (first["tests"]["tests_removed"], first["verdict"]) == (1, "revise")


@pytest.mark.parametrize("pattern", ["{tests,spec}/**", "tests/{a,b}.py", "!tests/data/**", ".", "**"])
def test_paths_that_would_mean_something_else_than_they_say_are_refused(tested: World, pattern: str) -> None:
    tested.save(tests={"paths": [pattern], "command": SUITE})
    message = refused(tested.inside("run", tested.spec(SPEC)), 2, "tests.paths")
    assert f"`{pattern}`" in message

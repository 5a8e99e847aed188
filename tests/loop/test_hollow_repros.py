"""A repro whose outcome does not come from the code confirms nothing, whatever it prints."""

from typing import Any

import pytest

from tests.loop.faults import untouched
from tests.world import FIXED, World

READS = "import sys; sys.stdout.write(open('calc.py').read()); sys.exit(1)"
NUMBERS = "import sys; [print(n, l) for n, l in enumerate(open('calc.py').read().splitlines())]; sys.exit(1)"
RANDOM = "import os, sys; import calc; print(''.join(chr(97 + b % 26) for b in os.urandom(40))); sys.exit(1)"
HOLLOW: dict[str, dict[str, Any]] = {
    "shows the file": {"command": "cat calc.py; exit 1"},
    "shows lines of it": {"command": "sed -n 1,20p calc.py; false"},
    "shows it to the end": {"command": "sed -n '1,$p' calc.py && false"},
    "finds what is there": {"command": "grep -n add calc.py; exit 3", "expect_exit": 3},
    "expects what stands there": {"command": "cat calc.py; exit 1", "expect_output": "return a + b"},
    "expects what stands elsewhere": {"command": "cat README.md; exit 1", "expect_output": "A calculator"},
    "a script that shows it": {"command": "sh see.sh", "files": {"see.sh": "cat calc.py\nexit 1\n"}},
    "a script of numbers": {"command": "sh see.sh", "files": {"see.sh": "echo $$ at 12:30:11; exit 1"}},
    "code that shows it": {"command": "python3 see.py", "files": {"see.py": READS}},
    "code that shows its lines": {"command": "python3 see.py", "files": {"see.py": NUMBERS}},
    "runs code, and fails anyway": {"command": "python3 -c 'import calc'; exit 1"},
    "something else each time": {"command": "python3 -B see.py", "files": {"see.py": RANDOM}},
}
SHOWN: dict[str, dict[str, Any]] = {
    "fails on what it looks for": {"command": "grep -q PI calc.py || exit 3", "expect_exit": 3},
    "an assertion": {"command": "python3 -B -c 'import calc; assert calc.PI'"},
    "a probe": {"command": "python3 -B see.py", "files": {"see.py": "import calc; assert calc.add(1, 1) == 3, 'PI'"}},
    "output that counts": {"command": "python3 -B -c 'import calc; calc.PI'; exit 1", "expect_output": "no attribute"},
    "a figure": {"command": "wc -l < calc.py | grep -x 2; test -d PI", "expect_output": "2"},
}


def _evidence(world: World, repro: dict[str, Any]) -> tuple[str, str, str | None]:
    """Let a reviewer bring a repro, and return what Relay makes of it, the verdict, and the reason."""
    place = {"severity": "blocker", "title": "it is wrong", "path": "calc.py", "line": 2, "quote": "return a + b"}
    found = {**place, "repro": repro}
    judge = f"reply(verdict='revise', findings=[{found!r}]) if turn == 1 else reply(verdict='approve')"
    world.python("review-judge", judge, phase="review", vendor="south")
    world.implementer({"calc.py": FIXED}, {"calc.py": f"{FIXED}\n\nPI = 3\n"})
    with untouched(world):
        world.inside("run", world.spec())
    receipt = next(one for one in world.receipts() if one["phase"] == "review")
    return receipt["findings"][0]["evidence"], receipt["verdict"], receipt["problem"]


@pytest.mark.parametrize("repro", HOLLOW.values(), ids=HOLLOW)
def test_a_repro_that_would_fail_whatever_the_code_did_leaves_no_more_than_its_place(
    world: World, repro: dict[str, Any]
) -> None:
    evidence, verdict, problem = _evidence(world, repro)
    assert (evidence, verdict) == ("located", "revise")
    assert "its repro shows nothing: it" in (problem or "")


@pytest.mark.parametrize("repro", SHOWN.values(), ids=SHOWN)
def test_a_repro_that_fails_because_of_the_code_is_confirmed(world: World, repro: dict[str, Any]) -> None:
    assert _evidence(world, repro) == ("confirmed", "revise", None)


def test_a_repro_of_the_shells_own_words_makes_even_a_right_quote_unfounded(world: World) -> None:
    assert _evidence(world, {"command": "echo $$; exit 1"})[:2] == ("unfounded", "approve")

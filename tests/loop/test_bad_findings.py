"""What a judge says counts by its evidence, which Relay looks at itself; no wording makes up for it."""

import json
from typing import Any

import pytest

from tests.loop.faults import stopped, through, untouched
from tests.world import BROKEN, FIXED, World

PYTHON = "import calc; assert calc.add(2, 1) == 3"


def _judged(world: World, *found: dict[str, Any], verdict: str = "revise", phase: str = "review") -> dict[str, Any]:
    """Let a judge find this once, in a run that goes through all the same, and return the receipt of that leg."""
    whole = [{"severity": "blocker", "title": "it is wrong", "why": "look", "line": 2} | one for one in found]
    text = f"if turn == 1:\n    reply(verdict={verdict!r}, findings=json.loads({json.dumps(whole)!r}))\n"
    world.python(f"{phase}-judge", f"{text}else:\n    reply(verdict='approve')", phase=phase, vendor="south")
    with untouched(world):
        through(world.inside("run", world.spec()))
    receipt: dict[str, Any] = next(one for one in world.receipts() if one["phase"] == phase)
    return receipt


def _evidence(receipt: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(finding["evidence"], finding["blocks"]) for finding in receipt["findings"]]


@pytest.fixture
def two_turns(world: World) -> World:
    """Return a world whose implementer does something else when it is sent back."""
    world.implementer({"calc.py": FIXED}, {"calc.py": f"{FIXED}\n\nPI = 3\n"})
    return world


# --- a place ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "kept"), [(999, 999), (-5, 1), (0, 1), (10**30, 10**9)])
def test_a_quote_that_stands_at_another_line_is_found_and_blocks(two_turns: World, line: int, kept: int) -> None:
    receipt = _judged(two_turns, {"path": "calc.py", "line": line, "quote": "return a + b"})
    assert _evidence(receipt) == [("located", True)]
    assert [(one["line"], one["claimed_line"]) for one in receipt["findings"]] == [(2, kept)], (
        "it is put right, and said"
    )
    assert receipt["verdict"] == "revise"
    assert len(two_turns.receipts()) == 5


def test_a_path_that_is_written_otherwise_is_the_same_path(two_turns: World) -> None:
    paths = ["calc.py", "./calc.py", " calc.py", "calc.py\n", "sub/../calc.py"]
    receipt = _judged(two_turns, *({"path": path, "quote": "return a + b", "title": "one"} for path in paths))
    assert {one["path"] for one in receipt["findings"]} == {"calc.py"}
    assert _evidence(receipt) == [("located", True)] * len(paths)


def test_a_quote_that_stands_in_no_file_of_the_commit_blocks_nothing(world: World) -> None:
    places = [
        ("calc.py", "return a * b"),
        ("calc.py", "    return a - b"),  # stands in the diff, as the line that was removed
        ("calc.py", "+    return a + b"),  # stands in the diff with its mark, and in no file
        ("calc.py", "@@ -1,2 +1,2 @@"),
        ("calc.py", ""),
        ("calc.py", " \n\t"),
        ("calk.py", "return a + b"),
        ("README.md", "return a + b"),
        ("../../etc/passwd", "root"),
        ("/etc/passwd", "root"),
        (".git/config", "[core]"),
        (".", "calc.py"),
        ("", "return a + b"),
        ("HEAD:calc.py", "return a + b"),
        ("new\nline", "return a + b"),
    ]
    receipt = _judged(world, *({"path": path, "quote": quote} for path, quote in places))
    assert _evidence(receipt) == [("unfounded", False)] * len(places)
    assert (receipt["claimed_verdict"], receipt["verdict"]) == ("revise", "approve")
    assert len(world.receipts()) == 3


def test_a_quote_of_what_only_the_checkout_holds_blocks_nothing(world: World) -> None:
    world.write({"notes.txt": "half an idea\n"})
    receipt = _judged(world, {"path": "notes.txt", "line": 1, "quote": "half an idea"})
    assert _evidence(receipt) == [("unfounded", False)]


def test_a_quote_behind_a_link_out_of_the_tree_blocks_nothing(world: World) -> None:
    (world.root / "link").symlink_to("/etc/passwd")
    world.git("add", "link")
    world.git("commit", "-q", "-m", "a link")
    receipt = _judged(world, {"path": "link", "line": 1, "quote": "root"})
    assert _evidence(receipt) == [("unfounded", False)]


def test_findings_of_little_weight_are_advice_whatever_the_verdict_says(world: World) -> None:
    receipt = _judged(world, *({"path": "calc.py", "quote": "def add", "severity": word} for word in ("minor", "nit")))
    assert _evidence(receipt) == [("located", False)] * 2
    assert receipt["verdict"] == "approve"


def test_an_approval_with_a_founded_blocker_is_none(two_turns: World) -> None:
    receipt = _judged(two_turns, {"path": "calc.py", "quote": "return a + b"}, verdict="approve")
    assert (receipt["claimed_verdict"], receipt["verdict"]) == ("approve", "revise")


def test_an_acceptance_that_demands_a_revision_without_evidence_is_asked_once_more(world: World) -> None:
    receipt = _judged(world, {"path": "calc.py", "quote": "return a * b"}, phase="acceptance")
    assert _evidence(receipt) == [("unfounded", False)]
    assert receipt["verdict"] == "inconclusive"
    assert [one["phase"] for one in world.receipts()][-2:] == ["acceptance", "acceptance"]


def test_many_findings_are_each_weighed(two_turns: World) -> None:
    places = [{"path": "calc.py", "quote": "def add", "title": f"{number}"} for number in range(20)]
    receipt = _judged(two_turns, *places, {"path": "calc.py", "quote": "def sub"})
    assert [evidence for evidence, _ in _evidence(receipt)] == ["located"] * 20 + ["unfounded"]
    assert len({finding["id"] for finding in receipt["findings"]}) == 21


# --- a repro ------------------------------------------------------------------------------------------------------


def _repro(command: str, **more: object) -> dict[str, Any]:
    return {"path": "calc.py", "quote": "return a + b", "repro": {"command": command, **more}}


SEES = "grep -q PI calc.py || exit 3"
"""A command that fails until the second turn of the implementer."""


def test_repros_that_fail_as_said_are_confirmed_and_block(two_turns: World) -> None:
    repros: list[dict[str, Any]] = [
        {"command": SEES, "expect_exit": 3},
        {"command": SEES},
        {"command": "grep -q PI calc.py || echo found it", "expect_exit": 0, "expect_output": "found it"},
        {"command": "python3 -c 'import probe'", "files": {"probe.py": "import calc; assert calc.PI"}},
        {"command": "sh deep/er/probe.sh", "files": {"deep/er/probe.sh": SEES}},
        {"command": "grep -q -f README.md calc.py || exit 3", "files": {"README.md": "PI"}},
    ]
    receipt = _judged(two_turns, *({"path": "calc.py", "quote": "def add(a, b):", "repro": repro} for repro in repros))
    assert _evidence(receipt) == [("confirmed", True)] * len(repros)
    assert receipt["verdict"] == "revise"


CONSTANTS = (
    *("false", "exit 1", "! true", "test 1 = 2", "[ 1 -eq 2 ]", "sh -c 'exit 3'", "bash -ec false", "timeout 5 false"),
    *("true; false", "true && exit 2", "(exit 4)", "X=1 false", "echo broken; exit 1", "env A=b /bin/false"),
)


def test_a_repro_that_looks_at_nothing_is_refused(world: World) -> None:
    receipt = _judged(world, *map(_repro, CONSTANTS), _repro("echo it broke", expect_output="it broke"))
    assert _evidence(receipt) == [("unfounded", False)] * (len(CONSTANTS) + 1)
    assert receipt["verdict"] == "approve"
    assert not list(world.legs()[1].glob("setup-*")), "nothing was checked out for them"


def test_a_repro_that_comes_to_the_same_without_the_tree_shows_no_more_than_its_place(two_turns: World) -> None:
    hollow: list[dict[str, Any]] = [
        {"command": "python3 -c 'raise SystemExit(3)'", "expect_exit": 3},
        {"command": "python3 probe.py", "files": {"probe.py": "assert False, 'it adds wrongly'"}},
        {"command": "sh probe.sh", "files": {"probe.sh": "echo broken in 0.$$ s; exit 1"}},
        {
            "command": "python3 slow.py",
            "files": {"slow.py": "import os\nraise SystemExit(f'broken in 0.{os.getpid()} s')"},
        },
        {"command": "test -e no/such/file"},
    ]
    places = [{"path": "calc.py", "quote": "return a + b", "repro": repro} for repro in hollow]
    receipt = _judged(two_turns, *places, {"path": ".", "quote": "", "repro": hollow[0]})
    assert _evidence(receipt) == [("located", True)] * len(hollow) + [("unfounded", False)]


def test_a_repro_that_fails_as_said_confirms_nothing_at_a_place_that_is_not_there(two_turns: World) -> None:
    repro = {"command": SEES, "expect_exit": 3}
    places = [{"path": "calc.py", "quote": "nowhere"}, {"path": "no/such/file.py", "quote": "def add"}]
    receipt = _judged(two_turns, *(place | {"repro": repro} for place in places))
    assert _evidence(receipt) == [("unfounded", False)] * 2
    assert receipt["verdict"] == "approve"


def test_a_repro_whose_files_cannot_be_written_or_lie_beside_the_checkout_shows_nothing(two_turns: World) -> None:
    brought = [{"calc.py/x": ""}, {"tests": ""}, {"n" * 300: ""}, {"../02-review.repro-1evil/x": ""}]
    repros = [{"command": SEES, "files": files} for files in brought]
    receipt = _judged(two_turns, *({"path": "calc.py", "quote": "def add(a, b):", "repro": one} for one in repros))
    assert _evidence(receipt)[0] == ("unfounded", False)
    assert _evidence(receipt)[2:] == [("unfounded", False)] * 2


def test_repros_that_do_not_fail_as_said_make_even_a_right_quote_unfounded(world: World) -> None:
    outside = world.folder / "outside.py"
    findings = [
        _repro("true"),
        _repro(f"python3 -c '{PYTHON}'"),
        _repro(SEES, expect_exit=4),
        _repro(SEES, expect_exit=0),
        _repro("cat calc.py; exit 1", expect_output="found it"),
        _repro("true", expect_exit=0),
        _repro("no-such-program-anywhere"),
        _repro("/etc/passwd"),
        _repro("kill -9 $$"),
        _repro(SEES, files={"../outside.py": "x"}),
        _repro(SEES, files={str(outside): "x"}),
        _repro(SEES, files={".git/hooks/x": "x"}),
        _repro(SEES, files={".git": "gitdir: /nowhere"}),
        _repro(""),
    ]
    receipt = _judged(world, *findings)
    assert _evidence(receipt) == [("unfounded", False)] * len(findings)
    assert receipt["verdict"] == "approve"
    assert not outside.exists()


def test_a_repro_does_not_see_or_change_the_checkout_or_the_commit_that_is_judged(two_turns: World) -> None:
    two_turns.write({"only-here.txt": "mine\n"})
    command = "grep -q PI calc.py && exit 0; test ! -e only-here.txt || exit 0; rm calc.py || exit 6; "
    command += "git checkout -q --orphan other; exit 5"
    receipt = _judged(two_turns, _repro(command, expect_exit=5))
    assert _evidence(receipt) == [("confirmed", True)]
    assert two_turns.show(receipt["head"], "calc.py") == FIXED


def test_the_repro_of_a_judge_that_answers_by_its_exit_is_the_judge_itself(world: World) -> None:
    """It is confirmed by running it again; one that changes its mind shows nothing."""
    once = world.folder / "once"
    world.shell("review-judge", f"test -e {once} || {{ : > {once}; exit 1; }}", phase="review", reply="exit")
    world.save()
    with untouched(world):
        through(world.inside("run", world.spec()))
    [review] = [one for one in world.receipts() if one["phase"] == "review"]
    assert _evidence(review) == [("unfounded", False)]


def test_a_test_suite_that_stays_red_sends_back_until_the_cap_and_then_asks(world: World) -> None:
    world.shell("review-judge", "grep -q 'a \\* b' calc.py", phase="review", reply="exit")
    turns = [{"calc.py": f"{FIXED}# {number}\n"} for number in range(5)]
    world.implementer(*turns)
    world.save()
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "relay answer")
    verdicts = [one["verdict"] for one in world.receipts() if one["phase"] == "review"]
    assert verdicts == ["revise"] * 3
    assert world.show("main", "calc.py") == BROKEN

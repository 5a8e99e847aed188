"""The base moves during a run: the smallest redo that makes the approval true again, and never in silence."""

import json
from pathlib import Path

from tests.loop.faults import sober, stopped, through
from tests.world import BROKEN, FIXED, World

SPEC = """# Make add add

## Acceptance

- the sum is right, and the build is not broken: `{check}`
"""


def accepted(folder: Path, check: str = "grep -q 'return a + b' calc.py", **tables: object) -> World:
    """Make a world with an accepted run of two phases, whose judge says yes again when it is asked again."""
    world = World.simple(folder, **({"phases": ["implement", "acceptance"]} | tables))
    through(world.inside("run", world.spec(SPEC.format(check=check))))
    return world


def test_a_base_that_moved_elsewhere_gets_the_change_once_the_criteria_hold_there_too(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    check = f"ls >> {seen}; test -e made.log && grep -q 'return a + b' calc.py"
    world = accepted(tmp_path, check, worktree={"setup": ["touch made.log"]}, ship={"verify": ["test -e made.log"]})
    moved = world.commit({"news.txt": "meanwhile\n"})
    seen.write_text("")
    through(world.inside("approve"))
    merged = ["README.md", "calc.py", "made.log", "news.txt", "relay.toml"]
    assert seen.read_text().split() == merged, "run once, on the merged tree, set up like every other"
    assert world.git("rev-parse", "main^") == moved
    assert world.git("diff", "--name-only", "main^", "main") == "calc.py"
    assert (world.root / "calc.py").read_text() == FIXED
    assert world.git("status", "--porcelain") == ""
    ship = world.receipts()[-1]
    assert (ship["base"], ship["effect"]["outcome"]) == (moved, "shipped")
    assert ship["tree"] == world.git("rev-parse", "main^{tree}")


def test_a_check_that_is_red_on_the_moved_base_too_does_not_stand_in_the_way(tmp_path: Path) -> None:
    world = accepted(tmp_path, checks={"never": "test -e no-such-file"})
    world.commit({"news.txt": "meanwhile\n"})
    through(world.inside("approve"))
    assert world.receipts()[-1]["effect"]["outcome"] == "shipped"


def test_a_base_that_moved_in_the_same_file_sends_the_change_back_to_the_judges(tmp_path: Path) -> None:
    far = "\n" * 9 + "LIMIT = {}\n"
    world = World.simple(tmp_path)
    world.commit({"calc.py": BROKEN + far.format(1)})
    world.implementer({"calc.py": FIXED + far.format(1)})
    through(world.inside("run", world.spec()))
    run = world.only_run()
    moved = world.commit({"calc.py": BROKEN + far.format(2)})

    ran = world.inside("approve")
    stopped(ran, 1, "the base moved, and both sides changed `calc.py`", "open", f"relay resume {run}")
    assert world.git("rev-parse", "main") == moved, "nothing went out"
    rebase = world.receipts()[-1]
    assert (rebase["act"], rebase["base"], rebase["effect"]["overlap"]) == ("rebase", moved, "calc.py")

    through(world.inside("resume"))
    assert [leg.name for leg in world.legs()][5:] == ["06-review", "07-acceptance"]
    for receipt in world.receipts()[5:]:
        assert (receipt["base"], receipt["start"]) == (moved, world.git("rev-parse", f"refs/relay/{run}/05-rebase"))
    prompt = world.text("06-review", "prompt.md")
    assert "Why this leg runs: the base moved" in prompt
    assert "+    return a + b" in prompt
    assert "-LIMIT" not in prompt, "the diff is against the base that is there now"

    through(world.inside("approve"))
    assert world.git("rev-parse", "main^") == moved
    assert world.show("main", "calc.py") == FIXED + far.format(2)


def test_a_base_that_conflicts_sends_the_change_back_to_the_worker_with_the_conflict_marked(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    run = world.only_run()
    moved = world.commit({"calc.py": "def add(a, b):\n    return b - a\n"})
    stopped(world.inside("approve"), 1, "the change conflicts with it in `calc.py`", f"relay resume {run}")
    marked = world.show(f"refs/relay/{run}/04-rebase", "calc.py")
    assert "<<<<<<<" in marked
    assert "    return b - a\n" in marked
    assert "    return a + b\n" in marked

    left, mended = {"calc.py": marked}, {"calc.py": FIXED + "# after all\n"}
    world.implementer({"calc.py": FIXED}, left | {"note.txt": "done\n"}, mended)
    through(world.inside("resume"))
    legs = [leg.name for leg in world.legs()][4:]
    assert legs == ["05-implement", "06-implement", "07-acceptance"], "markers are no work that is done"
    assert "conflicts with it in `calc.py`" in world.text("05-implement", "prompt.md")
    [check] = json.loads(world.text("05-implement"))["checks"]
    assert (check["by"], check["exit"]) == ("relay", 1)
    assert "no conflict marker is left" in world.text("06-implement", "prompt.md")
    assert json.loads(world.text("06-implement"))["checks"] == []

    through(world.inside("approve"))
    assert world.git("rev-parse", "main^") == moved
    assert world.show("main", "calc.py") == FIXED + "# after all\n"


def test_criteria_that_break_on_the_merged_tree_send_it_back_and_nothing_goes_out(tmp_path: Path) -> None:
    world = accepted(tmp_path, "grep -q 'return a + b' calc.py && test ! -e broken")
    moved = world.commit({"broken": ""})
    stopped(world.inside("approve"), 1, "what held there no longer holds with it")
    assert world.git("rev-parse", "main") == moved
    sober(world.inside("resume", "--until", "acceptance"))
    last = world.receipts()[-1]
    assert (last["leg"], last["verdict"], last["score"]) == ("05-acceptance", "revise", "0/1")


def test_without_judges_a_moved_base_is_worked_on_again_and_is_not_accepted_by_itself(tmp_path: Path) -> None:
    world = accepted(tmp_path, "grep -q 'return a + b' calc.py && test ! -e broken", phases=["implement"])
    world.commit({"broken": ""})
    stopped(world.inside("approve"), 1, "no longer holds")
    stopped(world.inside("resume"), 4, "not met, and no judge follows")
    assert world.show("main", "calc.py") == BROKEN


def test_with_automatic_approval_a_moved_base_is_judged_again_without_anybody(tmp_path: Path) -> None:
    far = "\n" * 9 + "LIMIT = {}\n"
    world = World.simple(tmp_path, ship={"approval": "auto"})
    world.commit({"calc.py": BROKEN + far.format(1)})
    world.implementer({"calc.py": FIXED + far.format(1)})
    sober(world.inside("run", world.spec(), "--until", "review"))
    moved = world.commit({"calc.py": BROKEN + far.format(2)})
    through(world.inside("resume"))
    acts = [receipt["act"] for receipt in world.receipts() if receipt["act"]]
    assert acts == ["approve", "rebase", "approve", "ship"]
    assert world.git("rev-parse", "main^") == moved
    assert world.show("main", "calc.py") == FIXED + far.format(2)


def test_a_base_that_was_rewound_does_not_get_back_what_a_person_took_out(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.commit({"mistake.txt": "committed by mistake\n"})
    through(world.inside("run", world.spec()))
    world.git("reset", "-q", "--hard", "HEAD~1")
    through(world.inside("approve"))
    assert world.git("diff", "--name-only", "main^", "main") == "calc.py"
    assert not (world.root / "mistake.txt").exists()

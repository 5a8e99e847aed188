"""A big task gets a plan first: a document, judged by the other vendor, that crosses to whoever works by it."""

import json
from pathlib import Path

from tests.loop.doomed import await_that
from tests.loop.faults import refused, stopped, through, worktrees
from tests.world import BROKEN, SAFETY, World

PHASES = ["plan", "plan-review", "implement", "review", "acceptance"]
FIRST = "# Plan\n\n1. turn the sign in `multiply`\n"
SECOND = "# Plan\n\n1. turn the sign in `add`\n"


def planned(document: str, **reply: object) -> dict[str, object]:
    return {"reply": {"status": "done", "document": document, "summary": "planned", **reply}}


def planning(folder: Path, plan: list[dict[str, object]], review: list[dict[str, object]], **tables: object) -> World:
    """Make a world whose planner and plan reviewer play these turns."""
    world = World.simple(folder)
    world.script("planner", *plan, phase="plan", vendor="north")
    world.script("critic", *review, phase="plan-review", vendor="south")
    world.save(**{"phases": PHASES, **tables})
    return world


def approves() -> dict[str, object]:
    return {"reply": {"verdict": "approve"}}


def test_a_plan_is_judged_mended_and_handed_to_the_implementer(tmp_path: Path) -> None:
    finding = {"severity": "blocker", "title": "no such function", "path": "calc.py", "line": 1, "quote": "def add"}
    revises: dict[str, object] = {"reply": {"verdict": "revise", "findings": [finding]}}
    world = planning(tmp_path, [planned(FIRST), planned(SECOND)], [revises, approves()])
    through(world.inside("run", world.spec()))
    legs = ["01-plan", "02-plan-review", "03-plan", "04-plan-review", "05-implement", "06-review", "07-acceptance"]
    assert [leg.name for leg in world.legs()] == legs
    assert world.text("01-plan", "document.md") == FIRST
    assert world.text("03-plan", "document.md") == SECOND
    receipts = world.receipts()
    base = world.git("rev-parse", "main")
    assert [receipt["head"] for receipt in receipts[:4]] == [base] * 4
    assert [receipt["document"] for receipt in receipts[:5]] == [True, False, True, False, False]
    assert worktrees() == []

    told = {leg: world.text(leg, "prompt.md") for leg in legs}
    assert "turn the sign in `multiply`" in told["02-plan-review"]
    assert "no such function" in told["03-plan"]
    assert "turn the sign in `multiply`" in told["03-plan"], "who plans again sees the plan there was"
    assert "turn the sign in `add`" in told["04-plan-review"]
    assert "turn the sign in `add`" in told["05-implement"]
    assert "multiply" not in told["05-implement"]
    assert "document" in receipts[4]["crossed"]
    assert "turn the sign" not in told["06-review"], "the reviewer judges the change by the spec"
    through(world.inside("verify", world.only_run()))
    through(world.inside("approve"))


def test_what_a_killed_planner_changed_is_carried_nowhere(tmp_path: Path) -> None:
    world = planning(tmp_path, [planned(FIRST)], [approves()])
    there = world.folder / "there"
    text = f"test -e {there} || {{ echo half > calc.py; touch {there}; sleep 60; }}"
    world.shell("planner", text, phase="plan", reply="exit", vendor="north")
    world.save(phases=PHASES)
    running = world.start("run", world.spec())
    await_that(there.exists, "the planner never began")
    running.kill()
    running.communicate(timeout=SAFETY)
    world.inside("resume")
    cut, again = world.receipts()[:2]
    assert (cut["ended_by"], cut["head"], again["start"]) == ("interrupted", cut["start"], cut["start"])
    [place] = [path for path in worktrees() if path.name == "01-plan"]
    assert (place / "calc.py").read_text() == "half\n", "what nothing keeps is not thrown away either"


def test_a_plan_does_not_cross_to_a_phase_that_does_not_read_it(tmp_path: Path) -> None:
    world = planning(tmp_path, [planned(SECOND)], [approves()])
    world.phases["implement"]["reads"] = ["spec"]
    world.save(phases=PHASES)
    through(world.inside("run", world.spec()))
    assert "turn the sign" not in world.text("03-implement", "prompt.md")
    assert "document" not in json.loads(world.text("03-implement"))["crossed"]


def test_a_planner_without_a_document_is_asked_again_and_then_a_person_is(tmp_path: Path) -> None:
    world = planning(tmp_path, [{"reply": {"status": "done", "document": " \n"}}], [approves()])
    stopped(world.inside("run", world.spec()), 4, "needs-human")
    assert [leg.name for leg in world.legs()] == ["01-plan", "02-plan", "03-plan"]
    world.script("planner", planned(SECOND), phase="plan", vendor="north")
    through(world.inside("resume"))
    assert world.text("05-plan", "document.md") == SECOND


def test_a_planner_that_touches_the_tree_is_void_and_its_change_is_kept(tmp_path: Path) -> None:
    world = planning(tmp_path, [planned(SECOND) | {"write": {"calc.py": "# planned\n", "new.py": ""}}], [approves()])
    stopped(world.inside("run", world.spec()), 7, "calc.py", "new.py")
    run = world.only_run()
    [receipt] = world.receipts()
    assert (receipt["ended_by"], receipt["document"], receipt["head"]) == (
        "breach",
        False,
        world.git("rev-parse", f"refs/relay/{run}/01-plan.void"),
    )
    assert world.show(f"refs/relay/{run}/01-plan.void", "calc.py") == "# planned\n"
    assert (world.root / "calc.py").read_text() == BROKEN
    stopped(world.inside("resume"), 7, "calc.py")
    assert [leg.name for leg in world.legs()] == ["01-plan", "02-go", "03-plan"], "a person had it tried again"
    world.script("planner", planned(SECOND), phase="plan", vendor="north")
    through(world.inside("resume"))
    plan = world.receipts()[4]
    assert (plan["leg"], plan["start"]) == ("05-plan", world.git("rev-parse", "main")), "not from the void commit"


def test_a_plan_that_was_changed_or_lost_afterwards_is_refused_by_name(tmp_path: Path) -> None:
    world = planning(tmp_path, [planned(SECOND)], [approves()])
    assert world.inside("run", world.spec(), "--until", "plan-review").code == 0
    document = world.runs / world.only_run() / "legs" / "01-plan" / "document.md"
    for change in (lambda: document.write_text(SECOND + "2. and push to production\n"), document.unlink):
        change()
        refused(world.inside("resume"), 6, str(document), "hash")
        assert [leg.name for leg in world.legs()] == ["01-plan", "02-plan-review"], "nothing was started"
    document.write_text(SECOND)
    through(world.inside("resume"))


def test_a_plan_that_rests_on_what_is_not_there_comes_back_before_anybody_reads_it(tmp_path: Path) -> None:
    true = [{"path": "calc.py", "quote": "def add(a, b):"}]
    invented = [
        {"path": "calculator.py", "quote": "def add"},
        {"path": "calc.py", "quote": "def subtract"},
        {"path": "calc.py", "quote": "class Mode(Enum):\n    EXACT = 1"},
    ]
    world = planning(tmp_path, [planned(FIRST, existing=true + invented), planned(SECOND, existing=true)], [approves()])
    through(world.inside("run", world.spec()))
    assert [leg.name for leg in world.legs()][:3] == ["01-plan", "02-plan", "03-plan-review"]
    first, second, *_ = world.receipts()
    assert [place["line"] for place in first["existing"]] == [1, None, None, None]
    assert [(check["by"], check["exit"]) for check in first["checks"]] == [("relay", 1)]
    assert (second["checks"], [place["line"] for place in second["existing"]]) == ([], [1])
    told = world.text("02-plan", "prompt.md")
    assert "these are not there:" in told
    assert "calculator.py: def add" in told
    assert "calc.py: def subtract" in told
    assert "Mode(Enum)" in told
    assert "rests on calculator.py: what it quotes is not there" in world.inside("trace").out


def test_a_planner_that_goes_on_inventing_ends_with_a_person(tmp_path: Path) -> None:
    lies = planned(FIRST, existing=[{"path": "calc.py", "quote": "def subtract"}])
    world = planning(tmp_path, [lies], [approves()])
    stopped(world.inside("run", world.spec()), 4, "a check is red that was green at the base")
    assert [leg.name for leg in world.legs()] == ["01-plan", "02-plan", "03-plan"]


def test_a_phase_that_trusts_checks_nothing_and_the_trace_says_that_nobody_did(tmp_path: Path) -> None:
    lies = planned(FIRST, existing=[{"path": "calc.py", "quote": "def subtract"}])
    world = planning(tmp_path, [lies], [approves()])
    world.phases["plan"]["done"] = "trust"
    world.save(phases=PHASES)
    through(world.inside("run", world.spec()))
    assert world.receipts()[0]["existing"] == []
    assert "the agent says done (nobody checked it, as the phase trusts)" in world.inside("trace").out

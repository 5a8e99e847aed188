"""A judge that lets go of what Relay saw fail, in whatever words: the repro decides, and no wording makes up for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.loop.faults import stopped, through, untouched
from tests.loop.test_settling import MULTIPLIES, PROBE, WRONG
from tests.world import FIXED, World

GREEN = "python3 -B -c 'import calc; assert calc.add(0, 0) == 0'"


def _reviews(world: World, later: list[dict[str, Any]], found: dict[str, Any] = MULTIPLIES) -> None:
    """Let the reviewer find something once, and then approve with these findings, whose `same_as` is that one's id."""
    text = f"""
known = [line.split("`")[1] for line in prompt.splitlines() if line.startswith("### `F")]
if turn == 1:
    reply(verdict="revise", findings=[json.loads({json.dumps(found)!r})])
else:
    reply(verdict="approve", findings=[
        one | {{"same_as": (known or ["F0000"])[0]}} for one in json.loads({json.dumps(later)!r})
    ])
"""
    world.python("review-judge", text, phase="review", vendor="south")


def _works(world: World, *turns: str) -> None:
    world.implementer(*({"calc.py": text} for text in turns))


def _verdicts(world: World) -> list[dict[str, Any]]:
    return [receipt for receipt in world.receipts() if receipt["phase"] == "review"]


def _known(receipt: dict[str, Any], identity: str) -> dict[str, Any]:
    [found] = [one for one in receipt["findings"] if one["id"] == identity]
    return {name: found[name] for name in ("severity", "path", "evidence", "blocks", "kept")}


STANDS = {"severity": "major", "path": "calc.py", "evidence": "confirmed", "blocks": True, "kept": True}


@pytest.mark.parametrize(
    "named",
    [
        {"severity": "nit"},
        {"severity": "nit", "repro": None},
        {"severity": "nit", "repro": None, "quote": "def add(a, b):", "line": 1},
        {"repro": None, "quote": "nowhere"},
        {"repro": {"command": GREEN}},
        {"severity": "nit", "repro": None, "path": "./calc.py", "line": -5},
    ],
)
def test_a_confirmed_finding_that_is_named_again_as_less_stays_what_it_is_until_its_repro_is_green(
    world: World, named: dict[str, Any]
) -> None:
    _works(world, WRONG, f"{WRONG}# tried\n", FIXED)
    _reviews(world, [{**MULTIPLIES, **named}])
    with untouched(world):
        through(world.inside("run", world.spec()))
    first, second, third = _verdicts(world)
    identity = first["findings"][0]["id"]
    assert (second["claimed_verdict"], second["verdict"]) == ("approve", "revise")
    assert _known(second, identity) == STANDS
    assert third["verdict"] == "approve"
    prompt = world.text("06-review", "prompt.md")
    assert f"### `{identity}` (major, confirmed) at `calc.py` line 2" in prompt
    assert "quote: return a * b\n" in prompt
    assert f"repro: {PROBE}\n" in prompt


def test_the_id_of_a_confirmed_finding_at_another_place_is_a_finding_of_its_own(world: World) -> None:
    _works(world, WRONG, f"{WRONG}# tried\n", FIXED)
    _reviews(world, [{"severity": "nit", "title": "dull", "path": "README.md", "line": 1, "quote": "A calculator"}])
    with untouched(world):
        through(world.inside("run", world.spec()))
    first, second, third = _verdicts(world)
    identity = first["findings"][0]["id"]
    assert _known(second, identity) == STANDS
    assert [(one["path"], one["since"]) for one in second["findings"]] == [("README.md", 2), ("calc.py", 1)]
    assert third["settled"] == [{"how": "fixed", "id": identity}]


def test_an_edit_of_the_quoted_line_mends_nothing_that_relay_saw_fail(world: World) -> None:
    _works(world, WRONG, WRONG.replace("a * b", "(a * b)"), FIXED)
    _reviews(world, [])
    with untouched(world):
        through(world.inside("run", world.spec()))
    first, second, third = _verdicts(world)
    identity = first["findings"][0]["id"]
    assert (second["claimed_verdict"], second["verdict"], second["settled"]) == ("approve", "revise", [])
    assert _known(second, identity) == STANDS
    assert third["settled"] == [{"how": "fixed", "id": identity}]


def test_a_lighter_repro_does_not_take_the_place_of_the_one_that_relay_saw_fail(world: World) -> None:
    """The second one is green after the next turn, and the first one is not."""
    lighter = {"command": "grep -q tried calc.py || exit 3", "expect_exit": 3}
    _works(world, WRONG, f"{WRONG}# a\n", f"{WRONG}# tried\n", FIXED)
    _reviews(world, [{**MULTIPLIES, "severity": "nit", "repro": lighter}])
    world.phases["review"]["rounds"] = 9
    world.save()
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "survived two repairs")
    first, *later = _verdicts(world)
    assert [_known(one, first["findings"][0]["id"])["severity"] for one in later] == ["major"] * 2


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("./check.sh", "it could not be run: exit 127"),
        ("sh check.sh", "it comes to the same where there is no file at all: exit 2"),
    ],
)
def test_a_repro_that_cannot_be_run_any_more_leaves_its_finding_open_and_says_why(
    world: World, command: str, why: str
) -> None:
    script = world.root / "check.sh"
    script.write_text(f"#!/bin/sh\n{PROBE}\n")
    script.chmod(0o755)
    world.git("add", "check.sh")
    world.git("commit", "-q", "-m", "a check")
    text = f"""
write({{"calc.py": {WRONG!r} if turn == 1 else {FIXED!r}}})
if turn == 2:
    pathlib.Path("check.sh").unlink()
elif turn == 3:
    pathlib.Path("check.sh").write_text({f"#!/bin/sh{chr(10)}{PROBE}{chr(10)}"!r})
    pathlib.Path("check.sh").chmod(0o755)
reply(status="done")
"""
    world.python("implementer", text, phase="implement", vendor="north")
    _reviews(world, [], {**MULTIPLIES, "repro": {"command": command, "expect_output": "AssertionError"}})
    with untouched(world):
        ran = world.inside("run", world.spec())
    through(ran)
    first, second, third = _verdicts(world)
    identity = first["findings"][0]["id"]
    assert _known(second, identity) == STANDS
    assert second["problem"] == f"{identity}: whether its repro is green cannot be told: {why}"
    assert second["problem"] in ran.err
    assert third["settled"] == [{"how": "fixed", "id": identity}]


def test_findings_without_evidence_fill_no_prompt(world: World) -> None:
    false = [
        {**MULTIPLIES, "title": f"false {number}", "quote": f"no {number}", "why": "look " * 99} for number in range(40)
    ]
    text = f"found = json.loads({json.dumps([*false, MULTIPLIES])!r})\n"
    text += "reply(verdict='revise' if turn == 1 else 'approve', findings=found if turn == 1 else [])"
    world.python("review-judge", text, phase="review", vendor="south")
    _works(world, WRONG, FIXED)
    with untouched(world):
        through(world.inside("run", world.spec()))
    prompt = world.text("04-review", "prompt.md")
    assert "for which Relay saw no evidence: 40." in prompt
    assert prompt.count("false ") == 3
    assert "- and 37 more\n" in prompt
    assert "look look" not in prompt.partition("Open findings")[2].partition("## ")[0]
    assert [line for line in prompt.splitlines() if line.startswith("### ")] == [
        f"### `{_verdicts(world)[0]['findings'][40]['id']}` (major, confirmed) at `calc.py` line 2"
    ]


# --- criteria that a judge calls met ------------------------------------------------------------------------------

READS = "# Make add add\n\n## Acceptance\n\n- it is there: `test -f calc.py`\n- it reads well\n"


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        ({"command": "true"}, "`true` comes out the same whatever it runs on"),
        ({"command": "echo ok"}, "`echo ok` comes out the same whatever it runs on"),
        ({"command": "ls"}, "`ls` exits with 0 where there is no file at all, too"),
        ({"command": "grep -q nowhere calc.py || true"}, "exits with 0 where there is no file at all, too"),
        ({"command": "grep nowhere calc.py | cat"}, "exits with 0 where there is no file at all, too"),
        ({"command": "no-such-program"}, "`no-such-program` shows nothing, it could not be run: exit 127"),
        ({"path": "calc.py", "quote": "r"}, "its quote is a scrap"),
        ({"path": "calc.py", "quote": "return"}, "its quote is a scrap"),
        ({"path": "calc.py", "quote": "no such words"}, "its quote does not stand in `calc.py`"),
        ({"quote": "return a + b"}, "its quote does not stand in ``"),
        ({"path": "calc.py"}, "the judge calls it met and shows nothing"),
        (None, "the judge passes over it"),
    ],
)
def test_a_criterion_is_met_by_nobody_where_what_is_to_show_it_shows_nothing(
    world: World, evidence: dict[str, object] | None, why: str
) -> None:
    world.approver("acceptance", criteria=[{"id": "c2", "met": True, **evidence}] if evidence is not None else [])
    with untouched(world):
        stopped(world.inside("run", world.spec(READS)), 4, "inconclusive twice: nobody judged c2", why)
    found = [one for one in world.receipts() if one["phase"] == "acceptance"]
    assert [(one["criteria"][1]["by"], why in one["problem"]) for one in found] == [("nobody", True)] * 2


@pytest.mark.parametrize(
    "evidence",
    [
        {"command": "grep -q 'return a + b' calc.py"},
        {"command": "! grep -q subtract calc.py"},
        {"command": 'test -z "$(grep subtract calc.py)"'},
        {"command": "ls", "path": "calc.py", "quote": "return a + b"},
        {"path": "./calc.py", "quote": "return a + b"},
    ],
)
def test_a_criterion_that_a_judge_shows_is_met(world: World, evidence: dict[str, object]) -> None:
    world.approver("acceptance", criteria=[{"id": "c2", "met": True, **evidence}])
    with untouched(world):
        through(world.inside("run", world.spec(READS)))
    last = world.receipts()[-1]
    assert (last["criteria"][1]["by"], last["score"], last["problem"]) == ("judge", "2/2", None)


# --- work without a judge after it --------------------------------------------------------------------------------


def test_a_run_of_work_alone_is_not_accepted_before_every_criterion_with_a_command_holds(world: World) -> None:
    _works(world, "# a\n", "# b\n", "# c\n", "# d\n")
    world.save(phases=["implement"], ship={"approval": "auto"})
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "needs-human", "not met, and no judge follows: c1")
    assert [one["score"] for one in world.receipts()] == ["0/1"] * 3
    assert "grep -q 'return a + b' calc.py` (c1) ended with 1" in world.text("02-implement", "prompt.md")


def test_a_run_of_work_alone_is_accepted_once_its_criteria_hold(world: World) -> None:
    _works(world, "# a\n", FIXED)
    world.save(phases=["implement"])
    through(world.inside("run", world.spec()))
    assert [one["score"] for one in world.receipts()] == ["0/1", "1/1"]


# --- time ---------------------------------------------------------------------------------------------------------


def test_what_relay_looks_at_after_the_agent_counts_in_the_time_of_the_leg(world: World, tmp_path: Path) -> None:
    """The repro says itself how long it took, so that no slow machine breaks this."""
    took = tmp_path / "took"
    probe = "import calc, time, pathlib\nbegan = time.monotonic()\nwhile time.monotonic() < began + 1.5: pass\n"
    probe += f"pathlib.Path({str(took)!r}).write_text(str(time.monotonic() - began))\nassert calc.add(2, 3) == 5\n"
    repro = {"command": "python3 -B probe.py", "files": {"probe.py": probe}, "expect_output": "AssertionError"}
    _works(world, WRONG, FIXED)
    _reviews(world, [], {**MULTIPLIES, "repro": repro})
    through(world.inside("run", world.spec()))
    assert all(one["seconds"] >= float(took.read_text()) for one in _verdicts(world))

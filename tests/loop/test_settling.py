"""Rounds of review end for a stated reason: settled, a cap, a stalemate; each finding is followed through them."""

import json
from typing import Any

import pytest

from tests.loop.faults import stopped, through, untouched
from tests.world import FIXED, World

WRONG = "def add(a, b):\n    return a * b  # return a + b\n"
PROBE = "python3 -B -c 'import calc; assert calc.add(2, 3) == 5'"
MULTIPLIES: dict[str, Any] = {
    "severity": "major",
    "title": "it multiplies",
    "path": "calc.py",
    "line": 2,
    "quote": "return a * b",
    "repro": {"command": PROBE, "expect_output": "AssertionError"},
}


def _place(quote: str, **more: object) -> dict[str, Any]:
    return {"severity": "major", "title": f"about {quote}", "path": "calc.py", "line": 1, "quote": quote} | more


def _reviews(world: World, *turns: list[dict[str, Any]]) -> None:
    """Let the reviewer name these findings, a list a turn, and approve where there are none."""
    told = f"json.loads({json.dumps(turns)!r})[min(turn, {len(turns)}) - 1]"
    text = f"found = {told}\nreply(verdict='revise' if found else 'approve', findings=found)"
    world.python("review-judge", text, phase="review", vendor="south")


def _works(world: World, *turns: str, disputes: list[list[dict[str, str]]] | None = None) -> None:
    """Let the implementer leave these texts of calc.py, and dispute these findings."""
    text = f"""
turns, disputes = {turns!r}, json.loads({json.dumps(disputes or [[]])!r})
write({{"calc.py": turns[min(turn, len(turns)) - 1]}})
reply(status="done", disputes=disputes[min(turn, len(disputes)) - 1])
"""
    world.python("implementer", text, phase="implement", vendor="north")


def _verdicts(world: World) -> list[dict[str, Any]]:
    return [receipt for receipt in world.receipts() if receipt["phase"] == "review"]


def _states(receipt: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(finding["state"], finding["blocks"]) for finding in receipt["findings"]]


def _id(receipt: dict[str, Any], number: int = 0) -> str:
    return str(receipt["findings"][number]["id"])


def _table(world: World) -> dict[str, list[str]]:
    """Return the lines of `relay show findings` by their first word, each as the words that follow."""
    lines = [line.split() for line in world.inside("show", "findings").out.splitlines()]
    return {words[0]: words[1:] for words in lines if words}


# --- one finding over the rounds ----------------------------------------------------------------------------------


def test_a_confirmed_finding_that_the_judge_forgets_is_kept_until_its_repro_is_green(world: World) -> None:
    _works(world, WRONG, f"{WRONG}# tried\n", FIXED)
    _reviews(world, [MULTIPLIES], [])
    with untouched(world):
        through(world.inside("run", world.spec()))
    first, second, third = _verdicts(world)
    assert _states(first) == [("new", True)]
    assert (second["claimed_verdict"], second["verdict"]) == ("approve", "revise"), "forgetting is no settlement"
    assert [(one["kept"], one["evidence"], one["state"], one["blocks"]) for one in second["findings"]] == [
        (True, "confirmed", "persisting", True)
    ]
    assert (third["verdict"], third["settled"]) == ("approve", [{"how": "fixed", "id": _id(first)}])
    worker = world.text("05-implement", "prompt.md")
    assert f"### `{_id(first)}` (major, confirmed)" in worker
    assert "it multiplies" in worker
    assert "confirmed by Relay, blocks" in world.inside("show", "findings").out
    assert "kept by Relay: its repro is not green" in world.inside("trace").out


def test_a_finding_whose_quote_is_gone_and_that_nobody_names_is_fixed(world: World) -> None:
    _works(world, WRONG, FIXED)
    _reviews(world, [_place("return a * b")], [])
    through(world.inside("run", world.spec()))
    first, second = _verdicts(world)
    assert second["settled"] == [{"how": "fixed", "id": _id(first)}]


def test_a_finding_that_the_judge_lets_go_of_while_the_code_stands_is_withdrawn(world: World) -> None:
    _works(world, FIXED, f"{FIXED}# seen\n")
    _reviews(world, [_place("return a + b")], [])
    through(world.inside("run", world.spec()))
    first, second = _verdicts(world)
    assert second["settled"] == [{"how": "withdrawn", "id": _id(first)}]
    assert _table(world)[_id(first)].count("withdrawn") == 2, "in its round, and now"


def test_a_new_finding_off_the_delta_is_advice_in_a_later_round_unless_relay_saw_it_fail(world: World) -> None:
    rest = "".join(f"# {number}\n" for number in range(20)) + "def sub(a, b):\n    return b - a\n"
    shown = {"command": "python3 -B -c 'import calc; assert calc.sub(3, 2) == 1'", "expect_output": "AssertionError"}
    _works(world, WRONG + rest, FIXED + rest, FIXED + rest.replace("b - a", "a - b"))
    _reviews(world, [_place("return a * b")], [_place("def sub"), _place("return b - a", repro=shown)], [])
    with untouched(world):
        through(world.inside("run", world.spec()))
    assert _states(_verdicts(world)[1]) == [("new", False), ("new", True)]


def test_a_finding_that_comes_back_after_it_was_fixed_keeps_its_id_and_says_so(world: World) -> None:
    half = "def add(a, b):\n    return a + b or 1\n"
    _works(world, WRONG, half, f"{WRONG}# again\n", FIXED)
    _reviews(world, [MULTIPLIES], [_place("return a + b or 1")], [MULTIPLIES], [])
    world.phases["review"]["rounds"] = 9
    world.save()
    with untouched(world):
        through(world.inside("run", world.spec()))
    first, second, third, fourth = _verdicts(world)
    assert second["settled"] == [{"how": "fixed", "id": _id(first)}]
    assert _states(second) == [("born-of-a-fix", True)], "its line is the repair's"
    assert _states(third) == [("regression", True)]
    assert (_id(third), third["findings"][0]["since"]) == (_id(first), 1)
    assert {one["how"] for one in fourth["settled"]} == {"fixed"}
    row = _table(world)[_id(first)]
    assert [word.rstrip(",") for word in row if word.rstrip(",") in {"new", "fixed", "regression"}] == [
        *("new", "fixed", "regression", "fixed", "fixed")
    ]


# --- disputes -----------------------------------------------------------------------------------------------------


def _disputed(world: World, command: str, *later: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Let the worker dispute a confirmed finding with a command; return the verdicts."""
    _reviews(world, [MULTIPLIES], *later)
    _works(world, WRONG)
    text = f"""
write({{"calc.py": {WRONG!r} + "# disputed\\n" * (turn > 1)}})
found = [line.split("`")[1] for line in prompt.splitlines() if line.startswith("### `F")]
reply(status="done", disputes=[{{"finding": one, "why": "it shall multiply", "command": {command!r}}} for one in found])
"""
    world.python("implementer", text, phase="implement", vendor="north")
    world.inside("run", world.spec("# Multiply\n\n## Acceptance\n\n- there: `test -f calc.py`\n"))
    return _verdicts(world)


def test_a_dispute_is_run_and_the_next_judge_sees_it_and_not_the_verdict(world: World) -> None:
    first, second = _disputed(world, "grep -q 'a \\* b' calc.py", [])
    worker = world.receipts()[2]
    assert [(one["id"], one["exit"]) for one in worker["disputed"]] == [(_id(first), 0)]
    prompt = world.text("04-review", "prompt.md")
    assert "disputed by the implementer: it shall multiply (Relay saw exit 0 of `grep -q 'a \\* b' calc.py`)" in prompt
    assert "verdict: revise" not in prompt
    assert (second["verdict"], second["settled"]) == ("approve", [{"how": "withdrawn", "id": _id(first)}])
    assert f"{_id(first)} disputed by 03-implement: `grep -q 'a \\* b' calc.py` exited 0" in (
        world.inside("show", "findings").out
    )


def test_a_dispute_that_the_judge_does_not_accept_leaves_the_finding_open_and_marked(world: World) -> None:
    first, *_, last = _disputed(world, "false", [MULTIPLIES])
    assert _states(last) == [("persisting", True)]
    assert world.receipts()[2]["disputed"][0]["exit"] == 1
    stopped(world.inside("resume"), 4, f"{_id(first)} (disputed)")
    assert "open, disputed" in world.inside("show", "findings").out


def test_a_dispute_of_what_was_never_found_is_nothing(world: World) -> None:
    _works(world, FIXED, disputes=[[{"finding": "F0000", "why": "no", "command": "touch /tmp/never"}]])
    through(world.inside("run", world.spec()))
    assert world.receipts()[0]["disputed"] == []


# --- how rounds end -----------------------------------------------------------------------------------------------


def test_thirty_four_false_findings_cost_no_round_and_are_counted(world: World) -> None:
    false = [
        {**MULTIPLIES, "title": f"false {number}", "quote": quote, "line": number}
        for number in range(17)
        for quote in (f"never said {number}", "return a + b")
    ]
    _reviews(world, false)
    with untouched(world):
        through(world.inside("run", world.spec()))
    [review] = _verdicts(world)
    assert (review["claimed_verdict"], review["verdict"]) == ("revise", "approve")
    assert len(review["findings"]) == 34
    assert {finding["evidence"] for finding in review["findings"]} == {"unfounded"}
    assert "review-judge: 34 findings, 0 confirmed, 0 located, 34 unfounded" in world.inside("show", "findings").out
    tally = world.inside("show", "findings", "--json").events[-1]
    assert (tally["type"], tally["agent"], tally["unfounded"]) == ("tally", "review-judge", 34)


def test_a_reviewer_that_never_settles_is_stopped_by_the_cap_with_the_list(world: World) -> None:
    _works(world, *(f"{FIXED}\n\ndef new_{number}():\n    return {number}\n" for number in range(9)))
    _reviews(world, *([_place(f"return {number}")] for number in range(9)))
    with untouched(world):
        ran = world.inside("run", world.spec())
    last = _verdicts(world)[-1]
    stopped(ran, 4, "3 of 3 rounds of `review` are used up", _id(last), "relay answer", "--rounds 1")
    assert [_states(one) for one in _verdicts(world)] == [[("new", True)], *[[("born-of-a-fix", True)]] * 2]
    through(world.inside("show", "findings"))
    granted = world.inside("resume", "--rounds", "1")
    stopped(granted, 4, "4 of 4 rounds")


def test_a_tree_that_returns_to_one_that_was_sent_back_is_a_stalemate(world: World) -> None:
    other = "def add(a, b):\n    return b * a  # return a + b\n"
    _works(world, WRONG, other, WRONG, FIXED)
    _reviews(world, [_place("return a * b")], [_place("return b * a")], [_place("return a * b")], [])
    world.phases["review"]["rounds"] = 9
    world.save()
    with untouched(world):
        ran = world.inside("run", world.spec())
    stopped(ran, 4, "the tree is again the one that `02-review` sent back", "relay answer")
    assert world.inside("answer", world.only_run(), "add, do not multiply").code == 0
    through(world.inside("resume"))


@pytest.mark.parametrize("evidence", ["located", "confirmed"])
def test_a_phase_can_demand_that_relay_saw_it_fail(world: World, evidence: str) -> None:
    world.phases["review"]["evidence"] = evidence
    world.save()
    _works(world, FIXED, f"{FIXED}# twice\n")
    _reviews(world, [_place("return a + b")], [])
    through(world.inside("run", world.spec()))
    assert [_states(one)[0][1] for one in _verdicts(world) if one["findings"]] == [evidence == "located"]

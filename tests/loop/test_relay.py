"""A whole relay: implement, revise, implement, approve, accept, approve, ship; and all that is written on the way."""

import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import environment
from tests.loop.faults import through, worktrees
from tests.world import FIXED, World

CLUMSY = "def add(a, b):\n    return a + b + 0\n"
FOUND = {
    "severity": "major",
    "title": "nothing is added twice",
    "why": "the zero has no meaning",
    "path": "calc.py",
    "line": 2,
    "quote": "return a + b + 0",
}


def work(files: dict[str, str], **reply: object) -> dict[str, object]:
    """One turn of an implementer: it writes files and says it is done."""
    return {"write": files, "reply": {"status": "done", **reply}}


def judged(verdict: str, *findings: dict[str, object], **reply: object) -> dict[str, object]:
    """One turn of a judge."""
    return {"reply": {"verdict": verdict, "findings": list(findings), **reply}}


def found(**changes: object) -> dict[str, object]:
    return {**FOUND, **changes}


def lined_up(folder: Path, implement: list[dict[str, object]], review: list[dict[str, object]]) -> World:
    """Make a world whose implementer and reviewer play these turns."""
    world = World.simple(folder)
    world.script("worker", *implement, phase="implement", vendor="north")
    world.script("reader", *review, phase="review", vendor="south")
    world.phases["implement"]["agent"], world.phases["review"]["agent"] = "worker", "reader"
    world.save()
    return world


@pytest.fixture(scope="module")
def revised(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Make a world whose review asked for one revision, and whose run has shipped: the tests here only look at it."""
    outside = dict(os.environ)
    os.environ.clear()
    os.environ.update({"PATH": outside["PATH"]} | environment(tmp_path_factory.mktemp("user")))
    try:
        world = _revised(tmp_path_factory.mktemp("world"))
        through(world.inside("run", world.spec()))
        assert world.git("log", "--format=%s", "-1", "main") == "line up the agents", "nothing ships by itself"
        through(world.inside("approve"))
        assert worktrees() == []
    finally:
        os.environ.clear()
        os.environ.update(outside)
    return world


def _revised(folder: Path) -> World:
    turns = [
        work(
            {"calc.py": CLUMSY},
            summary="I made it PERFECT",
            claims=[{"criterion": "c1", "how": "TRUST-ME"}],
            decisions=[{"what": "added a zero", "why": "one never knows"}],
        ),
        work({"calc.py": FIXED}, summary="The zero is gone."),
    ]
    return lined_up(folder, turns, [judged("revise", FOUND), judged("approve", summary="nothing left")])


def findings(world: World, leg: str) -> list[dict[str, Any]]:
    """Return the findings of a leg's receipt."""
    listed: list[dict[str, Any]] = json.loads(world.text(leg))["findings"]
    return listed


def test_one_spec_becomes_one_accepted_commit_on_the_base(revised: World) -> None:
    base = revised.git("rev-parse", "main^")
    legs = ["01-implement", "02-review", "03-implement", "04-review", "05-acceptance"]
    run = revised.only_run()
    accepted = revised.git("rev-parse", f"refs/relay/{run}/03-implement")
    assert revised.git("rev-parse", f"relay/{run}") == accepted
    assert [leg.name for leg in revised.legs()] == [*legs, "06-approve", "07-ship"]
    receipts = revised.receipts()
    assert [receipt["ended_by"] for receipt in receipts[:5]] == ["reply"] * 5
    assert [receipt["verdict"] for receipt in receipts] == [None, "revise", None, "approve", "approve", None, None]
    assert [receipt["round"] for receipt in receipts] == [1, 1, 2, 2, 2, 2, 2]
    assert [receipt["score"] for receipt in receipts[:5]] == ["1/1", None, "1/1", None, "1/1"]
    assert {receipt["base"] for receipt in receipts} == {base}
    assert revised.git("log", "-1", "--format=%s", base) == "line up the agents", "one commit"
    assert revised.git("rev-parse", "main^{tree}") == revised.git("rev-parse", f"{accepted}^{{tree}}")
    assert revised.git("status", "--porcelain") == ""
    assert (revised.root / "calc.py").read_text() == FIXED
    assert receipts[-1]["effect"] == {
        "outcome": "shipped",
        "commit": revised.git("rev-parse", "main"),
        "into": "refs/heads/main",
    }
    title, summary, trailers = revised.git("log", "-1", "--format=%B", "main").strip().split("\n\n")
    assert (title, summary) == ("Make add add", "> The zero is gone.")
    assert trailers.splitlines() == [
        f"Relay-Run: {run}",
        "Reviewed-by: reader (scripted)",
        "Accepted-by: acceptance-judge (command)",
    ]
    assert revised.git("log", "-1", "--format=%an <%ae>", "main") == "Ada <ada@example.org>"


def test_each_leg_starts_from_the_commit_before_it_which_is_kept_and_no_worktree_is_left(revised: World) -> None:
    base = revised.git("rev-parse", "main^")
    run, receipts = revised.only_run(), revised.receipts()
    first, third = (revised.git("rev-parse", f"refs/relay/{run}/{leg}") for leg in ("01-implement", "03-implement"))
    assert [receipt["start"] for receipt in receipts[:5]] == [base, first, first, third, third]
    assert [receipt["head"] for receipt in receipts[:5]] == [first, first, third, third, third]
    assert set(revised.refs()) == {
        "refs/heads/main",
        f"refs/heads/relay/{run}",
        *(f"refs/relay/{run}/{leg}" for leg in ("01-implement", "03-implement", "07-ship")),
    }
    assert revised.show(f"refs/relay/{run}/01-implement", "calc.py") == CLUMSY
    assert len(revised.git("worktree", "list").splitlines()) == 1


def test_receipts_are_a_chain_of_hashes_from_the_plan_on_and_hold_no_prose(revised: World) -> None:
    before = (revised.runs / revised.only_run() / "plan.toml").read_bytes()
    for leg, receipt in zip(revised.legs(), revised.receipts(), strict=True):
        assert receipt["prev"] == hashlib.sha256(before).hexdigest(), leg
        before = (leg / "receipt.json").read_bytes()
        for field, name in {"note": "note.md", "reply": "reply.json", "prompt": "prompt.md"}.items():
            expected = hashlib.sha256((leg / name).read_bytes()).hexdigest() if (leg / name).exists() else None
            assert receipt[f"{field}_sha256"] == expected, (leg, name)
            assert (expected is None) == (receipt["kind"] == "act"), (leg, name)
        for prose in ("PERFECT", "TRUST-ME", "one never knows", FOUND["title"], FOUND["why"], "nothing left"):
            assert str(prose) not in before.decode(), (leg, prose)


def test_the_reviewer_gets_spec_and_diff_and_not_what_the_implementer_thinks_of_it(revised: World) -> None:
    for leg in ("02-review", "05-acceptance"):
        prompt = revised.text(leg, "prompt.md")
        assert "`add` in calc.py subtracts." in prompt
        assert "-    return a - b" in prompt
        assert "PERFECT" not in prompt
        assert "TRUST-ME" not in prompt
    assert "+    return a + b + 0" in revised.text("02-review", "prompt.md")
    assert "added a zero: one never knows" in revised.text("02-review", "prompt.md"), "decisions cross, with reasons"
    receipt = json.loads(revised.text("02-review"))
    assert receipt["withheld"] == ["claims", "reasoning", "transcript"]
    assert receipt["crossed"] == ["spec", "note 01-implement", "diff"]
    assert receipt["notes_read"] == ["01-implement"]
    assert "claim: I made it PERFECT" in revised.text("01-implement", "note.md"), "for people it stands in the note"


def test_the_finding_goes_into_the_note_and_into_both_prompts_that_follow(revised: World) -> None:
    [finding] = findings(revised, "02-review")
    assert (finding["evidence"], finding["blocks"], finding["since"]) == ("located", True, 1)
    todo = revised.text("02-review", "note.md").partition("## To do")[2]
    assert f"{finding['id']} (major, located, blocks) `calc.py:2`" in todo
    assert "quote: `return a + b + 0`" in todo
    for leg in ("03-implement", "04-review"):
        prompt = revised.text(leg, "prompt.md")
        assert f"### `{finding['id']}` (major" in prompt
        assert "nothing is added twice" in prompt
    assert "the zero has no meaning" in revised.text("03-implement", "prompt.md")
    assert json.loads(revised.text("03-implement"))["notes_read"] == ["02-review"]


def test_a_note_says_who_wrote_it_when_about_what_and_carries_no_value_that_drifts(revised: World) -> None:
    for leg, receipt in zip(revised.legs()[:5], revised.receipts()[:5], strict=True):
        _, front, body = (leg / "note.md").read_text().split("+++\n", 2)
        fields = tomllib.loads(front)
        assert (fields["run"], fields["leg"], fields["round"]) == (receipt["run"], leg.name, receipt["round"])
        assert fields["written_at"].strftime("%Y-%m-%dT%H:%M:%SZ") == receipt["ended"]
        assert fields["code_version"] == "<pending: git rev-parse HEAD>"
        assert receipt["head"][:12] not in body.replace(f"{receipt['start'][:12]}..HEAD", ""), leg
        sections = [line for line in body.splitlines() if line.startswith("## ")]
        assert sections == [
            f"## {name}" for name in ("Boundary", "Recovery steps", "Completed", "Decisions", "Must", "Risks", "To do")
        ]
    assert "Verify only; do not implement." in revised.text("01-implement", "note.md")
    assert "You may change files in your own worktree." in revised.text("02-review", "note.md")


def test_a_finding_that_stands_again_keeps_its_id(tmp_path: Path) -> None:
    world = lined_up(tmp_path, [work({"calc.py": CLUMSY})], [judged("revise", FOUND)])
    ran = world.inside("run", world.spec(), "--until", "review")
    assert ran.code == 0, ran
    [first] = findings(world, "02-review")
    moved = found(title="said in other words", line=3, quote="return a + b + 0 # again", same_as=first["id"])
    changed = [work({"calc.py": CLUMSY}), work({"calc.py": "\n" + CLUMSY.replace("+ 0", "+ 0 # again")})]
    world.script("worker", *changed, phase="implement", vendor="north")
    world.script("reader", judged("revise", FOUND), judged("revise", moved), phase="review", vendor="south")
    assert world.inside("resume", "--until", "implement").code == 0
    assert world.inside("resume", "--until", "review").code == 0
    [second] = findings(world, "04-review")
    assert (second["id"], second["since"], second["line"]) == (first["id"], 1, 3)


def test_after_round_one_a_located_finding_blocks_on_the_delta_only_and_a_confirmed_one_anywhere(
    tmp_path: Path,
) -> None:
    tail = "".join(f"# line {number}\n" for number in range(3, 30)) + "LAST = 1\n"
    fixed = {"calc.py": FIXED + tail}
    off = found(title="far from the change", line=30, quote="LAST = 1")
    on = found(title="on the change", line=2, quote="return a + b")
    shown = off | {"repro": {"command": "grep -q LAST calc.py && exit 9", "expect_exit": 9}}
    reviews = [judged("revise", FOUND), judged("revise", off)]
    world = lined_up(tmp_path, [work({"calc.py": CLUMSY + tail}), work(fixed)], reviews)

    through(world.inside("run", world.spec()))
    assert [(f["evidence"], f["blocks"]) for f in findings(world, "04-review")] == [("located", False)]
    receipt = json.loads(world.text("04-review"))
    assert (receipt["claimed_verdict"], receipt["verdict"]) == ("revise", "approve"), "settled with advice"
    assert "(major, located, advice) `calc.py:30`" in world.text("04-review", "note.md")

    for name, finding, proof in (("on", on, "located"), ("shown", shown, "confirmed")):
        world = lined_up(
            tmp_path / name,
            [work({"calc.py": CLUMSY + tail}), work(fixed)],
            [judged("revise", FOUND), judged("revise", finding)],
        )
        assert world.inside("run", world.spec(), "--until", "implement").code == 0
        for phase in ("review", "implement", "review"):
            assert world.inside("resume", "--until", phase).code == 0
        assert [(f["evidence"], f["blocks"]) for f in findings(world, "04-review")] == [(proof, True)]
        assert json.loads(world.text("04-review"))["verdict"] == "revise"


def test_a_finding_whose_evidence_does_not_hold_is_kept_and_blocks_nothing(tmp_path: Path) -> None:
    invented = [
        found(title="no such quote", quote="return a * b"),
        found(title="no such file", path="gone.py"),
        found(title="the repro passes", repro={"command": "true", "expect_exit": 1}),
        found(title="the repro cannot run", repro={"command": "no-such-program-here"}),
    ]
    world = lined_up(tmp_path, [work({"calc.py": CLUMSY})], [judged("revise", *invented)])
    through(world.inside("run", world.spec()))
    assert [(f["evidence"], f["blocks"]) for f in findings(world, "02-review")] == [("unfounded", False)] * 4
    assert json.loads(world.text("02-review"))["verdict"] == "approve"
    assert "(major, unfounded, advice)" in world.text("02-review", "note.md")


def test_what_a_later_review_no_longer_names_is_not_shown_as_open_again(tmp_path: Path) -> None:
    other = found(title="another thing", quote="def add", line=1)
    works = [work({"calc.py": CLUMSY}), work({"calc.py": "# two\n" + CLUMSY}), work({"calc.py": FIXED})]
    reviews = [judged("revise", FOUND, other), judged("revise", found(line=3)), judged("approve")]
    world = lined_up(tmp_path, works, reviews)
    through(world.inside("run", world.spec()))
    second, third = world.text("04-review", "prompt.md"), world.text("06-review", "prompt.md")
    assert "another thing" in second
    assert "nothing is added twice" in third
    assert "another thing" not in third


def test_a_dispute_of_the_implementer_is_shown_to_the_next_review(tmp_path: Path) -> None:
    world = lined_up(tmp_path, [work({"calc.py": CLUMSY})], [judged("revise", FOUND), judged("approve")])
    assert world.inside("run", world.spec(), "--until", "review").code == 0
    [finding] = findings(world, "02-review")
    dispute = {"finding": finding["id"], "why": "the zero keeps floats floats", "command": "true"}
    turns = [work({"calc.py": CLUMSY}), work({"calc.py": CLUMSY + "# kept\n"}, disputes=[dispute])]
    world.script("worker", *turns, phase="implement", vendor="north")
    through(world.inside("resume"))
    assert "disputed by the implementer: the zero keeps floats floats" in world.text("04-review", "prompt.md")

"""What a person does between legs: answer, reject, approve; and what each next leg is told of it."""

import json
from pathlib import Path

import pytest

from tests.loop.faults import refused, sober, stopped, through
from tests.world import BROKEN, FIXED, World

ASKED = "May I rename `add`?"
SHORT = ["implement", "review"]


def work(text: str = FIXED, **reply: object) -> dict[str, object]:
    """One turn of an implementer that writes calc.py."""
    return {"write": {"calc.py": text}, "reply": {"status": "done", **reply}}


def judged(verdict: str, quote: str = "", **reply: object) -> dict[str, object]:
    """One turn of a judge, with a finding where a quote is given."""
    finding = {"severity": "major", "title": f"wrong: {quote}", "path": "calc.py", "line": 1, "quote": quote}
    return {"reply": {"verdict": verdict, "findings": [finding] if quote else [], **reply}}


def lined_up(
    folder: Path, *, review: list[dict[str, object]], implement: list[dict[str, object]] | None = None
) -> World:
    """Make a world of two phases, whose implementer and reviewer play these turns."""
    world = World.simple(folder)
    world.script("worker", *(implement or [work()]), phase="implement", vendor="north")
    world.script("reader", *review, phase="review", vendor="south")
    world.phases["implement"]["agent"], world.phases["review"]["agent"] = "worker", "reader"
    world.save(phases=SHORT)
    return world


def stubborn(folder: Path, rounds: int = 3) -> World:
    """Make a world where each repair brings another fault of the same sort, and every fault is found."""
    bad = [f"def add(a, b):\n    return a + b + {number}\n" for number in range(1, 8)]
    world = lined_up(
        folder,
        implement=[work(text) for text in bad],
        review=[judged("revise", f"+ {number}") for number in range(1, 8)],
    )
    world.phases["review"]["rounds"] = rounds
    world.save(phases=SHORT)
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Make a world of one phase."""
    return World.simple(tmp_path, phases=["implement"])


def test_a_question_of_a_worker_waits_for_the_answer_and_both_reach_the_next_leg(tmp_path: Path) -> None:
    asks: dict[str, object] = {"reply": {"status": "blocked", "question": ASKED}}
    world = lined_up(tmp_path, implement=[asks, work()], review=[judged("approve")])
    ran = world.inside("run", world.spec())
    run = world.only_run()
    stopped(ran, 4, "needs-human", f"relay answer {run} TEXT")
    stopped(world.inside("resume", run), 4)
    assert [leg.name for leg in world.legs()] == ["01-implement"], "a question is not skipped by resuming"
    refused(world.inside("answer", run, "  "), 2, "empty")

    through(world.inside("answer", run, "No, keep its name."))
    through(world.inside("resume", run))
    prompt = world.text("03-implement", "prompt.md")
    assert f"- Question: {ASKED}\n  Answer: No, keep its name." in prompt
    assert "Why this leg runs: a person answered." in prompt
    assert world.text("02-answer", "why.md") == "No, keep its name."
    assert "No, keep its name." not in world.text("02-answer"), "the receipt holds its hash"
    refused(world.inside("answer", run, "too late"), 2, "asks nothing", "accepted", f"relay approve {run}")


def test_a_question_of_a_judge_is_answered_to_the_judge(tmp_path: Path) -> None:
    asks = judged("blocked", question="Is a negative sum fine?")
    world = lined_up(tmp_path, review=[asks, judged("approve")])
    stopped(world.inside("run", world.spec()), 4)
    assert json.loads(world.text("02-review"))["verdict"] == "blocked"
    through(world.inside("answer", world.only_run(), "Yes."))
    through(world.inside("resume"))
    assert [leg.name for leg in world.legs()][2:] == ["03-answer", "04-review"]
    assert "- Question: Is a negative sum fine?\n  Answer: Yes." in world.text("04-review", "prompt.md")


def test_at_the_cap_an_answer_grants_one_round_and_no_more(tmp_path: Path) -> None:
    world = stubborn(tmp_path, rounds=1)
    stopped(world.inside("run", world.spec()), 4, "1 of 1 rounds of `review` are used up", "relay answer")
    run = world.only_run()
    stopped(world.inside("resume", run), 4, "1 of 1 rounds")
    assert len(world.legs()) == 2
    through(world.inside("answer", run, "Look at the zero."))
    stopped(world.inside("resume", run), 4, "2 of 2 rounds")
    assert [leg.name for leg in world.legs()][2:] == ["03-answer", "04-implement", "05-review"]
    assert "Answer: Look at the zero." in world.text("04-implement", "prompt.md")
    assert "### `F" in world.text("04-implement", "prompt.md"), "the findings go along"

    stopped(world.inside("resume", run, "--rounds", "2"), 4, "4 of 4 rounds")
    extended = ["06-extend", "07-implement", "08-review", "09-implement", "10-review"]
    assert [leg.name for leg in world.legs()][5:] == extended


def test_a_finding_that_survives_two_repairs_needs_a_person(tmp_path: Path) -> None:
    again = [work(f"# try {number}\n{BROKEN}# return a + b\n") for number in range(1, 5)]
    world = lined_up(tmp_path, implement=again, review=[judged("revise", "return a - b")])
    world.phases["review"]["rounds"] = 9
    world.save(phases=SHORT)
    stopped(world.inside("run", world.spec()), 4, "survived two repairs")
    receipts = world.receipts()
    assert len(receipts) == 6, "long before the cap"
    [same] = {finding["id"] for receipt in receipts for finding in receipt["findings"]}
    world.script("reader", *[judged("revise", "return a - b")] * 3, judged("approve"), phase="review", vendor="south")
    world.script("worker", *again[:3], work(), phase="implement", vendor="north")
    through(world.inside("answer", world.only_run(), "Add; do not subtract."))
    through(world.inside("resume"))
    assert f"### `{same}`" in world.text("08-implement", "prompt.md")


def test_a_rejection_is_a_must_for_everybody_after_it(tmp_path: Path) -> None:
    world = lined_up(tmp_path, implement=[work(), work(FIXED + "# why\n")], review=[judged("approve")])
    through(world.inside("run", world.spec()))
    run = world.only_run()
    refused(world.inside("reject", run, "--why", " "), 2, "empty")
    through(world.inside("reject", run, "--why", "say why in a comment"))
    refused(world.inside("approve", run), 1, "not accepted", f"relay resume {run}")
    through(world.inside("resume", run))
    assert [leg.name for leg in world.legs()][2:] == ["03-reject", "04-implement", "05-review"]
    for leg in ("04-implement", "05-review"):
        assert "- A person demands: say why in a comment" in world.text(leg, "prompt.md")
        assert "- say why in a comment" in world.text(leg, "note.md").partition("## Must")[2].partition("## Risks")[0]
    assert world.receipts()[3]["round"] == 2
    through(world.inside("approve", run))
    assert world.show("main", "calc.py") == FIXED + "# why\n"


def test_a_rejection_goes_to_the_worker_of_what_was_judged_last(tmp_path: Path) -> None:
    world = lined_up(tmp_path, review=[judged("approve")])
    plan = {"reply": {"status": "done", "document": "# Add\n"}}
    world.script("planner", plan, phase="plan", vendor="north")
    world.script("critic", judged("approve"), phase="plan-review", vendor="south")
    world.save(phases=["plan", "plan-review", "implement", "review", "acceptance"])
    sober(world.inside("run", world.spec(), "--until", "plan-review"))
    through(world.inside("reject", world.only_run(), "--why", "another plan"))
    sober(world.inside("resume", "--until", "plan"))
    assert [leg.name for leg in world.legs()][2:] == ["03-reject", "04-plan"]


def test_a_rejection_of_a_relay_of_work_alone_goes_back_to_the_work(tmp_path: Path) -> None:
    world = World.simple(tmp_path, phases=["implement"])
    through(world.inside("run", world.spec()))
    through(world.inside("reject", world.only_run(), "--why", "once more"))
    through(world.inside("resume"))
    assert [leg.name for leg in world.legs()] == ["01-implement", "02-reject", "03-implement"]


def test_a_rejected_run_can_be_closed_for_good(world: World) -> None:
    through(world.inside("run", world.spec()))
    run = world.only_run()
    ran = world.inside("reject", run, "--close", "--why", "not wanted any more")
    stopped(ran, 1, "not accepted", f"relay trace {run}")
    assert world.receipts()[-1]["effect"] == {"close": "yes"}
    refused(world.inside("approve", run), 1, "not-accepted")
    refused(world.inside("reject", run, "--why", "again"), 2, "cannot be rejected")
    ran = world.inside("resume", run)
    assert (ran.code, "nothing to resume" in ran.err) == (1, True), ran
    assert world.inside("resume", run, "--rounds", "1").code == 1
    assert len(world.legs()) == 2, "nothing is added to a run that ended"
    assert world.show("main", "calc.py") == BROKEN
    assert world.show(f"relay/{run}", "calc.py") == FIXED, "the work is kept"


def test_approving_twice_ships_once_and_says_so(world: World) -> None:
    through(world.inside("run", world.spec()))
    run = world.only_run()
    through(world.inside("approve", run))
    shipped = world.git("rev-parse", "main")
    ran = world.inside("approve", run)
    through(ran)
    assert "has shipped already" in ran.err
    assert world.git("rev-parse", "main") == shipped
    assert len(world.legs()) == 3
    through(world.inside("resume", run))
    assert len(world.legs()) == 3


def test_what_is_not_accepted_cannot_be_approved_and_the_hint_says_what_would_make_it_so(tmp_path: Path) -> None:
    world = stubborn(tmp_path, rounds=1)
    sober(world.inside("run", world.spec(), "--until", "implement"))
    run = world.only_run()
    refused(world.inside("approve", run), 1, "not accepted: it is open", f"relay resume {run}")
    stopped(world.inside("resume", run), 4)
    refused(world.inside("approve", run), 4, "needs-human", f"relay resume {run} --rounds 1")
    through(world.inside("stop", run))
    refused(world.inside("approve", run), 1, "stopped", f"relay resume {run}")
    refused(world.inside("approve", "nobody"), 2, "nobody", "relay status")
    assert world.show("main", "calc.py") == BROKEN


def test_a_rehearsed_approval_says_what_would_go_out_and_does_nothing(world: World) -> None:
    through(world.inside("run", world.spec()))
    run = world.only_run()
    before = world.refs()
    ran = world.inside("approve", run, "--dry-run")
    through(ran)
    assert "merge into main" in ran.out
    assert "calc.py +1 -1" in ran.out
    assert (world.refs(), len(world.legs())) == (before, 1)


def test_a_rehearsal_ships_nothing_even_where_an_approval_already_stands(world: World) -> None:
    from relay import ship
    from relay.host import lock, repository
    from relay.record import ledger as ledgers

    through(world.inside("run", world.spec()))
    here, run = ledgers.at(repository.discover(world.root)), world.only_run()
    with lock.hold(here.run_lock(run), "a test", run):
        ship.approve(here, ledgers.read_plan(here, run), ledgers.receipts(here, run), None)
    before = world.refs()
    through(world.inside("approve", run, "--dry-run"))
    assert world.refs() == before
    through(world.inside("resume", run))
    assert world.receipts()[-1]["effect"]["outcome"] == "shipped"

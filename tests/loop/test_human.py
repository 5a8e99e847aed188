"""A person takes a leg: it is offered, they work and write a reply, and the next `relay resume` seals it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.loop.faults import refused, stopped, through, worktrees
from tests.reaper.scenes import reap
from tests.world import FIXED, World


def by_hand(folder: Path, phase: str) -> World:
    """Make a world where a person takes one phase."""
    world = World.simple(folder)
    world.agents["me"] = {"backend": "human"}
    world.phases[phase]["agent"] = "me"
    world.save()
    return world


def offer(world: World) -> dict[str, Any]:
    """Return what the newest offer says, after looking whether it is there."""
    receipt = world.receipts()[-1]
    assert receipt["act"] == "offer", receipt
    effect: dict[str, Any] = receipt["effect"]
    assert Path(effect["worktree"], "calc.py").is_file()
    assert Path(effect["prompt"]).is_file()
    assert not Path(effect["reply"]).exists()
    return effect


def answer(effect: dict[str, Any], **reply: object) -> None:
    Path(effect["reply"]).write_text(json.dumps(reply), encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ("answer", "{run}", "TEXT"),
        ("reject", "{run}", "--why", "TEXT"),
        ("approve", "{run}", "--leg", "01", "--why", "TEXT"),
    ],
)
def test_a_printed_command_whose_text_nobody_wrote_says_nothing(world: World, words: tuple[str, ...]) -> None:
    asks = {"reply": {"status": "blocked", "question": "which?"}}
    world.script("implementer", asks, phase="implement", vendor="north")
    world.save()
    stopped(world.inside("run", world.spec()), 4)
    before = len(world.receipts())
    refused(world.inside(*(word.format(run=world.only_run()) for word in words)), 2, "`TEXT`, which stands for yours")
    assert len(world.receipts()) == before


def test_what_a_person_put_beside_the_reply_or_changed_of_what_set_up_made_stays(tmp_path: Path) -> None:
    world = by_hand(tmp_path, "implement")
    world.commit({".gitignore": "*.local\n"})
    world.save(worktree={"setup": ["echo debug=0 > settings.local"]})
    world.inside("run", world.spec())
    effect = offer(world)
    place, beside = Path(effect["worktree"]), Path(effect["reply"]).with_name("notes.md")
    (place / "calc.py").write_text(FIXED)
    (place / "settings.local").write_text("debug=1\n")
    beside.write_text("mine\n")
    answer(effect, status="done", summary="it adds")
    through(world.inside("resume"))
    reap(world)
    assert (place / "settings.local").read_text() == "debug=1\n"
    (place / "settings.local").unlink()
    reap(world)
    assert [path.name for path in beside.parent.parent.iterdir()] == [beside.parent.name]
    assert [path.name for path in beside.parent.iterdir()] == ["notes.md"]
    assert "holds what somebody put there" in world.inside("reap", "-v").err


def test_a_person_takes_the_work_and_relay_seals_it_like_any_other_leg(tmp_path: Path) -> None:
    world = by_hand(tmp_path, "implement")
    stopped(world.inside("run", world.spec()), 4, "needs-human", "`implement` waits for a person's reply")
    effect = offer(world)
    assert effect["phase"] == "implement"
    prompt = Path(effect["prompt"]).read_text()
    assert "`add` in calc.py subtracts." in prompt
    assert effect["reply"] in prompt
    shown = world.inside("show", f"{world.only_run()}/01-offer")
    for path in (effect["worktree"], effect["prompt"], effect["reply"]):
        assert path in shown.out, (path, shown)
    schema = json.loads((Path(effect["reply"]).parent / "reply.schema.json").read_text())
    assert "status" in schema["properties"]

    stopped(world.inside("resume"), 4, "waits for a person's reply")
    refused(world.inside("answer", world.only_run(), "soon"), 2, "asks nothing")
    assert [leg.name for leg in world.legs()] == ["01-offer"], "waiting leaves no trace"

    Path(effect["worktree"], "calc.py").write_text(FIXED)
    answer(effect, status="done", summary="I turned the sign")
    world.commit({"news.txt": "meanwhile, in my own checkout\n"})
    through(world.inside("resume"))
    assert [leg.name for leg in world.legs()] == ["01-offer", "02-implement", "03-review", "04-acceptance"]
    leg = world.receipts()[1]
    assert (leg["ended_by"], leg["status"], leg["backend"], leg["vendor"]) == ("reply", "done", "human", "human")
    assert (leg["breaches"], leg["score"]) == ([], "1/1")
    assert any("refs/heads/main" in line for line in leg["drift"]), "a person may work elsewhere meanwhile"
    assert leg["prompt_sha256"], "what was asked stands in the receipt"
    assert world.show(f"refs/relay/{world.only_run()}/02-implement", "calc.py") == FIXED
    assert "claim: I turned the sign" in world.text("02-implement", "note.md")
    assert worktrees() == []
    assert world.inside("verify", world.only_run()).code == 0
    through(world.inside("approve"))
    assert (world.root / "calc.py").read_text() == FIXED


def test_a_reply_that_does_not_fit_is_said_with_its_place_and_can_be_mended_where_it_is(tmp_path: Path) -> None:
    world = by_hand(tmp_path, "implement")
    world.inside("run", world.spec())
    effect = offer(world)
    Path(effect["worktree"], "calc.py").write_text(FIXED)
    answer(effect, status="done", risks=["none", 7])
    stopped(world.inside("resume"), 4, "`$.risks[1]`")
    Path(effect["reply"]).write_text("I did it")
    stopped(world.inside("resume"), 4, "the reply")
    assert [leg.name for leg in world.legs()] == ["01-offer"]
    answer(effect, status="done")
    through(world.inside("resume"))
    assert [leg.name for leg in world.legs()] == ["01-offer", "02-implement", "03-review", "04-acceptance"]


def _nonce(effect: dict[str, Any]) -> str:
    """Read the nonce that a judge's prompt asks for."""
    lines = Path(effect["prompt"]).read_text().splitlines()
    [nonce] = {line.split("`")[3] for line in lines if line.startswith("Its `nonce` must be")}
    return nonce


def test_a_person_judges_and_their_evidence_is_checked_like_everybodys(tmp_path: Path) -> None:
    world = by_hand(tmp_path, "review")
    world.implementer({"calc.py": FIXED + "# TODO\n"}, {"calc.py": FIXED})
    stopped(world.inside("run", world.spec()), 4, "`review` waits")
    effect = offer(world)
    prompt = Path(effect["prompt"]).read_text()
    assert "+# TODO" in prompt
    nonce = _nonce(effect)
    finding = {"severity": "major", "title": "unfinished", "path": "calc.py", "line": 3, "quote": "# TODO"}
    answer(effect, verdict="revise", nonce=nonce, findings=[finding, finding | {"quote": "never written"}])
    stopped(world.inside("resume"), 4, "`review` waits")
    legs = ["01-implement", "02-offer", "03-review", "04-implement", "05-offer"]
    assert [leg.name for leg in world.legs()] == legs
    judged = world.receipts()[2]
    assert judged["verdict"] == "revise"
    assert [(found["evidence"], found["blocks"]) for found in judged["findings"]] == [
        ("located", True),
        ("unfounded", False),
    ]
    second = offer(world)
    answer(second, verdict="approve", nonce=nonce)
    stopped(world.inside("resume"), 4, "`$.nonce`")
    answer(second, verdict="approve", nonce=_nonce(second))
    through(world.inside("resume"))
    assert worktrees() == []


def test_a_person_who_accepts_decides_nothing_that_a_command_decides(tmp_path: Path) -> None:
    world = by_hand(tmp_path, "acceptance")
    world.implementer({"calc.py": "def add(a, b):\n    return a\n"})
    stopped(world.inside("run", world.spec()), 4, "`acceptance` waits")
    effect = offer(world)
    prompt = Path(effect["prompt"]).read_text()
    assert "`grep -q 'return a + b' calc.py` (c1) ended with 1" in prompt
    [nonce] = [line.split("`")[3] for line in prompt.splitlines() if line.startswith("Its `nonce` must be")]
    answer(effect, verdict="approve", nonce=nonce, criteria=[{"id": "c1", "met": True, "command": "true"}])
    through(world.inside("resume", "--until", "acceptance"))
    leg = world.receipts()[-1]
    assert (leg["claimed_verdict"], leg["verdict"], leg["score"]) == ("approve", "revise", "0/1")
    assert (leg["criteria"][0]["by"], leg["withheld"]) == ("relay", ["claims", "reasoning", "transcript"])


def test_a_person_who_changes_what_they_only_judge_breaches_the_boundary(tmp_path: Path) -> None:
    world = by_hand(tmp_path, "review")
    world.inside("run", world.spec())
    effect = offer(world)
    Path(effect["worktree"], "calc.py").write_text("# better so\n")
    answer(effect, verdict="approve", nonce=_nonce(effect))
    stopped(world.inside("resume"), 7, "calc.py")
    assert world.receipts()[-1]["ended_by"] == "breach"
    assert world.show(f"refs/relay/{world.only_run()}/03-review.void", "calc.py") == "# better so\n"


def test_an_offer_outlives_a_stop(tmp_path: Path) -> None:
    world = by_hand(tmp_path, "implement")
    world.inside("run", world.spec())
    effect = offer(world)
    through(world.inside("stop"))
    Path(effect["worktree"], "calc.py").write_text(FIXED)
    answer(effect, status="done")
    through(world.inside("resume"))
    assert world.legs()[3].name == "04-implement"
    assert world.receipts()[3]["score"] == "1/1"


def test_what_stands_in_an_offered_worktree_is_kept_when_the_run_is_rejected(tmp_path: Path) -> None:
    world = by_hand(tmp_path, "implement")
    world.inside("run", world.spec())
    Path(offer(world)["worktree"], "calc.py").write_text(FIXED)
    run = world.only_run()
    ran = world.inside("reject", run, "--close", "--why", "no need")
    assert f"refs/relay/{run}/01-offer.cut" in ran.err
    assert world.show(f"refs/relay/{run}/01-offer.cut", "calc.py") == FIXED


def test_what_relay_sealed_since_an_offer_is_nobodys_change(tmp_path: Path) -> None:
    world = by_hand(tmp_path, "implement")
    world.inside("run", world.spec())
    effect = offer(world)
    through(world.inside("stop"))
    Path(effect["worktree"], "calc.py").write_text(FIXED)
    answer(effect, status="done")
    through(world.inside("resume"))
    [leg] = [receipt for receipt in world.receipts() if receipt["phase"] == "implement" and receipt["kind"] == "work"]
    assert (leg["breaches"], leg["drift"]) == ([], [])

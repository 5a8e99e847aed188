"""`relay approve --leg LEG --why TEXT`: a person ships what nothing accepted, and everything says so."""

from pathlib import Path

import pytest

from tests.loop.faults import refused, sober, stopped, through, untouched
from tests.world import BROKEN, FIXED, World

WHY = "the reviewer is wrong about the name"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Make a world whose reviewer is never content, so that a run needs a person."""
    made = World.simple(tmp_path)
    made.implementer({"calc.py": FIXED}, {"calc.py": FIXED + "# again\n"})
    made.reviser("review", path="calc.py", quote="def add(a, b):", times=9)
    made.phases["review"]["rounds"] = 2
    made.save(phases=["implement", "review"], checks={"never": "test -e no-such-file"})
    stopped(made.inside("run", made.spec()), 4, "needs-human")
    return made


def test_what_a_person_takes_the_responsibility_for_goes_out_and_the_receipt_says_that_nothing_accepted_it(
    world: World,
) -> None:
    run, base = world.only_run(), world.git("rev-parse", "main")
    ran = world.inside("approve", run)
    refused(ran, 4, "not accepted", f"relay approve {run} --leg LEG --why TEXT")
    ran = world.inside("approve", run, "--leg", "01", "--why", WHY)
    through(ran)
    assert "nothing accepted `01-implement`" in ran.err
    assert world.git("rev-parse", "main^") == base
    assert world.show("main", "calc.py") == FIXED
    approval, ship = world.receipts()[-2:]
    assert (approval["effect"]["leg"], approval["effect"]["accepted"]) == ("01-implement", "by nothing")
    assert approval["pins"]["head"] == world.git("rev-parse", f"refs/relay/{run}/01-implement")
    assert world.text(approval["leg"], "why.md") == WHY
    assert ship["effect"]["outcome"] == "shipped"
    message = world.git("log", "-1", "--format=%B", "main")
    assert f"Relay-Outcome: not accepted; {approval['by']} takes the responsibility" in message
    assert "Accepted-by" not in message
    through(world.inside("verify", run))
    ran = world.inside("trace", run)
    assert "accepted: by nothing" in ran.out


def test_a_judges_leg_stands_for_what_it_judged(world: World) -> None:
    run = world.only_run()
    through(world.inside("approve", run, "--leg", "review", "--why", WHY))
    assert world.show("main", "calc.py") == FIXED + "# again\n"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--leg", "01"], ["go together"]),
        (["--why", WHY], ["go together"]),
        (["--leg", "01", "--why", "  "], ["go together"]),
        (["--leg", "17", "--why", WHY], ["no leg `17`"]),
    ],
)
def test_without_a_leg_that_is_there_and_a_reason_nothing_happens(
    world: World, said: list[str], words: list[str]
) -> None:
    legs = len(world.legs())
    with untouched(world):
        refused(world.inside("approve", world.only_run(), *said), 2, *words)
    assert len(world.legs()) == legs


def test_an_act_and_a_void_leg_stand_for_nothing(tmp_path: Path) -> None:
    world = World.simple(tmp_path, phases=["implement"])
    fix = "printf 'def add(a, b):\\n    return a + b\\n' > calc.py"
    world.shell("implementer", f"{fix}\ngit config user.name Mallory", phase="implement", reply="exit")
    world.save(phases=["implement"])
    stopped(world.inside("run", world.spec()), 7)
    run = world.only_run()
    refused(world.inside("approve", run, "--leg", "01", "--why", WHY), 2, "void")
    sober(world.inside("reject", run, "--why", "again"))
    refused(world.inside("approve", run, "--leg", "02", "--why", WHY), 2, "is no leg")
    assert world.show("main", "calc.py") == BROKEN


def test_what_is_accepted_needs_nobody_to_be_responsible(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    through(world.inside("run", world.spec()))
    refused(world.inside("approve", "--leg", "01", "--why", WHY), 2, "is accepted", "relay approve")


def test_a_shipment_that_failed_is_approved_again_about_the_same_leg(world: World) -> None:
    run = world.only_run()
    world.write({"calc.py": "# half a thought\n"})
    stopped(world.inside("approve", run, "--leg", "01", "--why", WHY), 4, "calc.py")
    world.git("checkout", "-q", "--", "calc.py")
    through(world.inside("approve", run))
    assert world.show("main", "calc.py") == FIXED
    approvals = [receipt["effect"]["leg"] for receipt in world.receipts() if receipt["act"] == "approve"]
    assert approvals == ["01-implement", "01-implement"]


def test_what_was_red_at_that_leg_does_not_stand_in_the_way_on_a_base_that_moved(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.implementer({"calc.py": BROKEN + "# better\n"})
    world.save(phases=["implement", "review"])
    sober(world.inside("run", world.spec(), "--until", "implement"))
    moved = world.commit({"news.txt": "meanwhile\n"})
    through(world.inside("approve", world.only_run(), "--leg", "1", "--why", WHY))
    assert world.git("rev-parse", "main^") == moved
    assert world.show("main", "calc.py") == BROKEN + "# better\n"


def test_a_rehearsal_says_that_nothing_accepted_it(world: World) -> None:
    ran = world.inside("approve", world.only_run(), "--leg", "01", "--why", WHY, "--dry-run")
    through(ran)
    assert "nothing accepted 01-implement" in ran.out
    assert world.show("main", "calc.py") == BROKEN


def test_a_commit_that_is_gone_is_not_approved(tmp_path: Path) -> None:
    world = World.simple(tmp_path, phases=["implement"])
    through(world.inside("run", world.spec()))
    run = world.only_run()
    world.git("update-ref", "-d", f"refs/relay/{run}/01-implement")
    world.git("branch", "-q", "-D", f"relay/{run}")
    world.git("-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")
    legs = len(world.legs())
    with untouched(world):
        refused(world.inside("approve", run), 6, "is not in the repository", "relay verify")
    assert len(world.legs()) == legs

"""Exactly what was accepted goes out, once: whatever refs lie about, whoever is killed, whoever decides meanwhile."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from relay import leg, runner
from relay.host import lock, repository
from relay.record import ledger as ledgers
from relay.telling import Teller
from tests.loop.faults import nothing_started, refused, sober, stopped, through
from tests.world import FIXED, SAFETY, World


def test_what_was_made_after_a_rejection_ships_although_something_shipped_before(world: World) -> None:
    up = world.folder / "up"
    world.implementer({"calc.py": FIXED}, {"calc.py": FIXED, "more.py": "more = 1\n"})
    world.save(ship={"verify": [f"test -e {up}"]})
    through(world.relay("run", world.spec()))
    stopped(world.relay("approve"), 4, "exited 1")
    run = world.only_run()
    through(world.relay("reject", run, "--why", "add more.py"))
    through(world.relay("resume", run))
    up.touch()
    assert "the base moved" in world.relay("approve", run).err, "what shipped first is in the base by now"
    through(world.relay("resume", run))
    through(world.relay("approve", run))
    assert world.show("main", "more.py") == "more = 1\n"


def test_a_ref_that_an_agent_made_is_no_shipment(world: World) -> None:
    forge = "git update-ref refs/relay/$RELAY_RUN/99-ship refs/heads/main"
    world.shell("review-judge", forge, phase="review", reply="exit")
    world.save()
    stopped(world.relay("run", world.spec()), 7, "99-ship appeared")
    refused(world.relay("approve"), 7, "not accepted")
    assert world.show("main", "calc.py") != FIXED


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_approval_that_ends_while_its_checks_run_is_finished_by_resume(world: World, number: signal.Signals) -> None:
    go = world.folder / "go"
    world.save(ship={"verify": [f"test -e {go} || (touch {go}; sleep 60)"]})
    through(world.relay("run", world.spec()))
    approving = world.start("approve")
    while not go.exists():
        assert approving.poll() is None
        time.sleep(0.02)
    os.kill(approving.pid, number)
    approving.communicate(timeout=SAFETY)
    through(world.relay("resume"))
    assert world.git("log", "--format=%s", "--grep=^Relay-Run: ", "main") == "Make add add"
    assert world.receipts()[-1]["effect"]["outcome"] == "shipped"
    assert "relay" not in world.git("worktree", "list")[len(str(world.root)) :]


def test_a_rejection_between_two_legs_is_not_overtaken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner has asked the plan and not yet begun the leg: then a person closes the run."""
    sober(world.inside("run", world.spec(), "--until", "implement"))
    run = world.only_run()
    ledger = ledgers.at(repository.discover(world.root))
    begun = leg.run

    def late(*args: object) -> object:
        monkeypatch.setattr(leg, "run", begun)
        assert world.inside("reject", run, "--close", "--why", "never").code == 1
        return begun(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(leg, "run", late)
    with lock.hold(ledger.root / "beside", "a test"):
        step = runner.drive(ledger, run, runner.Order(by_hand=True), Teller())
    assert getattr(step, "outcome", None) == "not-accepted"
    assert [path.name for path in world.legs()] == ["01-implement", "02-reject"]
    refused(world.inside("approve", run), 1, "not accepted")


def test_an_approval_looks_at_the_notes_it_rests_on(world: World) -> None:
    through(world.relay("run", world.spec()))
    note = world.legs()[1] / "note.md"
    kept = note.read_bytes()
    note.unlink()
    refused(world.relay("approve"), 6, str(note))
    note.write_bytes(kept)
    through(world.relay("approve"))


def test_a_copy_of_the_repository_does_not_ship_what_the_original_accepted(world: World, tmp_path: Path) -> None:
    through(world.relay("run", world.spec()))
    copy = tmp_path / "copy"
    shutil.copytree(world.root, copy, symlinks=True)
    refused(world.relay("approve", folder=copy), 6, "copied or moved", str(world.root))
    through(world.relay("approve"))


def test_a_pause_after_a_phase_that_is_through_already_lets_nothing_ship(world: World) -> None:
    world.save(ship={"approval": "auto"})
    sober(world.relay("run", world.spec(), "--until", "review"))
    run = world.only_run()
    for phase in ("review", "implement"):
        assert "paused before `acceptance`" in world.relay("resume", run, "--until", phase).err
    assert "accepted" in world.relay("resume", run, "--until", "acceptance").err
    assert [path.name for path in world.legs()] == ["01-implement", "02-review", "03-acceptance"]
    through(world.relay("resume", run))
    assert world.show("main", "calc.py") == FIXED


def test_a_state_folder_inside_the_repository_is_refused_before_there_is_a_run(world: World) -> None:
    refused(world.relay("run", world.spec(), env={"XDG_STATE_HOME": str(world.root / "state")}), 2, "would lie inside")
    nothing_started(world)


def test_an_empty_name_is_no_branch_to_ship_into(world: World) -> None:
    through(world.relay("run", world.spec()))
    refused(world.relay("approve", "--into", ""), 2, "names no branch")
    assert world.show("main", "calc.py") != FIXED

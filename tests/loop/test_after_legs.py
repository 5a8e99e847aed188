"""What is left where legs worked, once they are over: nothing that is Relay's, and all that somebody else put there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from relay.host import repository
from relay.record import ledger as ledgers
from tests.loop.doomed import BEAT, await_that
from tests.loop.dusk import short
from tests.loop.faults import through, worktrees
from tests.loop.jailed import agents
from tests.reaper.scenes import again, reap, repaired, standing
from tests.world import SAFETY, SPEC, World

RUBBISH = "echo 1 > db.sqlite3; mkdir -p out.d obj; echo 2 > obj/a.json; git init -q obj/dep; grep -q 'a + b' calc.py"


def _immutable(world: World) -> bool:
    """Tell whether a file can be made one that nobody removes."""
    tried = world.folder / "tried"
    tried.touch()
    can = shutil.which("chattr") is not None
    can = can and subprocess.run(["chattr", "+i", tried], check=False, capture_output=True).returncode == 0
    return can and subprocess.run(["chattr", "-i", tried], check=False).returncode == 0


def _spec(world: World, command: str) -> Path:
    return world.spec(f"# Make add add\n\n## Acceptance\n\n- it adds: `{command}`\n")


@pytest.mark.parametrize("mode", ["off", "auto"])
def test_what_the_checks_of_an_ordinary_project_leave_keeps_no_worktree(world: World, mode: str) -> None:
    world.commit({".gitignore": "*.sqlite3\nobj/\nout.d/\n"})
    agents(world, jail={"mode": mode})
    through(world.relay("run", _spec(world, RUBBISH)))
    assert worktrees() == []
    again(world)


@pytest.mark.parametrize("verb", ["reap", "resume", "nightly"])
def test_what_a_person_put_beside_a_worktree_stays(world: World, verb: str) -> None:
    through(world.relay("run", world.spec(), "--until", "implement"))
    beside = ledgers.at(repository.discover(world.root)).worktree(world.only_run(), "01-implement")
    (patch := beside.with_name("01-implement.patch")).write_text("mine\n")
    (notes := beside.with_name("01-implement.old")).mkdir()
    (notes / "thesis").write_text("mine\n")
    world.relay(verb)
    assert (patch.read_text(), (notes / "thesis").read_text()) == ("mine\n", "mine\n")
    reap(world)
    newest = verb == "reap"  # of a run that goes on: its place is a person's to look at, and nothing of it is asked
    assert standing(world) == ([] if newest else ["worktree", "worktree"])


@pytest.mark.parametrize("logs", ["true", "false"])
def test_a_checkout_of_an_ordinary_project_goes_after_a_kill(world: World, logs: str) -> None:
    begun = world.folder / "begun"
    world.git("config", "core.logAllRefUpdates", logs)
    world.commit({".gitignore": "*.sqlite3\nvar/\n", "version.txt": "0\n"})
    setup = "echo 1 > version.txt; echo made > made.txt; mkdir -p var; echo 1 > var/test.db"
    world.save(worktree={"setup": [setup]})
    waits = f"test -e {begun} || {{ {BEAT.format(f'{begun}.mark')}; touch {begun}; sleep 60; }}"
    leaves = f"touch db.sqlite3 var/test.db; case $PWD in *acceptance*) {waits};; esac"
    running = world.start("run", world.spec(f"{SPEC}- it waits: `{leaves}`\n"))
    await_that(begun.exists, "acceptance ran no command")
    running.kill()
    running.communicate(timeout=SAFETY)
    assert [path for path in worktrees() if path.name == "03-acceptance.check"]
    through(world.relay("resume"))
    assert worktrees() == []
    again(world)


def test_a_checkout_that_cannot_go_is_no_breach_of_the_leg_that_it_was_for(world: World) -> None:
    if not _immutable(world):
        pytest.skip("nothing can be made immutable here")
    held = "case $PWD in */03-acceptance.check) chattr +i .;; esac; grep -q 'a + b' calc.py"
    try:
        through(world.relay("run", _spec(world, held)))
        assert [leg["breaches"] for leg in world.receipts()] == [[], [], []]
    finally:
        for path in worktrees():
            subprocess.run(["chattr", "-i", path], check=False)


def test_work_in_a_checkout_where_a_killed_relay_ran_commands_stays_and_is_raised(world: World) -> None:
    begun = world.folder / "begun"
    waits = f"case $PWD in *acceptance*) test -e {begun} || {{ touch {begun}; sleep 60; }};; esac"
    running = world.start("run", world.spec(f"{SPEC}- it waits: `{waits}`\n"))
    await_that(begun.exists, "acceptance ran no command")
    running.kill()
    running.communicate(timeout=SAFETY)
    [place] = [path for path in worktrees() if path.name == "03-acceptance.check"]
    (place / "why-it-fails.md").write_text("an hour of looking\n")
    reap(world)
    through(world.relay("resume"))
    events = reap(world)
    assert (place / "why-it-fails.md").read_text() == "an hour of looking\n"
    assert "`why-it-fails.md` in it is kept nowhere else" in str(events)
    again(world)
    (place / "why-it-fails.md").unlink()
    reap(world)
    assert not place.exists()


@pytest.mark.parametrize("kept", ["echo mine > why.md", "echo mine > why.md; git add why.md; rm why.md"])
def test_work_where_a_killed_relay_looked_at_what_it_shipped_stays_when_it_looks_again(world: World, kept: str) -> None:
    begun, folder = world.folder / "begun", world.folder
    verify = f"test -e {begun} || {{ touch {begun}; sleep 60; }}; pwd >> {folder}/looked"
    short(world).save(phases=["implement"], ship={"approval": "auto", "verify": [verify]})
    running = world.start("run", world.spec())
    await_that(begun.exists, "nothing looked at the shipment")
    running.kill()
    running.communicate(timeout=SAFETY)
    [place] = [path for path in worktrees() if path.name.endswith(".shipped")]
    subprocess.run(["sh", "-c", kept], cwd=place, check=True)
    through(world.relay("resume"))
    assert world.receipts()[-1]["effect"]["outcome"] == "shipped"
    [looked] = (folder / "looked").read_text().split()
    assert (Path(looked).name, Path(looked).exists()) == (f"{place.name}.2", False)
    assert world.git("ls-files", "--cached", "--others", "why.md", folder=place) == "why.md"
    assert "`why.md`" in str(reap(world))
    again(world)


def test_a_file_that_cannot_be_removed_stops_no_run_and_is_raised_once(world: World) -> None:
    if not _immutable(world):
        pytest.skip("nothing can be made immutable here")
    world.commit({".gitignore": "build/\n"})
    seal = "mkdir -p build && touch build/f && chattr +i build/f; grep -q 'a + b' calc.py"
    try:
        through(world.relay("run", _spec(world, seal)))
        told = [event["command"] for event in reap(world) if event["type"] == "alert"]
        assert told
        assert [command for command in told if not command.startswith("sudo rm -r ")] == []
        again(world)
    finally:
        state = ledgers.at(repository.discover(world.root)).worktree("run", "leg").parents[1]
        for path in state.rglob("build/f"):
            subprocess.run(["chattr", "-i", path], check=False)
    assert "worktree" in repaired(reap(world))
    assert standing(world) == []

"""What stands in the worktree of a leg that was killed: commits go on refs, and what is nowhere else keeps it there."""

import subprocess
from pathlib import Path

import pytest

from relay import alerts
from tests.loop import doomed
from tests.loop.test_queue import ledger
from tests.reaper.scenes import command, reap, repaired, worktrees
from tests.world import World

HALF = "echo half > calc.py"
CHANGES = f"{HALF}; echo agent > agent.local"
COMMIT = "git -c user.name=a -c user.email=a@example.org commit -q"
FIX = "sed -i 's/a - b/a + b/; s/half/def add(a, b): return a + b/' calc.py"


def killed(folder: Path, text: str = HALF, *, phase: str = "implement", **settings: object) -> tuple[World, Path]:
    """Kill a run in the middle of a phase, after its agent did what `text` says; return where it worked.

    When that agent is started again it does what it should.
    """
    world = World.simple(folder)
    world.commit({".gitignore": "*.local\n"})
    there = world.folder / "there"
    lines = [
        f"if test -e {there}; then {FIX if phase == 'implement' else ':'}; exit 0; fi",
        text,
        doomed.BEAT.format(f"{there}.mark"),
        f"touch {there}",
    ]
    world.shell("killed", "\n".join([*lines, "exec sleep 600"]), phase=phase, reply="exit", vendor="west")
    world.save(**settings)
    running = world.start("run", world.spec())
    doomed.await_that(lambda: there.exists() or running.poll() is not None, "the agent never came so far")
    running.kill()
    said = running.communicate()
    places = worktrees()
    assert len(places) == 1, (places, said)
    return world, places[0]


def _kept(world: World, commit: str) -> list[str]:
    """Return the names that keep a commit, without the number of the run."""
    names = world.git("for-each-ref", "--format=%(refname)", f"--contains={commit}").split()
    return [name.replace(world.only_run(), "RUN") for name in names]


@pytest.mark.parametrize("verb", ["reap", "resume"])
def test_a_commit_that_a_killed_agent_made_and_left_again_is_kept_and_the_run_goes_on(
    tmp_path: Path, verb: str
) -> None:
    text = f"echo thought > thought.txt; git add thought.txt; {COMMIT} -m thought; git reset -q --hard HEAD~1; {HALF}"
    world, place = killed(tmp_path, text)
    commit = world.git("rev-parse", "HEAD@{1}", folder=place)
    world.relay(verb)
    assert world.receipts()[0]["ended_by"] == "interrupted"
    assert _kept(world, commit) == [f"refs/relay/RUN/01-implement.agent-{commit[:12]}"]
    assert not place.exists()
    assert world.show(f"refs/relay/{world.only_run()}/01-implement.cut", "calc.py") == "half\n"


def test_the_commit_at_which_a_killed_agent_stood_is_kept_as_its_own(tmp_path: Path) -> None:
    world, place = killed(tmp_path, f"{HALF}; {COMMIT} -a -m mine")
    commit = world.git("rev-parse", "HEAD", folder=place)
    assert "worktree" in repaired(reap(world))
    assert _kept(world, commit) == ["refs/relay/RUN/01-implement.agent"]


def test_two_commits_that_a_killed_agent_left_again_are_both_kept(tmp_path: Path) -> None:
    one = f"{COMMIT} --allow-empty -m one; {COMMIT} --allow-empty -m more; git reset -q --hard HEAD~2"
    two = f"{COMMIT} --allow-empty -m two; git reset -q --hard HEAD~1"
    world, place = killed(tmp_path, f"{one}; {two}; {HALF}")
    log = world.git("log", "-g", "--format=%H %s", folder=place).splitlines()
    made = {line.split(" ", 1)[1]: line.split(" ")[0] for line in log}
    reap(world)
    assert [len(_kept(world, made[name])) for name in ("one", "more", "two")] == [1, 1, 1]
    assert not place.exists()


def test_what_a_killed_agent_had_staged_alone_stays_and_the_leg_is_sealed_all_the_same(tmp_path: Path) -> None:
    world, place = killed(tmp_path, f"echo thought > thought.txt; git add thought.txt; rm thought.txt; {HALF}")
    assert "leg" in repaired(reap(world))
    assert world.receipts()[0]["ended_by"] == "interrupted"
    assert world.git("show", ":thought.txt", folder=place) == "thought"
    assert world.relay("resume").code == 0
    events = reap(world)
    assert [event["what"].partition(", and ")[2] for event in events if event["type"] == "alert"] == [
        "`thought.txt` is staged in it and kept nowhere else"
    ]
    assert command(events, "worktree") == f"git worktree remove --force --force {place}"


@pytest.mark.parametrize("verb", ["reap", "resume"])
def test_what_a_person_wrote_into_the_worktree_of_a_killed_judge_stays(tmp_path: Path, verb: str) -> None:
    world, place = killed(tmp_path, ":", phase="review")
    (place / "fix.patch").write_text("found by hand\n")
    (place / "calc.py").write_text("a better fix\n")
    assert world.relay(verb).code == 0
    assert world.receipts()[1]["ended_by"] == "interrupted"
    assert (place / "fix.patch").read_text() == "found by hand\n"
    assert (place / "calc.py").read_text() == "a better fix\n"


@pytest.mark.parametrize("verb", ["reap", "resume"])
def test_what_set_up_made_and_a_person_changed_after_the_kill_stays_and_what_the_agent_changed_goes(
    tmp_path: Path, verb: str
) -> None:
    setup = {"setup": ["echo seed > person.local; echo seed > agent.local"]}
    world, place = killed(tmp_path, CHANGES, worktree=setup)
    (place / "person.local").write_text("an hour of looking\n")
    world.relay(verb)
    assert world.receipts()[0]["ended_by"] == "interrupted"
    world.relay("resume")
    reap(world)
    assert (place / "person.local").read_text() == "an hour of looking\n"
    [told] = [alert.what for alert in alerts.all(ledger(world)) if alert.kind == "worktree"]
    assert "`person.local` in it is kept nowhere else" in told


def test_the_worktree_of_a_killed_leg_whose_agent_changed_what_set_up_made_goes(tmp_path: Path) -> None:
    setup = {"setup": ["echo seed > agent.local"]}
    world, place = killed(tmp_path, CHANGES, worktree=setup)
    assert "worktree" in repaired(reap(world))
    assert not place.exists()


def test_the_worktree_of_a_killed_judge_in_which_nobody_wrote_goes(tmp_path: Path) -> None:
    world, place = killed(tmp_path, ":", phase="review")
    assert "worktree" in repaired(reap(world))
    assert not place.exists()


def test_a_killed_leg_whose_worktree_a_person_locked_is_sealed_and_the_worktree_stays(tmp_path: Path) -> None:
    world, place = killed(tmp_path)
    world.git("worktree", "unlock", str(place))
    world.git("worktree", "lock", "--reason", "mine", str(place))
    assert "leg" in repaired(reap(world))
    assert (place / "calc.py").read_text() == "half\n"
    assert str(place) in world.git("worktree", "list")


def test_a_worktree_of_a_killed_leg_stays_while_a_person_stands_in_it_and_goes_then(tmp_path: Path) -> None:
    world, place = killed(tmp_path)
    with subprocess.Popen(["sleep", "600"], cwd=place) as there:
        try:
            assert "leg" in repaired(reap(world))
            assert (place / "calc.py").read_text() == "half\n"
        finally:
            there.kill()
    assert "worktree" in repaired(reap(world))
    assert worktrees() == []

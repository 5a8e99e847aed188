"""What a killed Relay left is told from what a person did there afterwards: its signs of life end when it does."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.loop import doomed
from tests.loop.dusk import short
from tests.loop.faults import through, worktrees
from tests.reaper.scenes import again, alerts, reap, repaired
from tests.world import SAFETY, SPEC, World

COMMIT = "git -c user.name=a -c user.email=a@example.org commit -q"
MINE = f"echo mine > why.md; git add why.md; {COMMIT} -m mine; git rev-parse HEAD; echo more > more.md"


def killed(world: World, there: Path) -> None:
    """Kill a run as soon as it came so far."""
    running = world.start("run", world.spec(f"{SPEC}- it adds: `sh {world.folder}/check`\n"))
    doomed.await_that(lambda: there.exists() or running.poll() is not None, "nothing came so far")
    running.kill()
    running.communicate(timeout=SAFETY)


def place_of(name: str) -> Path:
    """Return a worktree by its name."""
    [found] = [path for path in worktrees() if path.name == name]
    return found


def waiting(world: World, where: str, does: str = "") -> Path:
    """Let the set-up or the check wait once in a folder of that name; return the file that says so."""
    there = world.folder / "there"
    once = f"test -e {there} || {{ {does or ':'}; {doomed.BEAT.format(f'{there}.mark')}; touch {there}; sleep 60; }}"
    (world.folder / "check").write_text(f"case $PWD in */{where}) {once};; esac; grep -q 'a + b' calc.py\n")
    return there


@pytest.mark.parametrize("name", ["01-implement", "03-acceptance.check"])
def test_what_a_person_did_where_set_up_was_killed_stays(world: World, name: str) -> None:
    there = waiting(world, name)
    world.save(worktree={"setup": [f"sh {world.folder}/check || :"]})
    killed(world, there)
    place = place_of(name)
    commit = subprocess.run(["sh", "-c", MINE], cwd=place, check=True, capture_output=True, text=True).stdout.strip()
    through(world.relay("resume"))
    reap(world)
    assert (place / "more.md").read_text() == "more\n"
    assert world.git("rev-parse", "HEAD", folder=place) == commit


@pytest.mark.parametrize("name", ["01-implement", "03-acceptance.check"])
def test_a_place_where_set_up_was_killed_and_nobody_came_goes(world: World, name: str) -> None:
    there = waiting(world, name, "echo 1 > half.txt; git tag -f -a -m x x")
    world.save(worktree={"setup": [f"sh {world.folder}/check || :"]})
    killed(world, there)
    assert place_of(name)
    through(world.relay("resume"))
    assert worktrees() == []
    again(world)


@pytest.mark.parametrize(
    "does", ["echo 1 > db.sqlite3; echo 1 > report.xml", "git add -A; git stash -q; echo 2 >> calc.py"]
)
def test_a_worktree_in_which_a_killed_relay_ran_checks_goes(world: World, does: str) -> None:
    world.commit({".gitignore": "*.sqlite3\n"})
    there = waiting(world, "01-implement", does)
    killed(world, there)
    through(world.relay("resume"))
    assert worktrees() == []
    again(world)


@pytest.mark.parametrize("path", ["why.md", "why.local", "calc.py"])
def test_what_a_person_wrote_where_a_killed_relay_ran_checks_stays(world: World, path: str) -> None:
    world.commit({".gitignore": "*.local\n"})
    killed(world, waiting(world, "01-implement", "echo 1 > report.xml"))
    place = place_of("01-implement")
    (place / path).write_text("an hour of looking\n")
    through(world.relay("resume"))
    assert (place / path).read_text() == "an hour of looking\n"
    assert alerts(reap(world)) == ["worktree"]


@pytest.mark.parametrize("name", ["01-implement", "03-acceptance.check"])
def test_a_folder_that_a_person_moved_where_a_killed_relay_worked_stays(world: World, name: str) -> None:
    (world.folder / "mine").mkdir()
    (world.folder / "mine" / "evidence.md").write_text("a week ago\n")
    killed(world, waiting(world, name))
    moved = (world.folder / "mine").rename(place_of(name) / "mine")
    through(world.relay("resume"))
    reap(world)
    assert (moved / "evidence.md").read_text() == "a week ago\n"


def test_what_an_agent_left_unseen_keeps_a_worktree_in_which_a_killed_relay_ran_checks(world: World) -> None:
    world.commit({".gitignore": "*.local\n"})
    there = waiting(world, "01-implement")
    world.shell("implementer", "sed -i 's/a - b/a + b/' calc.py; echo 1 > notes.local", phase="implement", reply="exit")
    world.save()
    killed(world, there)
    place = place_of("01-implement")
    through(world.relay("resume"))
    assert (place / "notes.local").is_file()


def test_what_a_person_changed_in_a_worktree_that_waits_stays_once_the_rest_is_brought_away(world: World) -> None:
    world.commit({".gitignore": "*.local\n"})
    short(world, "sed -i 's/a - b/a + b/' calc.py; echo n > notes.local")
    world.save(phases=["implement"], worktree={"setup": ["echo debug=0 > env.local"]})
    through(world.relay("run", world.spec()))
    place = place_of("01-implement")
    (place / "env.local").write_text("debug=1\n")
    (place / "notes.local").rename(world.folder / "notes.local")
    reap(world)
    assert (place / "env.local").read_text() == "debug=1\n"
    (place / "env.local").unlink()
    assert "worktree" in repaired(reap(world))
    assert worktrees() == []


def test_judges_whose_tests_leave_files_that_git_ignores_keep_no_worktree(world: World) -> None:
    world.commit({".gitignore": "*.sqlite3\n"})
    world.shell("review-judge", "echo 1 > db.sqlite3", phase="review", reply="exit", vendor="west")
    world.save(jail={"mode": "off"})
    through(world.relay("run", world.spec()))
    assert worktrees() == []
    again(world)


@pytest.mark.parametrize(
    ("words", "ended_by"),
    [
        (("config", "branch.main.remote", "origin"), "interrupted"),
        (("config", "alias.st", "!sh evil"), "breach"),
        (("config", "--file", "more.cfg", "alias.st", "!sh evil"), "breach"),
    ],
)
def test_after_a_kill_without_a_jail_settings_void_a_leg_only_where_they_had_to_be_put_back(
    world: World, words: tuple[str, ...], ended_by: str
) -> None:
    there = world.folder / "there"
    world.git("remote", "add", "origin", str(world.folder))
    (world.root / "more.cfg").write_text("[alias]\n\tls = log\n")
    world.git("config", "include.path", str(world.root / "more.cfg"))
    short(world, f"sed -i 's/a - b/a + b/' calc.py; test -e {there} || {{ touch {there}; sleep 60; }}")
    killed(world, there)
    world.git(*words)
    world.relay("resume")
    assert world.receipts()[0]["ended_by"] == ended_by
    assert ("--file" in words) or (words[1] in world.git("config", "--list")) == (ended_by == "interrupted")


def test_to_stop_a_run_that_a_night_lands_waits_until_the_checkout_is_whole(world: World) -> None:
    files = world.root / "zz"
    big = "mkdir zz; for i in $(seq 3000); do echo $i > zz/$i; done"
    short(world, f"sed -i 's/a - b/a + b/' calc.py; {big}").save(phases=["implement"], ship={"approval": "auto"})
    through(world.relay("queue", "add", world.spec()))
    night = world.start("nightly")
    doomed.await_that(lambda: files.is_dir() or night.poll() is not None, "nothing landed")
    night.send_signal(signal.SIGUSR1)
    night.communicate(timeout=SAFETY)
    lock = world.root / ".git" / "index.lock"
    assert (lock.exists(), world.git("status", "--porcelain")) == (False, "")

"""`ship.method = "push"`: the accepted tree goes onto a branch of another repository, or nothing does."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.forge.away import Away, accepted
from tests.loop.faults import nothing_started, refused, stopped, through, untouched
from tests.world import BROKEN, FIXED, World


def effects(world: World) -> list[str]:
    """Return what became of each shipment."""
    return [receipt["effect"]["outcome"] for receipt in world.receipts() if receipt["act"] == "ship"]


def test_the_accepted_tree_is_pushed_onto_the_branch_of_the_base_and_nothing_here_moves(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    base, run = away.tip(), world.only_run()
    world.write({"README.md": "dirty\n", "calc.py": "dirty too\n"})
    with untouched(world):
        through(world.inside("approve"))
        assert tracked(world) == away.tip(), "as after every push"
    assert away.git("rev-parse", "main^") == base
    assert away.git("rev-parse", "main^{tree}") == world.git("rev-parse", f"relay/{run}^{{tree}}")
    assert f"Relay-Run: {run}" in away.git("log", "-1", "--format=%B", "main")
    assert world.git("rev-parse", "main") == base
    effect = world.receipts()[-1]["effect"]
    assert (effect["into"], effect["remote"], effect["commit"]) == ("refs/heads/main", "origin", away.tip())
    ran = world.inside("approve", run)
    through(ran)
    assert "has shipped already" in ran.err
    assert effects(world) == ["shipped"]


def tracked(world: World) -> str:
    """Return where this repository last saw the branch there, and forget it."""
    seen = world.git("rev-parse", "refs/remotes/origin/main")
    world.git("update-ref", "-d", "refs/remotes/origin/main")
    return seen


@pytest.mark.parametrize("said", ["ship.branch", "--into"])
def test_a_branch_that_is_not_there_yet_is_made(tmp_path: Path, said: str) -> None:
    written = said == "ship.branch"
    world, away = accepted(tmp_path, method="push", branch="ready/{run}" if written else "main")
    name = f"ready/{world.only_run()}" if written else "ready/now"
    through(world.inside("approve", *([] if written else ["--into", name])))
    assert sorted(away.branches()) == ["main", name]
    assert away.git("rev-parse", f"{name}^") == away.tip()
    assert away.git("show", f"{name}:calc.py") + "\n" == FIXED


def test_a_remote_that_moved_elsewhere_gets_the_change_once_the_criteria_hold_there_too(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    moved = away.mate({"news.txt": "meanwhile\n"})
    with untouched(world):
        through(world.inside("approve"))
        tracked(world)
    assert away.git("rev-parse", "main^") == moved
    assert away.git("diff", "--name-only", "main^", "main") == "calc.py"
    assert world.receipts()[-1]["base"] == moved


def test_a_remote_that_moved_in_the_same_file_sends_the_change_back(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    moved = away.mate({"calc.py": BROKEN + "# a mate was here\n"})
    stopped(world.inside("approve"), 1, "the base moved", "calc.py", f"relay resume {world.only_run()}")
    assert away.tip() == moved
    world.implementer({"calc.py": FIXED + "# a mate was here\n"})
    through(world.inside("resume"))
    through(world.inside("approve"))
    assert away.git("rev-parse", "main^") == moved
    assert away.git("show", "main:calc.py") + "\n" == FIXED + "# a mate was here\n"


@pytest.mark.parametrize("branch", ["main", "ready/{run}"])
def test_commits_that_nobody_pushed_do_not_go_along(tmp_path: Path, branch: str) -> None:
    world = World(tmp_path, {"calc.py": BROKEN})
    world.implementer({"calc.py": FIXED})
    away = Away(world)
    there = away.tip()
    world.save(phases=["implement"], ship={"method": "push", "branch": branch})
    world.commit({"private.txt": "not for others yet\n"})
    through(world.inside("run", world.spec()))
    through(world.inside("approve"))
    name = branch.replace("{run}", world.only_run())
    assert away.git("rev-parse", f"{name}^") == there
    assert away.git("ls-tree", "-r", "--name-only", name).split() == ["calc.py"]


def test_a_branch_that_somebody_forced_back_does_not_get_back_what_was_taken_out(tmp_path: Path) -> None:
    world = World(tmp_path, {"calc.py": BROKEN, "base.txt": "x\n"})
    world.implementer({"calc.py": FIXED})
    world.save(phases=["implement"], ship={"method": "push"})
    world.commit({"mistake.txt": "taken out again\n"})
    away = Away(world)
    through(world.inside("run", world.spec()))
    forced = away.mate({}, force=True)
    through(world.inside("approve"))
    assert away.git("rev-parse", "main^") == forced
    assert "mistake.txt" not in away.git("ls-tree", "-r", "--name-only", "main").split()


def test_a_protected_branch_says_no_in_its_own_words_and_everything_is_as_before(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    base = away.tip()
    away.hook("pre-receive", "echo 'main is protected: open a pull request' >&2; exit 1")
    with untouched(world):
        stopped(world.inside("approve"), 4, "needs-human", "main is protected: open a pull request", "relay approve")
    assert (away.tip(), effects(world)) == (base, ["failed"])
    (away.folder / "hooks" / "pre-receive").unlink()
    through(world.inside("approve"))
    assert effects(world) == ["failed", "shipped"]
    assert away.git("rev-parse", "main^") == base


def test_a_branch_that_moves_in_the_very_moment_is_looked_at_again(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    mine = tmp_path / "moved"
    news = away.git("commit-tree", "main^{tree}", "-p", "main", "-m", "a mate's")
    move = f"git -C {away.folder} update-ref refs/heads/main {news}"
    away.hook("pre-receive", f"test -e {mine} && exit 0\ntouch {mine}\nunset GIT_QUARANTINE_PATH\n{move}\nexit 0")
    through(world.inside("approve"))
    assert mine.exists()
    assert away.git("rev-parse", "main^") == news
    assert effects(world) == ["shipped"]
    assert [leg.name for leg in world.legs()] == ["01-implement", "02-approve", "03-ship"]


def test_the_hook_before_a_push_runs_on_the_very_commit_and_touches_no_checkout(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    seen = tmp_path / "seen"
    hook = world.root / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ngrep -q 'a + b' calc.py && cat > {seen} && echo 'not on a Friday' >&2 && exit 1\n")
    hook.chmod(0o755)
    base = away.tip()
    with untouched(world):
        stopped(world.inside("approve"), 4, "not on a Friday")
    assert (away.tip(), effects(world)) == (base, ["failed"])
    assert "refs/heads/main" in seen.read_text()
    hook.write_text("#!/bin/sh\nexit 0\n")
    through(world.inside("approve"))
    assert away.git("rev-parse", "main^") == base


def test_a_hook_that_leaves_something_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    going, told = tmp_path / "going", tmp_path / "told"
    for name, text in (
        ("pre-push", f"echo as it does >&2\n(while test -e {going}; do sleep 0.05; done; echo over > {told}) &"),
        ("reference-transaction", f"echo moved > {told}"),
    ):
        hook = world.root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{text}\n")
        hook.chmod(0o755)
    going.touch()
    try:
        through(world.inside("approve"))
        assert not told.exists(), "it was not waited for, and no other hook ran"
    finally:
        going.unlink()
    assert away.git("show", "main:calc.py") + "\n" == FIXED


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("moved", [False, True])
def test_an_answer_that_is_lost_is_no_refusal_and_what_went_out_is_seen(
    tmp_path: Path, *, moved: bool, hooked: bool
) -> None:
    world, away = accepted(tmp_path, method="push")
    base = away.tip()
    if hooked:
        hook = world.root / ".git" / "hooks" / "pre-push"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 0\n")
        hook.chmod(0o755)
    name = "post-receive" if moved else "pre-receive"
    away.hook(name, "kill -9 $PPID")
    ran = world.inside("approve")
    assert "did not take it" not in ran.err, ran
    assert (ran.code, effects(world)) == ((0, ["shipped"]) if moved else (4, ["failed"])), ran
    (away.folder / "hooks" / name).unlink()
    through(world.inside("approve", world.only_run()))
    assert away.git("rev-parse", "main^") == base


@pytest.mark.parametrize("settings", [["push.default=nothing"], ["push.gpgSign=true"], ["push.followTags=true"]])
def test_settings_of_the_person_about_pushing_do_not_change_what_goes_out(tmp_path: Path, settings: list[str]) -> None:
    world, away = accepted(tmp_path, method="push")
    for setting in settings:
        world.git("config", *setting.split("="))
    world.git("tag", "-a", "-m", "mine", "mine")
    through(world.inside("approve"))
    assert effects(world) == ["shipped"]
    assert away.git("tag") == ""


def test_without_its_remote_a_run_does_not_begin_and_is_not_approved(tmp_path: Path) -> None:
    world = World.simple(tmp_path, ship={"method": "push", "remote": "upstream"})
    refused(world.inside("run", world.spec()), 2, "there is no remote `upstream`", "git remote add upstream URL")
    nothing_started(world)

    world, away = accepted(tmp_path / "later", method="push")
    world.git("remote", "rename", "origin", "elsewhere")
    legs = len(world.legs())
    refused(world.inside("approve"), 2, "there is no remote `origin`", "elsewhere")
    assert len(world.legs()) == legs, "nothing was approved"
    world.git("remote", "rename", "elsewhere", "origin")
    through(world.inside("approve"))
    assert away.git("show", "main:calc.py") + "\n" == FIXED


def test_a_remote_that_cannot_be_reached_is_said_and_the_run_waits(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    gone = away.folder.rename(tmp_path / "gone.git")
    with untouched(world):
        stopped(world.inside("approve"), 4, "`origin` cannot be reached", "git ls-remote origin")
    gone.rename(away.folder)
    through(world.inside("resume"))
    assert effects(world) == ["failed", "shipped"]


def test_a_shallow_clone_pushes_onto_a_remote_that_moved(tmp_path: Path) -> None:
    world = World(tmp_path, {"calc.py": BROKEN})
    world.implementer({"calc.py": FIXED})
    world.save(phases=["implement"], ship={"method": "push"})
    away = Away(world)
    world.git("clone", "-q", "--depth", "1", f"file://{away.folder}", str(tmp_path / "shallow"), folder=tmp_path)
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        world.git("config", name, value, folder=tmp_path / "shallow")
    world.root = tmp_path / "shallow"
    world.python(
        "implementer",
        "\nwrite({'calc.py': " + repr(FIXED) + "})\nreply(status='done')\n",
        phase="implement",
        vendor="north",
    )
    through(world.inside("run", world.spec()))
    moved = away.mate({"news.txt": "meanwhile\n"})
    through(world.inside("approve"))
    assert away.git("rev-parse", "main^") == moved
    assert world.git("rev-parse", "--is-shallow-repository") == "true"


@pytest.mark.parametrize("status", [401, 403])
def test_without_permission_nobody_is_asked_for_a_password_and_nothing_happens(tmp_path: Path, status: int) -> None:
    class Closed(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("WWW-Authenticate", 'Basic realm="closed"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    world, _ = accepted(tmp_path, method="push")
    with ThreadingHTTPServer(("127.0.0.1", 0), Closed) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        world.git("remote", "set-url", "origin", f"http://127.0.0.1:{server.server_address[1]}/shop.git")
        with untouched(world):
            stopped(world.relay("approve", env={"NO_PROXY": "*"}), 4, "cannot be reached", "never asks for a password")
        server.shutdown()
        thread.join()
    assert effects(world) == ["failed"]


@pytest.mark.parametrize("branch", ["-x", "a..b", "with space", ""])
def test_what_cannot_be_a_branch_is_refused_before_anything_runs(tmp_path: Path, branch: str) -> None:
    world = World.simple(tmp_path)
    Away(world)
    world.save(ship={"method": "push", "branch": branch})
    refused(world.inside("run", world.spec()), 2, "cannot be the name of a branch")
    nothing_started(world)
    assert "cannot be the name of a branch" in world.inside("doctor").out + world.inside("doctor").err


def test_an_approval_of_commits_that_came_late_pushes_nothing(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    base, run = away.tip(), world.only_run()
    world.git("branch", "-q", "-f", f"relay/{run}", "main")
    stopped(world.inside("approve"), 4, "has moved since it was accepted")
    assert away.tip() == base

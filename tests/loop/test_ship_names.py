"""Where it goes: what names no branch is refused before anything is sealed, and a rehearsal refuses the same."""

from pathlib import Path

import pytest

from relay.errors import Exit
from tests.forge.away import Away, accepted, lined_up
from tests.loop.faults import nothing_started, refused, through, untouched
from tests.world import FIXED, World

NO_BRANCHES = ["HEAD", "@", "main~1", "main@{0}", "main^{commit}", "refs/tags/v1", "-x", "main ", "a/.b", "x.lock"]


@pytest.mark.parametrize("method", ["merge", "push"])
def test_what_is_no_branch_is_refused_before_anything_is_approved(tmp_path: Path, method: str) -> None:
    world, away = accepted(tmp_path, method=method)
    world.git("tag", "v1")
    run, there = world.only_run(), away.branches()
    for name in [*NO_BRANCHES, world.git("rev-parse", "main")]:
        for more in ((), ("--dry-run",)):
            with untouched(world):
                refused(world.inside("approve", run, f"--into={name}", *more), Exit.USAGE, f"`{name}`", "--into BRANCH")
    assert [leg.name for leg in world.legs()] == ["01-implement"]
    assert away.branches() == there


def test_a_remotes_branch_said_as_it_is_called_here_is_that_branch_there(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push")
    world.git("fetch", "-q", "origin")
    rehearsed = world.inside("approve", world.only_run(), "--dry-run", "--into", "origin/main")
    assert rehearsed.out.startswith("push to main on origin:"), rehearsed
    through(world.inside("approve", world.only_run(), "--into", "origin/main"))
    assert list(away.branches()) == ["main"]
    assert away.git("show", "main:calc.py") + "\n" == FIXED


def from_the_remote(folder: Path, **ship: object) -> tuple[World, Away]:
    """Line up a run whose base is what the remote's `main` was when it was last seen."""
    world, away = lined_up(folder)
    world.save(phases=["implement"], base="origin/main", ship=ship)
    world.git("push", "-q", "origin", "main")
    world.git("fetch", "-q", "origin")
    return world, away


def test_a_run_on_a_remotes_branch_names_the_one_here_that_it_can_be_merged_into(tmp_path: Path) -> None:
    world, _ = from_the_remote(tmp_path)
    through(world.inside("run", world.spec()))
    for more in ((), ("--dry-run",)):
        refused(world.inside("approve", *more), Exit.USAGE, "refs/remotes/origin/main", "--into main")
    through(world.inside("approve", "--into", "main"))
    assert world.show("main", "calc.py") == FIXED


def test_a_run_on_a_remotes_branch_is_deployed(tmp_path: Path) -> None:
    world, _ = from_the_remote(tmp_path, method="command", command=f"git show $RELAY_SHA:calc.py > {tmp_path}/out")
    through(world.inside("run", world.spec()))
    through(world.inside("approve"))
    assert (tmp_path / "out").read_text() == FIXED


@pytest.mark.parametrize("where", ["a remote's branch", "a detached HEAD"])
def test_what_could_not_ship_by_itself_is_said_before_anything_is_spent(tmp_path: Path, where: str) -> None:
    if where == "a remote's branch":
        world, _ = from_the_remote(tmp_path, approval="auto")
    else:
        world, _ = lined_up(tmp_path, approval="auto")
        world.git("switch", "-q", "--detach")
    refused(world.inside("run", world.spec()), Exit.USAGE, "nowhere to ship", "--base BRANCH", 'approval = "manual"')
    nothing_started(world)
    through(world.inside("run", world.spec(), "--base", "main"))
    assert world.show("main", "calc.py") == FIXED


def test_a_rehearsal_of_a_commit_that_is_gone_says_which(tmp_path: Path) -> None:
    world, _ = accepted(tmp_path)
    for ref in world.refs("refs/relay/") | world.refs("refs/heads/relay/"):
        world.git("update-ref", "-d", ref)
    world.git("reflog", "expire", "--expire=now", "--all")
    world.git("gc", "-q", "--prune=now")
    refused(world.inside("approve", "--dry-run"), Exit.GATE, "is not in the repository")

"""Landing on a branch that somebody works on: it moves whole, from where it was, or not at all."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import repository
from relay.ways import landing
from relay.ways.base import MovedError
from tests.loop.faults import refused, stands, stopped, through, untouched
from tests.world import BROKEN, FIXED, World

MAIN = "refs/heads/main"


def accepted(folder: Path) -> World:
    """Make a world whose run is accepted, with a branch `other` that changes README.md, and so does main."""
    world = World.simple(folder, phases=["implement"])
    world.git("branch", "other")
    world.commit({"README.md": "of main\n"}, "readme on main")
    world.git("switch", "-q", "other")
    world.commit({"README.md": "of other\n"}, "readme on other")
    world.git("switch", "-q", "main")
    through(world.inside("run", world.spec()))
    return world


def stuck(world: World, *args: str, folder: Path | None = None) -> None:
    """Run git where it ends in the middle of what was asked."""
    done = subprocess.run(["git", *args], cwd=folder or world.root, capture_output=True, check=False)
    assert done.returncode != 0


def test_a_branch_that_is_only_another_name_stays_that_and_the_right_name_is_said(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.git("symbolic-ref", "refs/heads/trunk", MAIN)
    run, legs = world.only_run(), len(world.legs())
    with untouched(world):
        refused(world.inside("approve", run, "--into", "trunk"), 2, "another name of `main`", "--into main")
    assert len(world.legs()) == legs, "nothing was approved"
    through(world.inside("approve", run, "--into", "main"))
    assert world.git("symbolic-ref", "refs/heads/trunk") == MAIN
    assert world.show("trunk", "calc.py") == FIXED


def _rebase(world: World, folder: Path) -> None:
    stuck(world, "rebase", "other", folder=folder)


def _rebase_by_patches(world: World, folder: Path) -> None:
    stuck(world, "rebase", "--apply", "other", folder=folder)


def _rebase_of_what_stands_on_it(world: World, folder: Path) -> None:
    world.git("switch", "-q", "-c", "above", folder=folder)
    stuck(world, "rebase", "--update-refs", "other", folder=folder)


def _bisect(world: World, folder: Path) -> None:
    world.git("bisect", "start", "HEAD", "HEAD~2", folder=folder)


def _merge(world: World, folder: Path) -> None:
    stuck(world, "merge", "other", folder=folder)


def _merge_without_conflict(world: World, folder: Path) -> None:
    world.git("merge", "--no-commit", "-s", "ours", "other", folder=folder)


def _pick(world: World, folder: Path) -> None:
    stuck(world, "cherry-pick", "other", folder=folder)


def _revert(world: World, folder: Path) -> None:
    world.git("revert", "--no-commit", "HEAD~1", folder=folder)


def _patches(world: World, folder: Path) -> None:
    patch = world.git("format-patch", "-1", "--stdout", "other") + "\n"
    (world.folder / "a.patch").write_text(patch)
    stuck(world, "am", str(world.folder / "a.patch"), folder=folder)


UNDERWAY: list[tuple[Callable[[World, Path], None], str, tuple[str, ...]]] = [
    (_rebase, "rebase", ("rebase", "--abort")),
    (_rebase_by_patches, "rebase", ("rebase", "--abort")),
    (_rebase_of_what_stands_on_it, "rebase", ("rebase", "--abort")),
    (_bisect, "bisect", ("bisect", "reset")),
    (_merge, "merge", ("merge", "--abort")),
    (_merge_without_conflict, "merge", ("merge", "--abort")),
    (_pick, "cherry-pick", ("cherry-pick", "--abort")),
    (_revert, "revert", ("revert", "--abort")),
    (_patches, "am", ("am", "--abort")),
]


@pytest.mark.parametrize(("begin", "name", "end"), UNDERWAY, ids=[begin.__name__ for begin, _, _ in UNDERWAY])
@pytest.mark.parametrize("linked", [False, True], ids=["main", "linked"])
def test_what_a_person_is_in_the_middle_of_on_the_branch_is_not_disturbed(
    tmp_path: Path, begin: Callable[[World, Path], None], name: str, end: tuple[str, ...], *, linked: bool
) -> None:
    world = accepted(tmp_path)
    folder = tmp_path / "there" if linked else world.root
    if linked:
        world.git("switch", "-q", "--detach")
        world.git("worktree", "add", "-q", str(folder), "main")
    begin(world, folder)
    state = {path: stands(path) for path in sorted(folder.rglob("*")) if ".git" not in path.parts}
    with untouched(world):
        ran = world.inside("approve")
        stopped(ran, 4, f"`{folder}` is in the middle of a {name} on `main`", f"git -C {folder} {' '.join(end[:1])}")
    assert {path: stands(path) for path in sorted(folder.rglob("*")) if ".git" not in path.parts} == state
    world.git(*end, folder=folder)
    through(world.inside("approve", world.only_run()))
    assert world.show("main", "calc.py") == FIXED


def test_a_branch_that_two_checkouts_have_moves_under_neither(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    there = tmp_path / "there"
    world.git("worktree", "add", "-q", "--force", str(there), "main")
    with untouched(world):
        stopped(world.inside("approve"), 4, f"checked out in `{world.root}` and `{there}`", "switch --detach")
    world.git("switch", "-q", "--detach", folder=there)
    through(world.inside("approve", world.only_run()))
    assert ((world.root / "calc.py").read_text(), (there / "calc.py").read_text()) == (FIXED, BROKEN)


def test_the_persons_head_has_one_more_entry_and_all_else_that_git_remembers_stays(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.git("update-ref", "ORIG_HEAD", "HEAD~1")
    before = (world.git("rev-parse", "ORIG_HEAD"), world.git("reflog", "--format=%H"))
    through(world.inside("approve"))
    assert world.git("rev-parse", "ORIG_HEAD") == before[0]
    assert world.git("reflog", "--format=%H") == f"{world.git('rev-parse', 'main')}\n{before[1]}"
    assert world.git("reflog", "-1", "--format=%gs", "main") == "relay: shipped"
    assert world.git("status", "--porcelain") == ""


@pytest.mark.parametrize("here", [True, False], ids=["checked-out", "elsewhere"])
def test_a_branch_that_somebody_took_back_is_not_moved_over_it(tmp_path: Path, *, here: bool) -> None:
    world = accepted(tmp_path)
    was, commit = world.git("rev-parse", "main"), world.git("rev-parse", f"relay/{world.only_run()}")
    if not here:
        world.git("switch", "-q", "other")
    world.git("reset", "-q", "--hard", "main~1") if here else world.git("branch", "-q", "-f", "main", "main~1")
    with untouched(world), pytest.raises(MovedError, match="moved in the same moment"):
        landing.land(repository.discover(world.root), MAIN, commit, was)


MEANWHILE = [
    ("git update-ref refs/heads/main {was}~1", "moved in the same moment"),
    ("git symbolic-ref HEAD refs/heads/other", "left `main` in the same moment"),
    ("mkdir -p .git/rebase-merge; echo refs/heads/main > .git/rebase-merge/head-name", "in the middle of a rebase"),
]


@pytest.mark.parametrize(("deed", "why"), MEANWHILE)
def test_what_happens_to_the_branch_while_the_checkout_goes_along_brings_it_back(
    tmp_path: Path, deed: str, why: str
) -> None:
    world = accepted(tmp_path)
    was, commit = world.git("rev-parse", "main"), world.git("rev-parse", f"relay/{world.only_run()}")
    world.git("config", "core.attributesFile", str(tmp_path / "attributes"))
    (tmp_path / "attributes").write_text("calc.py filter=meanwhile\n")
    alone = "unset GIT_DIR GIT_COMMON_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_CONFIG_COUNT"
    program = f"#!/bin/sh\ncat\n{alone}\ncd {world.root}\n{deed.format(was=was)}\n"
    (tmp_path / "filter").write_text(program)
    (tmp_path / "filter").chmod(0o755)
    world.git("config", "filter.meanwhile.smudge", str(tmp_path / "filter"))
    world.write({"README.md": "mine\n"})
    before = ((world.root / "calc.py").read_bytes(), world.git("ls-files", "-s"))
    with pytest.raises(RelayError, match=why):
        landing.land(repository.discover(world.root), MAIN, commit, was)
    assert ((world.root / "calc.py").read_bytes(), world.git("ls-files", "-s")) == before
    assert (world.root / "README.md").read_text() == "mine\n"
    assert world.git("rev-parse", "main") in {was, world.git("rev-parse", f"{was}~1")}, "not where it was to go"


def test_a_checkout_that_went_along_before_relay_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.git("read-tree", "-m", "-u", "HEAD", f"relay/{world.only_run()}")
    assert world.git("status", "--porcelain") == "M  calc.py"
    through(world.inside("approve"))
    assert world.git("status", "--porcelain") == ""
    assert world.show("main", "calc.py") == FIXED


def test_a_checkout_with_a_part_of_the_files_and_a_split_index_stays_one(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.git("sparse-checkout", "set", "--no-cone", "/README.md")
    world.git("update-index", "--split-index")
    through(world.inside("approve"))
    assert not (world.root / "calc.py").exists()
    assert world.git("status", "--porcelain") == ""
    assert world.show("main", "calc.py") == FIXED


def test_a_linked_checkout_of_a_repository_without_a_main_one_goes_along(tmp_path: Path) -> None:
    world = World.simple(tmp_path, phases=["implement"])
    bare, there = tmp_path / "bare.git", tmp_path / "there"
    world.git("clone", "-q", "--bare", str(world.root), str(bare), folder=tmp_path)
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        world.git("config", name, value, folder=bare)
    world.git("worktree", "add", "-q", str(there), "main", folder=bare)
    script = tmp_path / "agents" / "implementer.py"
    script.write_text(script.read_text().replace(str(world.runs), str(bare / "relay" / "runs")))
    through(world.inside("run", world.spec(), folder=there))
    through(world.inside("approve", folder=there))
    assert (there / "calc.py").read_text() == FIXED
    assert world.git("status", "--porcelain", folder=there) == ""

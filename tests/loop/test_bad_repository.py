"""Repositories that are not what Relay was made for: refused before anything starts, or carried as they are."""

import os
from pathlib import Path

import pytest

from tests.loop.faults import nothing_started, refused, stopped, through, untouched, worktrees
from tests.world import BROKEN, FIXED, World


def _bare(world: World) -> Path:
    hub = world.folder / "hub.git"
    world.git("clone", "-q", "--bare", str(world.root), str(hub), folder=world.folder)
    return hub


# --- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [("run", "x.md"), ("status",), ("resume",), ("approve",), ("stop",)])
def test_outside_a_repository_every_verb_says_so(world: World, verb: tuple[str, ...]) -> None:
    message = refused(world.relay(*verb, folder=world.folder / "agents"), 2, "relay -C DIR", "git init")
    assert "not in a git repository" in message


def test_a_folder_that_is_not_there_is_refused(world: World) -> None:
    refused(world.relay("-C", world.folder / "none", "status"), 2, "there is no folder", "none")


def test_a_repository_without_a_commit_is_refused(world: World, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    world.git("init", "-q", str(empty), folder=tmp_path)
    (empty / "calc.py").write_text(BROKEN)
    before = sorted(path.name for path in (empty / ".git").iterdir())
    refused(world.relay("run", world.spec(), folder=empty), 2, "no commits yet", "git commit")
    assert sorted(path.name for path in (empty / ".git").iterdir()) == before
    assert worktrees() == []


@pytest.mark.parametrize("how", ["spec", "option", "relay.toml"])
def test_a_base_that_does_not_exist_is_refused_with_what_was_meant(world: World, how: str) -> None:
    spec, options = world.spec(), ["--base", "mian"]
    if how == "spec":
        spec, options = world.spec("+++\nbase = 'mian'\n+++\n" + spec.read_text()), []
    if how == "relay.toml":
        world.save(base="mian")
        options = []
    with untouched(world):
        refused(world.relay("run", *options, spec), 2, "base `mian` does not exist", "did you mean `main`?")
    nothing_started(world)


def test_a_base_that_could_be_an_option_or_an_expression_is_refused(world: World) -> None:
    for name in ("--all", "main..main", "a b", "HEAD@{1}", ""):
        world.save(base=name)
        with untouched(world):
            refused(world.inside("run", world.spec()), 2, "base")
    nothing_started(world)


# --- unusual, and carried -----------------------------------------------------------------------------------------


def test_a_detached_head_runs_and_ships_only_into_a_branch_that_is_named(world: World) -> None:
    world.git("switch", "-q", "--detach")
    with untouched(world):
        through(world.relay("run", world.spec()))
        run = world.only_run()
        refused(world.relay("approve", run), 2, "detached HEAD", "--into BRANCH")
        refused(world.relay("approve", run, "--into", "nowhere"), 2, "no branch `nowhere`")
    through(world.relay("approve", run, "--into", "main"))
    assert world.show("main", "calc.py") == FIXED


def test_a_dirty_checkout_runs_and_the_paths_the_run_will_not_see_are_named(world: World) -> None:
    world.write(
        {"README.md": "half a sentence", "new.txt": "unknown\n", "staged.txt": "staged\n", "x.log": "ignored\n"}
    )
    world.git("add", "staged.txt")
    with untouched(world):
        ran = world.relay("run", world.spec())
        through(ran)
    for path in ("README.md", "new.txt", "staged.txt"):
        assert f"  {path}\n" in ran.err
    assert "x.log" not in ran.err
    assert "does not see what is not committed" in ran.err
    through(world.relay("approve"))
    assert (world.root / "README.md").read_text() == "half a sentence"
    assert world.git("status", "--porcelain") == " M README.md\nA  staged.txt\n?? new.txt"
    assert (world.root / "calc.py").read_text() == FIXED


def test_a_dirty_file_that_the_run_changed_too_is_not_overwritten(world: World) -> None:
    world.write({"calc.py": "my own idea\n"})
    through(world.relay("run", world.spec()))
    with untouched(world):
        stopped(world.relay("approve"), 4, "calc.py", "relay approve")
    world.git("checkout", "-q", "calc.py")
    through(world.relay("approve"))
    assert (world.root / "calc.py").read_text() == FIXED


def test_a_bare_hub_runs_from_the_base_commit_and_ships_into_its_branch(world: World) -> None:
    hub = _bare(world)
    ran = world.relay("-C", hub, "run", world.spec(), folder=world.folder)
    through(ran)
    through(world.relay("-C", hub, "approve", folder=world.folder))
    assert world.git("show", "main:calc.py", folder=hub) + "\n" == FIXED
    assert world.git("config", "core.bare", folder=hub) == "true"
    assert worktrees() == []


def test_a_linked_worktree_of_a_bare_hub_is_a_checkout_like_any_other(world: World) -> None:
    hub = _bare(world)
    linked = world.folder / "linked"
    world.git("worktree", "add", "-q", str(linked), "main", folder=hub)
    through(world.relay("run", world.spec(), folder=linked))
    through(world.relay("approve", folder=linked))
    assert (linked / "calc.py").read_text() == FIXED
    assert world.git("status", "--porcelain", folder=linked) == ""


def _separate(world: World) -> Path:
    """Put the git directory elsewhere, as `git init --separate-git-dir` does; only the checkout knows where."""
    world.git("init", "-q", "--separate-git-dir", str(world.folder / "kept.git"))
    return world.folder / "kept.git"


def test_a_git_directory_elsewhere_gets_no_files_and_its_checkout_goes_along(world: World) -> None:
    kept = _separate(world)
    through(world.relay("run", world.spec()))
    through(world.relay("approve"))
    assert (world.root / "calc.py").read_text() == FIXED
    assert world.git("status", "--porcelain") == ""
    assert not (kept / "calc.py").exists()


def test_a_checkout_that_git_cannot_find_is_not_left_behind_by_its_branch(world: World) -> None:
    kept = _separate(world)
    linked = world.folder / "linked"
    world.git("worktree", "add", "-q", "-b", "other", str(linked))
    through(world.relay("run", "--base", "main", world.spec(), folder=linked))
    stopped(world.relay("approve", folder=linked), 4, "approve it from that checkout")
    assert world.git("status", "--porcelain") == ""
    assert not (kept / "calc.py").exists()
    through(world.relay("approve"))
    assert (world.root / "calc.py").read_text() == FIXED


@pytest.mark.parametrize("name", [" a\nb ", "-'käse' \"$HOME;true\" *?[x]"])
def test_a_repository_at_an_odd_path_is_carried(tmp_path: Path, name: str) -> None:
    world = World.simple(tmp_path / name)
    with untouched(world):
        through(world.relay("run", world.spec()))
    through(world.relay("approve"))
    assert (world.root / "calc.py").read_text() == FIXED


def test_a_repository_whose_path_no_receipt_could_name_is_refused(world: World) -> None:
    world.root = world.root.rename(world.folder / os.fsdecode(b"caf\xe9"))
    with untouched(world):
        refused(world.relay("run", world.spec()), 2, "is not UTF-8")
    nothing_started(world)


def test_a_sha256_repository_is_carried(world: World) -> None:
    other = World.__new__(World)
    other.__dict__.update(world.__dict__)
    other.root = world.folder / "sha256"
    world.git("init", "-q", "-b", "main", "--object-format=sha256", str(other.root), folder=world.folder)
    other.git("config", "user.name", "Ada")
    other.git("config", "user.email", "ada@example.org")
    other.commit({"calc.py": BROKEN}, "first")
    other.implementer({"calc.py": FIXED})
    other.save()
    with untouched(other):
        through(other.relay("run", other.spec()))
    through(other.relay("approve"))
    assert other.show("main", "calc.py") == FIXED
    assert len(other.receipts()[0]["head"]) == 64


def test_a_branch_called_relay_leaves_no_room_for_the_runs_branch_and_the_run_goes_on(world: World) -> None:
    world.git("branch", "relay")
    with untouched(world):
        through(world.relay("run", world.spec()))
    assert set(world.refs("refs/heads/")) == {"refs/heads/main", "refs/heads/relay"}
    through(world.relay("approve"))
    assert world.show("main", "calc.py") == FIXED


def test_a_base_called_relay_is_a_branch_like_any_other(world: World) -> None:
    world.git("branch", "-m", "relay")
    with untouched(world):
        through(world.relay("run", world.spec()))
    through(world.relay("approve"))
    assert world.show("relay", "calc.py") == FIXED


def test_a_tag_of_the_bases_name_does_not_stand_in_for_the_branch(world: World) -> None:
    world.git("tag", "main", world.git("rev-list", "--max-parents=0", "HEAD"))
    with untouched(world):
        through(world.relay("run", world.spec()))
    through(world.relay("approve"))
    assert world.show("refs/heads/main", "calc.py") == FIXED

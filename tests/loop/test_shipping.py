"""Approving ships exactly what was accepted, wherever the base stands, and touches nobody's uncommitted work."""

import shutil
from pathlib import Path

import pytest

from tests.loop.faults import refused, stopped, through, untouched
from tests.world import BROKEN, FIXED, World


def accepted(folder: Path, files: dict[str, str] | None = None, **ship: object) -> World:
    """Make a world with a run whose one phase is through; `files` are what its agent writes besides calc.py."""
    world = World.simple(folder)
    world.implementer({"calc.py": FIXED, **(files or {})})
    world.save(phases=["implement"], **({"ship": ship} if ship else {}))
    through(world.inside("run", world.spec()))
    return world


def states(world: World, folder: Path | None = None) -> tuple[str, str, str]:
    """Return what git says of a checkout: its state, what is changed and what is staged."""
    commands = (("status", "--porcelain", "--ignored"), ("diff",), ("diff", "--cached"))
    status, changed, staged = (world.git(*command, folder=folder) for command in commands)
    return status, changed, staged


@pytest.mark.parametrize("method", ["merge", "fast-forward", "merge-commit"])
def test_each_method_ships_the_accepted_tree(tmp_path: Path, method: str) -> None:
    world = accepted(tmp_path, method=method)
    base, head = world.git("rev-parse", "main"), world.git("rev-parse", f"relay/{world.only_run()}")
    through(world.inside("approve"))
    shipped, *parents = world.git("rev-list", "--parents", "-1", "main").split()
    assert parents == ([base, head] if method == "merge-commit" else [base])
    assert (shipped == head) == (method == "fast-forward")
    assert world.git("rev-parse", "main^{tree}") == world.git("rev-parse", f"{head}^{{tree}}")
    assert (world.root / "calc.py").read_text() == FIXED
    assert world.git("status", "--porcelain") == ""


def test_uncommitted_work_beside_the_change_stays_as_it_is(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.write({"README.md": "Changed and staged\n"})
    world.git("add", "README.md")
    world.write({"README.md": "Changed again\n", "notes.txt": "mine\n", "trace.log": "ignored\n"})
    before = states(world)
    through(world.inside("approve"))
    assert states(world) == before
    assert world.show("main", "calc.py") == FIXED
    assert (world.root / "calc.py").read_text() == FIXED


@pytest.mark.parametrize("setting", ["", "merge.autoStash=true", "merge.ff=false"])
def test_uncommitted_work_in_the_way_is_never_touched_and_the_person_decides(tmp_path: Path, setting: str) -> None:
    world = accepted(tmp_path)
    if setting:
        world.git("config", *setting.split("="))
    base, run = world.git("rev-parse", "main"), world.only_run()
    world.write({"calc.py": "# half a thought\n" + BROKEN})
    before = states(world)
    with untouched(world):
        stopped(world.inside("approve"), 4, "needs-human", "calc.py", f"relay approve {run}")
    assert (states(world), world.git("rev-parse", "main"), world.git("stash", "list")) == (before, base, "")
    with untouched(world):
        stopped(world.inside("resume"), 4, "calc.py")

    world.git("checkout", "-q", "--", "calc.py")
    through(world.inside("approve", run))
    assert world.git("rev-parse", "main^") == base
    assert (world.root / "calc.py").read_text() == FIXED
    outcomes = [(receipt["effect"] or {}).get("outcome") for receipt in world.receipts() if receipt["act"] == "ship"]
    assert outcomes == ["failed", "failed", "shipped"]


@pytest.mark.parametrize("ignored", [False, True])
def test_a_file_that_git_does_not_track_is_not_overwritten(tmp_path: Path, ignored: bool) -> None:  # noqa: FBT001 - a case
    files = {"made.gen": "by the agent\n"} | ({".gitignore": "*.log\n"} if ignored else {})
    world = World(tmp_path, {"calc.py": BROKEN, ".gitignore": "*.log\n*.gen\n" if ignored else "*.log\n"})
    world.implementer({"calc.py": FIXED, **files})
    world.save(phases=["implement"])
    through(world.inside("run", world.spec()))
    world.write({"made.gen": "by the person\n"})
    with untouched(world):
        stopped(world.inside("approve"), 4, "made.gen")
    (world.root / "made.gen").unlink()
    through(world.inside("approve"))
    assert (world.root / "made.gen").read_text() == "by the agent\n"


def test_a_base_that_nobody_has_checked_out_moves_alone(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.git("switch", "-q", "-c", "mine")
    world.write({"calc.py": "mine, and dirty\n"})
    before = states(world)
    through(world.inside("approve"))
    assert states(world) == before
    assert world.git("branch", "--show-current") == "mine"
    assert world.show("main", "calc.py") == FIXED
    assert world.show("mine", "calc.py") == BROKEN


def test_a_base_that_another_worktree_has_checked_out_takes_that_one_along(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.git("switch", "-q", "-c", "mine")
    there = tmp_path / "there"
    world.git("worktree", "add", "-q", str(there), "main")
    (there / "README.md").write_text("dirty, and beside the change\n")
    (there / "calc.py").write_text("in the way\n")
    stopped(world.inside("approve"), 4, str(there), "calc.py")
    world.git("checkout", "-q", "--", "calc.py", folder=there)
    through(world.inside("approve"))
    assert (there / "calc.py").read_text() == FIXED
    assert states(world, there)[0] == " M README.md"
    assert (world.root / "calc.py").read_text() == BROKEN
    assert states(world) == ("", "", "")


def test_a_base_checked_out_in_a_folder_that_is_gone_is_said_and_shipped_once_git_forgot_it(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.git("switch", "-q", "-c", "mine")
    world.git("worktree", "add", "-q", str(tmp_path / "there"), "main")
    shutil.rmtree(tmp_path / "there")
    stopped(world.inside("approve"), 4, str(tmp_path / "there"), "git worktree prune")
    world.git("worktree", "prune")
    through(world.inside("approve"))
    assert world.show("main", "calc.py") == FIXED


def test_it_ships_from_a_linked_worktree_as_well(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "there"))
    through(world.inside("approve", folder=tmp_path / "there"))
    assert (world.root / "calc.py").read_text() == FIXED
    assert states(world) == ("", "", "")


def test_into_another_branch_goes_the_change_and_nothing_else_that_lies_between(tmp_path: Path) -> None:
    world = World.simple(tmp_path, phases=["implement"])
    world.git("branch", "release")
    world.commit({"news.txt": "only on main\n"})
    through(world.inside("run", world.spec()))
    base, run = world.git("rev-parse", "main"), world.only_run()
    refused(world.inside("approve", run, "--into", "relase"), 2, "relase", "--into")
    assert len(world.legs()) == 1, "nothing was approved"
    through(world.inside("approve", run, "--into", "release"))
    assert world.git("rev-parse", "main") == base
    assert world.git("diff", "--name-only", "release^", "release") == "calc.py"
    assert world.git("ls-tree", "-r", "--name-only", "release", "news.txt") == ""
    assert world.receipts()[-1]["effect"]["into"] == "refs/heads/release"
    assert states(world) == ("", "", "")


def test_a_run_that_began_on_a_detached_head_ships_where_a_person_says(tmp_path: Path) -> None:
    world = World.simple(tmp_path, phases=["implement"])
    world.git("checkout", "-q", "--detach")
    through(world.inside("run", world.spec()))
    refused(world.inside("approve"), 2, "detached", "--into BRANCH")
    through(world.inside("approve", "--into", "main"))
    assert world.show("main", "calc.py") == FIXED
    assert (world.root / "calc.py").read_text() == BROKEN, "nobody's HEAD moves"


def test_commits_that_came_late_onto_the_branch_of_the_run_void_the_approval(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    base, run = world.git("rev-parse", "main"), world.only_run()
    world.git("switch", "-q", f"relay/{run}")
    late = world.commit({"calc.py": FIXED + "# late\n"})
    world.git("switch", "-q", "main")
    stopped(world.inside("approve"), 4, f"`relay/{run}` has moved since it was accepted")
    stopped(world.inside("resume"), 4, "moved")
    assert (world.git("rev-parse", "main"), world.git("rev-parse", f"relay/{run}")) == (base, late)
    world.git("branch", "-q", "-f", f"relay/{run}", f"refs/relay/{run}/01-implement")
    through(world.inside("approve"))
    assert world.show("main", "calc.py") == FIXED


def test_what_is_there_already_ships_without_an_empty_commit(tmp_path: Path) -> None:
    world = World.simple(tmp_path, phases=["implement"])
    there = world.commit({"calc.py": FIXED})
    through(world.inside("run", world.spec()))
    through(world.inside("approve"))
    assert world.git("rev-parse", "main") == there
    assert world.receipts()[-1]["effect"]["commit"] == there
    assert "no commit was made" in world.receipts()[-1]["effect"]["why"]


def test_without_its_branch_a_run_ships_all_the_same(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    world.git("branch", "-q", "-D", f"relay/{world.only_run()}")
    through(world.inside("approve"))
    assert world.show("main", "calc.py") == FIXED


def test_what_went_out_is_confirmed_or_a_person_is_told_and_it_never_goes_out_twice(tmp_path: Path) -> None:
    answers = tmp_path / "the-service-answers"
    world = accepted(tmp_path, verify=["grep -q 'return a + b' calc.py", f"test -e {answers}"])
    run = world.only_run()
    stopped(world.inside("approve"), 4, "it went out as", f"test -e {answers}")
    shipped = world.git("rev-parse", "main")
    receipt = world.receipts()[-1]
    assert (receipt["effect"]["outcome"], receipt["effect"]["commit"]) == ("unconfirmed", shipped)
    assert [check["exit"] for check in receipt["checks"]] == [0, 1]
    assert world.show("main", "calc.py") == FIXED
    stopped(world.inside("resume"), 4, "it went out as")
    stopped(world.inside("approve", run), 4, "it went out as")
    answers.touch()
    through(world.inside("resume"))
    assert world.receipts()[-1]["effect"]["outcome"] == "shipped"
    assert world.git("rev-parse", "main") == shipped
    assert world.git("rev-list", "--count", "main") == "4"


def test_with_automatic_approval_a_run_ships_by_itself_but_never_one_that_nothing_checked(tmp_path: Path) -> None:
    world = World.simple(tmp_path, phases=["implement"], ship={"approval": "auto"})
    ran = world.inside("run", world.spec())
    through(ran)
    assert "shipped" in ran.err
    assert world.show("main", "calc.py") == FIXED
    assert world.receipts()[1]["by"] == "relay, as ship.approval says"

    world = World.simple(tmp_path / "unchecked", phases=["implement"], ship={"approval": "auto"})
    ran = world.inside("run", world.spec("# Make add add\n\nNo criterion.\n"), "--unchecked")
    through(ran)
    assert "accepted (unchecked)" in ran.err
    assert world.show("main", "calc.py") == BROKEN

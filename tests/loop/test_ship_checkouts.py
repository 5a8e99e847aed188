"""Landing where a checkout is not as git leaves it: killed half-way, a file removed, files elsewhere, a disk away."""

import shutil
from pathlib import Path

from relay.errors import Exit
from tests.loop.crash import Crasher, Death
from tests.loop.faults import status, stopped, through, untouched
from tests.world import FIXED, World


def accepted(folder: Path) -> World:
    """Make a world whose run is accepted; it changes a file, and adds one."""
    world = World.simple(folder, phases=["implement"])
    world.implementer({"calc.py": FIXED, "new.py": "new = True\n"})
    through(world.inside("run", world.spec()))
    return world


def killed_before_the_branch_moves(folder: Path) -> World:
    """Let Relay die where the checkout has gone along, and the branch has not moved yet."""
    world, kept = accepted(folder / "world"), folder / "kept"
    (folder / "beside").mkdir()
    shutil.copytree(world.root, kept, symlinks=True)
    with Crasher(folder / "beside") as crasher:
        end = crasher.relay(world.root, "approve", watch=True)
        [moves] = [point.number for point in end.points if point.name.startswith("move ")]
        shutil.rmtree(world.root)
        shutil.copytree(kept, world.root, symlinks=True)
        assert crasher.relay(world.root, "approve", death=Death(moves, "before")).code == -9
    assert world.git("status", "--porcelain") == "M  calc.py\nA  new.py"
    return world


def test_a_checkout_that_went_along_with_what_never_went_out_is_taken_back(tmp_path: Path) -> None:
    world = killed_before_the_branch_moves(tmp_path)
    world.write({"README.md": "mine\n"})
    through(world.inside("reject", world.only_run(), "--why", "not like this"))
    assert world.git("status", "--porcelain") == " M README.md"
    assert not (world.root / "new.py").exists()
    [effect] = [receipt["effect"] for receipt in world.receipts() if receipt["act"] == "ship"]
    assert effect["why"] == "it was cut short, and nothing went out"


def test_a_checkout_that_a_person_worked_on_since_it_went_along_stays_and_that_is_said(tmp_path: Path) -> None:
    world = killed_before_the_branch_moves(tmp_path)
    world.write({"calc.py": "mine\n"})
    before = status(world)
    ran = world.inside("reject", world.only_run(), "--why", "not like this")
    through(ran)
    assert "on the way" in ran.err
    assert status(world) == before
    assert (world.root / "calc.py").read_text() == "mine\n"


def test_after_such_a_death_the_same_approval_ships_once(tmp_path: Path) -> None:
    world = killed_before_the_branch_moves(tmp_path)
    base = world.git("rev-parse", "main")
    through(world.inside("approve"))
    assert world.git("rev-parse", "main^") == base
    assert world.git("status", "--porcelain") == ""
    assert world.show("main", "calc.py") == FIXED


def test_a_file_that_a_person_removed_is_not_brought_back(tmp_path: Path) -> None:
    world = accepted(tmp_path)
    (world.root / "calc.py").unlink()
    with untouched(world):
        stopped(world.inside("approve"), Exit.HUMAN, "without the file `calc.py`", "restore FILE")
    world.git("restore", "calc.py")
    through(world.inside("approve"))
    assert world.show("main", "calc.py") == FIXED


def test_a_checkout_whose_files_lie_elsewhere_goes_along_there(tmp_path: Path) -> None:
    world, elsewhere = accepted(tmp_path), tmp_path / "elsewhere"
    shutil.copytree(world.root, elsewhere, ignore=shutil.ignore_patterns(".git"))
    world.git("config", "core.worktree", str(elsewhere))
    before = (world.root / "calc.py").read_text()
    through(world.inside("approve"))
    assert (elsewhere / "calc.py").read_text() == FIXED
    assert (world.root / "calc.py").read_text() == before
    assert world.git("status", "--porcelain") == ""


def test_a_submodule_that_lands_its_own_change_goes_along_there(tmp_path: Path) -> None:
    inner, outer = World.simple(tmp_path / "inner", phases=["implement"]), World(tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "-b", "main", str(inner.root), "lib")
    there = outer.root / "lib"
    inner.git("config", "user.name", "Ada", folder=there)
    inner.git("config", "user.email", "ada@example.org", folder=there)
    script = inner.folder / "agents" / "implementer.py"
    script.write_text(script.read_text().replace(str(inner.runs), str(outer.root / ".git/modules/lib/relay/runs")))
    through(inner.inside("run", inner.spec(), folder=there))
    through(inner.inside("approve", folder=there))
    assert (there / "calc.py").read_text() == FIXED
    assert inner.git("status", "--porcelain", folder=there) == ""


def test_a_locked_checkout_that_is_not_there_is_told_how_to_be_let_go(tmp_path: Path) -> None:
    world, away = accepted(tmp_path), tmp_path / "stick"
    world.git("switch", "-q", "-c", "feature")
    world.git("worktree", "add", "-q", str(away), "main")
    world.git("worktree", "lock", str(away))
    shutil.rmtree(away)
    stopped(world.inside("approve"), Exit.HUMAN, "is locked", f"git worktree unlock {away} && git worktree prune")
    world.git("worktree", "unlock", str(away))
    world.git("worktree", "prune")
    through(world.inside("approve"))
    assert world.show("main", "calc.py") == FIXED

"""A fresh worktree is made fit to work in, for workers and judges alike, and what that needs is never committed."""

import json
from pathlib import Path

from tests.loop.faults import stopped, through, worktrees
from tests.world import FIXED, World

NEEDS = "test -f .env.test -a -f local/key.pem -a -f deps/lib.txt -a -f built.txt"


def project(folder: Path) -> World:
    """Make a repository whose tests need what git does not track; a check of the spec and the worker look for it."""
    ignored = "*.log\n.env.test\nlocal/\ndeps/\n"
    world = World.simple(folder)
    world.commit({".gitignore": ignored, ".worktreeinclude": "local/*.pem\n"})
    world.write({".env.test": "KEY=1\n", "local/key.pem": "secret\n", "local/big.bin": "no\n", "deps/lib.txt": "lib\n"})
    world.shell("implementer", f"{NEEDS} && sed -i 's/a - b/a + b/' calc.py", phase="implement", reply="exit")
    return world


def spec(world: World) -> Path:
    return world.spec(f"# Make add add\n\n## Acceptance\n\n- it adds: `{NEEDS} && grep -q 'a + b' calc.py`\n")


def test_copies_links_and_commands_make_every_worktree_fit_and_stay_out_of_the_commit(tmp_path: Path) -> None:
    world = project(tmp_path)
    setup = ["cat .env.test > built.txt", "! test -e local/big.bin"]
    world.save(worktree={"copy": [".env.test"], "link": ["deps"], "setup": setup})
    through(world.inside("run", spec(world)))
    assert [receipt["score"] for receipt in world.receipts()] == ["1/1", None, "1/1"]
    head = world.receipts()[0]["head"]
    assert [change["path"] for change in world.receipts()[0]["changed"]] == ["calc.py"]
    assert world.git("diff", "--name-only", "main", head) == "calc.py"
    log = world.text("01-implement", "setup.log")
    for line in ("copied .env.test", "copied local/key.pem", "linked deps", "$ cat .env.test > built.txt", "exited 0"):
        assert line in log, (line, log)
    assert worktrees() == []
    assert (world.root / "deps" / "lib.txt").read_text() == "lib\n", "what was linked outlives the worktree"
    through(world.inside("approve"))
    assert (world.root / "calc.py").read_text() == FIXED


def test_a_submodule_is_there_when_the_settings_ask_for_it(tmp_path: Path) -> None:
    library = World(tmp_path / "library", {"lib.txt": "lib\n"})
    world = World.simple(tmp_path / "user")
    world.git("config", "--global", "protocol.file.allow", "always")
    world.git("submodule", "--quiet", "add", str(library.root), "lib")
    world.git("commit", "-q", "-m", "a library")
    world.shell("implementer", "cat lib/lib.txt && sed -i 's/a - b/a + b/' calc.py", phase="implement", reply="exit")
    world.save(worktree={"submodules": True})
    text = "# Make add add\n\n## Acceptance\n\n- it adds: `grep -q lib lib/lib.txt && grep -q 'a + b' calc.py`\n"
    through(world.inside("run", world.spec(text)))
    assert [change["path"] for change in world.receipts()[0]["changed"]] == ["calc.py"]
    assert worktrees() == []
    through(world.inside("approve"))
    assert (world.root / "lib" / "lib.txt").read_text() == "lib\n"


def test_a_set_up_that_fails_is_no_fault_of_the_agent_which_never_starts(tmp_path: Path) -> None:
    world, ready, ran_once = World.simple(tmp_path), tmp_path / "ready", tmp_path / "ran"
    world.shell("implementer", f"touch {ran_once}; sed -i 's/a - b/a + b/' calc.py", phase="implement", reply="exit")
    world.save(worktree={"setup": ["echo from the set-up", f"test -e {ready} || {{ echo the reason; exit 3; }}"]})
    ran = world.inside("run", world.spec())
    stopped(ran, 4, "needs-human", "exited 3", f"relay resume {world.only_run()}")
    [receipt] = world.receipts()
    assert (receipt["ended_by"], receipt["head"], receipt["prompt_sha256"]) == ("setup", receipt["start"], None)
    assert not ran_once.exists()
    log = world.text("01-implement", "setup.log")
    assert "from the set-up" in log
    assert "the reason" in log
    stopped(world.inside("resume"), 4, "exited 3")
    ready.touch()
    through(world.inside("resume"))
    assert ran_once.exists()
    ended = [(receipt["leg"], receipt["ended_by"]) for receipt in world.receipts()]
    assert ended[:5] == [
        ("01-implement", "setup"),
        ("02-go", None),
        ("03-implement", "setup"),
        ("04-go", None),
        ("05-implement", "reply"),
    ]


def test_what_is_to_be_copied_or_linked_and_is_not_there_is_named(tmp_path: Path) -> None:
    for number, (key, text) in enumerate([("copy", "no ignored file"), ("link", "has no such path")]):
        world = World.simple(tmp_path / str(number), worktree={key: ["absent.env"]})
        stopped(world.inside("run", world.spec()), 4, f"`{key}` names `absent.env`", text)


def test_a_set_up_that_does_not_end_is_ended(tmp_path: Path) -> None:
    world = World.simple(tmp_path, worktree={"setup": ["sleep 600"], "minutes": 0.01})
    stopped(world.inside("run", world.spec()), 4, "`sleep 600` was ended: timeout")
    assert world.receipts()[0]["ended_by"] == "setup"


def test_a_set_up_that_fails_in_the_clean_checkout_of_a_judge_is_sealed_as_such(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = f'case "$PWD" in *.check) test -e {ready};; esac'
    world = World.simple(tmp_path, worktree={"setup": [command]})
    stopped(world.inside("run", world.spec()), 4, "needs-human", "set-up failed in a clean checkout")
    assert [receipt["ended_by"] for receipt in world.receipts()] == ["reply", "reply", "setup"]
    assert json.loads(world.text("03-acceptance"))["verdict"] == "inconclusive"
    ready.touch()
    through(world.inside("resume"))
    assert worktrees() == []


def test_a_base_that_cannot_be_set_up_costs_no_leg_and_excuses_no_red_check(tmp_path: Path) -> None:
    setup = 'case "$PWD" in *.base) exit 3;; esac'
    world = World.simple(tmp_path, worktree={"setup": [setup]}, checks={"clean": "! grep -n boom calc.py"})
    world.implementer({"calc.py": FIXED + "# boom\n"}, {"calc.py": FIXED})
    through(world.inside("run", world.spec()))
    assert [leg.name for leg in world.legs()][:3] == ["01-implement", "02-implement", "03-review"]
    [check] = world.receipts()[0]["checks"]
    assert (check["exit"], check["base_exit"]) == (1, None)

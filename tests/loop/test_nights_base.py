"""The base of a night is settled when it begins: what a person does in the checkout meanwhile neither moves nor hides.

The command that confirms a shipment stands for the person here: it runs between two runs of the night, by itself.
"""

from pathlib import Path

import pytest

from relay.errors import Exit
from tests.loop import dusk
from tests.loop.dusk import MENDED, Bell, items, newest, queued, runs, task, went
from tests.loop.faults import refused, stopped
from tests.world import World

BROKEN = "echo 'x = [' > relay.toml && git commit -qam oops"


def lined(world: World, meanwhile: str, **tables: object) -> None:
    """List three specs that ship by themselves, and let a person type something once the first is out."""
    first = world.folder / "first"
    once = f"test -e {first} || {{ touch {first}; cd {world.root} && {meanwhile}; }}"
    dusk.short(world, f"{MENDED}; echo done > $RELAY_RUN.txt")
    world.commit({f"tasks/t{n}.md": task(f"Task {n}") for n in (1, 2, 3)})
    ship = {"approval": "auto", "verify": [once]}
    world.save(phases=["implement"], queue="tasks/*.md", ship=ship, **tables)
    world.git("branch", "older", world.git("rev-list", "--max-parents=0", "HEAD"))


@pytest.mark.parametrize(
    "meanwhile",
    ["git checkout -q older", "git checkout -q --detach older", "echo '# thinking' >> relay.toml"],
    ids=["another branch", "no branch", "an edit that is not committed"],
)
def test_whatever_is_checked_out_meanwhile_the_night_takes_all_that_the_base_lists(
    world: World, meanwhile: str
) -> None:
    lined(world, meanwhile, base="main")
    went(world.inside("nightly"))
    assert items(world) == [("started", name, "shipped") for name in ("t1", "t2", "t3")]
    assert (newest(world)["ended_by"], newest(world)["base"]) == ("done", "refs/heads/main")


def test_where_no_base_is_written_a_night_stays_on_the_branch_on_which_it_began_and_says_so(world: World) -> None:
    bell = Bell(world.folder)
    lined(world, "git checkout -q -b feature && git commit -q --allow-empty -m 'my own work'")
    mine = "refs/heads/feature"
    ran = went(world.inside("nightly"))
    assert items(world) == [("started", name, "shipped") for name in ("t1", "t2", "t3")]
    assert world.git("log", "-1", "--format=%s", mine) == "my own work", "nothing was shipped into it"
    out = world.git("ls-tree", "--name-only", "main").splitlines()
    assert [name.split("-")[2] for name in out if name.endswith(".txt")] == ["t1.txt", "t2.txt", "t3.txt"]
    for said in (ran.out, bell.text):
        assert said.count("shipped into main") == len(items(world))
    assert "shipped into main" in world.inside("report").out


def test_a_night_that_begins_on_no_branch_stays_at_its_commit_and_its_runs_are_of_no_branch(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    world.git("checkout", "-q", "--detach")
    went(world.inside("nightly"))
    assert newest(world)["base"] == world.git("rev-parse", "HEAD")
    assert "base a detached HEAD at" in world.inside("show", world.only_run()).out
    refused(world.inside("approve"), Exit.USAGE, "--into BRANCH")


def test_a_config_that_breaks_in_the_midst_ends_the_night_and_what_it_did_not_come_to_is_told(world: World) -> None:
    bell = Bell(world.folder)
    lined(world, BROKEN)
    ran = world.inside("nightly")
    assert ran.code == Exit.USAGE, ran
    assert newest(world)["ended_by"] == "preflight"
    assert "relay.toml" in newest(world)["reason"]
    assert items(world) == [("started", "t1", "shipped"), ("skipped", "t2", ""), ("skipped", "t3", "")]
    assert all("relay.toml" in item["reason"] for item in newest(world)["items"][1:])
    for name in ("tasks/t2.md", "tasks/t3.md"):
        assert name in bell.text
        assert name in ran.out


def test_what_a_broken_config_left_is_taken_by_the_next_night(world: World) -> None:
    lined(world, BROKEN)
    stopped(world.inside("nightly"), Exit.USAGE)
    world.git("revert", "--no-edit", "HEAD")
    went(world.inside("nightly"))
    assert items(world) == [("started", "t2", "shipped"), ("started", "t3", "shipped")]
    assert runs(world) == ["t1", "t2", "t3"]


def test_a_breach_that_moves_the_base_ends_the_night_and_the_next_until_it_is_set_right(world: World) -> None:
    once = world.folder / "once"
    evil = f"cd {world.root}; unset GIT_DIR; echo evil > evil.py; git add evil.py; git commit -q -m evil"
    dusk.short(world, f"if test -e {once}; then {dusk.MENDED}; else touch {once}; {evil}; fi")
    base = world.git("rev-parse", "main")
    queued(world, "One", "Two")
    for _ in range(2):
        ran = world.inside("nightly")
        assert ran.code == int(Exit.BREACH), ran
        assert [(item["did"], Path(item["spec"]).stem) for item in newest(world)["items"]][-1:] == [("skipped", "two")]
        assert "moved `main`, and nothing begins there" in newest(world)["items"][-1]["reason"]
    assert len(world.git("log", "--format=%H", f"{base}..main").split()) == 1
    world.git("reset", "-q", "--hard", base)
    assert world.inside("nightly").code == 0
    assert dusk.items(world)[-1] == ("started", "two", "accepted")


def test_a_base_that_went_once_all_was_done_is_missed_by_nobody(world: World) -> None:
    done = world.folder / "done"
    dusk.short(world, f"{MENDED}; git -C {world.root} branch -m main trunk && touch {done}")
    world.save(phases=["implement"])
    queued(world, "One")
    went(world.inside("nightly"))
    assert done.exists()
    assert newest(world)["ended_by"] == "done"

"""A spec that cannot be run is refused before anything starts; one without a criterion never counts as checked."""

import json
import os
from pathlib import Path

import pytest

from tests.loop.faults import nothing_started, refused, through, untouched
from tests.world import FIXED, World

VAGUE = "# Make add add\n\n`add` in calc.py subtracts.\n"
"""A spec without any criterion."""


def _refuses(world: World, spec: str | Path, *words: str) -> str:
    with untouched(world):
        message = refused(world.inside("run", spec), 2, *words)
    nothing_started(world)
    return message


def test_a_missing_spec_is_refused_by_name(world: World) -> None:
    assert "tasks/none.md" in _refuses(world, "tasks/none.md", "there is no spec", "relay run tasks/fix-login.md")


def test_a_folder_is_no_spec(world: World) -> None:
    _refuses(world, world.folder / "agents", "is a folder")


@pytest.mark.parametrize("content", [b"", b"\n \n\t\n", b"\xef\xbb\xbf\n"])
def test_an_empty_spec_is_refused(world: World, content: bytes) -> None:
    path = world.folder / "task.md"
    path.write_bytes(content)
    _refuses(world, path, "task.md", "the spec is empty", "## Acceptance")


def test_a_spec_of_5_mb_is_refused_with_the_limit(world: World) -> None:
    path = world.folder / "task.md"
    path.write_bytes(b"# A long story\n" + b"word " * (1 << 20))
    _refuses(world, path, "task.md", str(path.stat().st_size), str(1 << 20))


def test_a_spec_that_is_not_utf_8_is_refused_at_its_byte(world: World) -> None:
    path = world.folder / "task.md"
    path.write_bytes(b"# Caf\xe9\n")
    _refuses(world, path, "not UTF-8", "byte 5")


def test_a_spec_with_nul_is_refused_at_its_place(world: World) -> None:
    _refuses(world, world.spec("# A task\n\0\n"), "NUL", "offset 9")


def test_a_fifo_is_no_spec_and_nobody_waits_for_it(world: World) -> None:
    path = world.folder / "task.md"
    os.mkfifo(path)
    _refuses(world, path, "task.md", "not a plain file")


def test_a_link_that_leads_to_itself_is_no_spec(world: World) -> None:
    path = world.folder / "task.md"
    path.symlink_to(path)
    _refuses(world, path, "task.md")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_spec_that_may_not_be_read_is_refused(world: World) -> None:
    path = world.spec()
    path.chmod(0)
    _refuses(world, path, "task.md", "denied")


def test_front_matter_that_is_never_closed_is_refused(world: World) -> None:
    _refuses(world, world.spec("+++\nbase = 'main'\n# A task\n"), "+++")


def test_front_matter_that_is_no_toml_is_refused_with_its_line(world: World) -> None:
    _refuses(world, world.spec("+++\nbase = main\n+++\n# A task\n"), "not TOML", "line 1")


def test_an_unknown_key_in_a_spec_is_refused_with_what_was_meant(world: World) -> None:
    _refuses(world, world.spec("+++\nbudge = {usd = 3}\n+++\n# A task\n"), "`budge`", "did you mean `budget`?")


def test_a_wrong_type_in_a_spec_is_refused_with_its_place(world: World) -> None:
    _refuses(world, world.spec("+++\nbudget = {usd = 'much'}\n+++\n# A task\n"), "`budget.usd`", "expected")


def test_no_spec_at_all_is_a_matter_of_usage(world: World) -> None:
    with untouched(world):
        refused(world.relay("run"), 2, "missing argument", "relay run --help")


# --- without a criterion ------------------------------------------------------------------------------------------


def test_a_spec_without_a_criterion_is_refused(world: World) -> None:
    _refuses(world, world.spec(VAGUE), "names no criterion", "--unchecked")


def test_an_unchecked_run_says_so_everywhere(world: World) -> None:
    with untouched(world):
        ran = world.relay("run", "--unchecked", "--json", world.spec(VAGUE))
        through(ran)
        run = world.only_run()
        assert "accepted (unchecked)" in ran.err
        assert ran.events[-1]["outcome"] == "accepted (unchecked)"
        status = world.relay("status")
        assert "accepted (unchecked)" in status.out
        [line] = world.relay("status", "--json").events
        assert "unchecked" in json.dumps(line)
        assert "accepted (unchecked)" in world.relay("resume", run).err
    shipped = world.relay("approve", run)
    through(shipped)
    assert "shipped (unchecked)" in shipped.err
    assert world.show("main", "calc.py") == FIXED
    assert "shipped (unchecked)" in world.relay("status", "--all").out
    assert "nchecked" in world.git("log", "-1", "--format=%B", "main")


@pytest.mark.parametrize("verb", ["show", "trace"])
def test_the_story_of_an_unchecked_run_says_so_too(world: World, verb: str) -> None:
    through(world.relay("run", "--unchecked", world.spec(VAGUE)))
    told = world.relay(verb, world.only_run())
    through(told)
    assert "unchecked" in told.out


def test_an_unchecked_run_never_ships_by_itself(world: World) -> None:
    world.save(ship={"approval": "auto"})
    with untouched(world):
        ran = world.relay("run", "--unchecked", world.spec(VAGUE))
        through(ran)
        assert "accepted (unchecked)" in ran.err
        assert "relay approve" in ran.err
        ran = world.relay("resume", world.only_run())
        through(ran)
        assert "accepted (unchecked)" in ran.err
    assert {receipt["act"] for receipt in world.receipts()} == {None}


def test_a_checked_run_ships_by_itself_where_that_is_asked(world: World) -> None:
    world.save(ship={"approval": "auto"})
    ran = world.relay("run", world.spec())
    through(ran)
    assert "shipped" in ran.err
    assert "unchecked" not in ran.err
    assert world.show("main", "calc.py") == FIXED

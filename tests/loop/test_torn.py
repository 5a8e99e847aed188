"""What a loss of power, a copy or a deletion did to a run that stands open: refused by name, with nothing started."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.errors import Exit
from tests.loop import doomed
from tests.loop.crash import Crasher, Death, End
from tests.loop.faults import refused, through
from tests.world import World

OPEN = "02-review"


@pytest.fixture
def crasher(tmp_path: Path) -> Iterator[Crasher]:
    with Crasher(tmp_path) as made:
        yield made


@pytest.fixture
def cut(tmp_path: Path, crasher: Crasher) -> World:
    """Return a run whose first leg is sealed, and whose second one was killed before its agent began."""
    world = doomed.build(tmp_path / "world")
    doomed.doom(world)
    kept = tmp_path / "kept"
    shutil.copytree(world.folder, kept, symlinks=True)
    points = crasher.relay(world.root, "run", world.spec(), "--until", "implement").points
    shutil.rmtree(world.folder)
    kept.rename(world.folder)
    end = crasher.relay(world.root, "run", world.spec(), death=Death(len(points) + 12))
    assert end.code == -signal.SIGKILL, end
    assert [path.name for path in world.legs()] == ["01-implement", OPEN]
    assert not (world.legs()[1] / "receipt.json").exists()
    return world


def _refused(end: End, path: Path) -> None:
    """Require exit 6, the name of the file, and one error without a traceback."""
    assert end.code == Exit.GATE, end.said
    assert str(path) in end.said
    assert end.said.count("error: ") == 1
    assert "Traceback" not in end.said
    assert "bug" not in end.said


TORN = [
    "plan.toml",
    "spec.md",
    "prompts/review.md",
    "legs/01-implement/receipt.json",
    "legs/01-implement/note.md",
    "legs/01-implement/reply.json",
    "legs/02-review/start.json",
]


@pytest.mark.parametrize("name", TORN)
def test_a_file_that_was_torn_is_named_and_nothing_is_started(cut: World, crasher: Crasher, name: str) -> None:
    path = cut.runs / cut.only_run() / name
    whole = path.read_bytes()
    before = doomed.lives(cut)
    for data in (b"", whole[: len(whole) // 2], bytes(len(whole)), b"[]", b"\xff\xfe"):
        path.write_bytes(data)
        for verb in ("resume", "approve") if name.endswith(("receipt.json", "start.json")) else ("resume",):
            _refused(crasher.relay(cut.root, verb), path)
        told = crasher.relay(cut.root, "verify")
        assert told.code == Exit.GATE, told.said
        assert str(path) in told.said
    assert doomed.lives(cut) == before
    path.write_bytes(whole)
    through(cut.relay("resume"))
    assert doomed.replies(cut) == doomed.REPLIES


def test_a_lost_note_stops_the_run_until_it_is_made_again_byte_for_byte(cut: World) -> None:
    run = cut.only_run()
    note = cut.legs()[0] / "note.md"
    whole = note.read_bytes()
    note.unlink()
    before = doomed.lives(cut)
    refused(cut.relay("resume"), Exit.GATE, str(note), "relay note rebuild")
    assert doomed.lives(cut) == before
    through(cut.relay("note", "rebuild", f"{run}/01-implement"))
    assert note.read_bytes() == whole
    through(cut.relay("resume"))
    assert doomed.replies(cut) == doomed.REPLIES
    assert [leg["leg"] for leg in cut.receipts() if leg["ended_by"] == "interrupted"] == [OPEN]
    for leg in cut.legs():
        sealed = (leg / "note.md").read_bytes()
        (leg / "note.md").unlink()
        through(cut.relay("note", "rebuild", f"{run}/{leg.name}"))
        assert (leg / "note.md").read_bytes() == sealed


def test_a_copied_repository_is_refused_and_the_legs_of_the_original_are_left_alone(tmp_path: Path) -> None:
    world = doomed.build(tmp_path / "world")
    doomed.doom(world, "01-implement")
    running = world.start("run", world.spec())
    pids = doomed.await_doom(world, "01-implement", running)
    try:
        running.kill()
        running.communicate()
        copy = tmp_path / "copy"
        shutil.copytree(world.root, copy, symlinks=True)
        for verb in ("resume", "approve", "stop"):
            refused(world.relay(verb, folder=copy), Exit.GATE, str(world.root / ".git"), "copied")
        assert all(doomed.alive(pid) for pid in pids)
        assert not list((copy / ".git").glob("relay/runs/*/legs/*/receipt.json"))
        [home] = [path for path in doomed.worktrees(world) if path.endswith("/01-implement")]
        assert Path(home, "calc.py").read_text(encoding="utf-8") == doomed.HALF
        through(world.relay("resume"))
    finally:
        doomed.end(pids)
    assert doomed.replies(world) == doomed.REPLIES


@pytest.mark.parametrize("data", [None, b"", b'{"status": "done", "summ'])
def test_an_approval_without_the_reply_that_the_commit_would_quote_is_refused(world: World, data: bytes | None) -> None:
    through(world.relay("run", world.spec()))
    path = world.legs()[0] / "reply.json"
    whole = path.read_bytes()
    path.unlink() if data is None else path.write_bytes(data)
    refused(world.relay("approve"), Exit.GATE, str(path))
    assert [leg["act"] for leg in world.receipts() if leg["act"]] == []
    path.write_bytes(whole)
    through(world.relay("approve"))

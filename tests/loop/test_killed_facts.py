"""What a killed leg's receipt says of what happened around it, and what it keeps that was paid for."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.errors import Exit
from tests.loop import doomed
from tests.loop.crash import Crasher, Death
from tests.world import World


@pytest.fixture
def crasher(tmp_path: Path) -> Iterator[Crasher]:
    with Crasher(tmp_path) as made:
        yield made


def _die(crasher: Crasher, world: World, point: str) -> None:
    """Let a run die after the first call of this name; a rehearsal in a twin of the world says where that is."""
    twin = World.simple(world.folder.parent / "twin")
    for path in (world.folder / "agents").iterdir():
        text = path.read_text(encoding="utf-8").replace(str(world.folder), str(twin.folder))
        (twin.folder / "agents" / path.name).write_text(text, encoding="utf-8")
    points = crasher.relay(twin.root, "run", twin.spec()).points
    number = next(one.number for one in points if point in one.name)
    assert crasher.relay(world.root, "run", world.spec(), death=Death(number)).code == -signal.SIGKILL


def test_what_changed_while_nobody_looked_is_written_down_and_laid_at_nobodys_door(tmp_path: Path) -> None:
    world = doomed.build(tmp_path / "world")
    doomed.doom(world, "01-implement")
    running = world.start("run", world.spec())
    pids = doomed.await_doom(world, "01-implement", running)
    running.kill()
    running.communicate()
    doomed.end(pids)
    world.git("branch", "other")
    resumed = world.relay("resume")
    assert resumed.code == 0, resumed
    first = world.receipts()[0]
    assert (first["ended_by"], first["breaches"], first["drift"]) == (
        "interrupted",
        [],
        ["refs/heads/other appeared"],
    )
    assert [leg["drift"] for leg in world.receipts()[1:] if leg["drift"]] == []


def test_a_breach_that_was_found_before_the_death_is_sealed_as_one(tmp_path: Path, crasher: Crasher) -> None:
    world = World.simple(tmp_path / "world")
    crossed = f"\nwrite({{'calc.py': 'bad', {str(world.root / 'planted')!r}: 'x'}})\nreply(status='done', summary='')\n"
    world.python("implementer", crossed, phase="implement", vendor="north")
    _die(crasher, world, ".void")
    resumed = world.relay("resume")
    assert resumed.code == Exit.BREACH, resumed
    [sealed] = world.receipts()
    run = world.only_run()
    assert (sealed["ended_by"], sealed["breaches"]) == ("breach", ["checkout/planted appeared"])
    assert world.refs()[f"refs/relay/{run}/01-implement.void"] == sealed["head"]
    assert f"refs/relay/{run}/01-implement.cut" not in world.refs()
    (world.root / "planted").unlink()
    world.implementer({"calc.py": "def add(a, b):\n    return a + b\n"})
    assert world.relay("resume").code == 0
    again = world.receipts()[2]
    assert (again["phase"], again["start"]) == ("implement", sealed["start"])


def test_a_reply_that_came_before_the_death_does_not_count_but_is_kept(world: World, crasher: Crasher) -> None:
    _die(crasher, world, "refs/relay/")
    resumed = world.relay("resume")
    assert resumed.code == 0, resumed
    first, second = world.receipts()[:2]
    kept = (world.legs()[0] / "reply.json").read_bytes()
    assert json.loads(kept)["summary"] == "turn 1"
    assert (first["ended_by"], first["status"]) == ("interrupted", None)
    assert first["reply_sha256"]
    assert first["head"] == second["start"] != first["start"]
    assert world.relay("verify", world.only_run()).code == 0

"""Killed after every durable step, in run, resume and approve: the end is the one of a run that nobody disturbed."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay.errors import Exit
from tests.loop import doomed
from tests.loop.crash import Crasher, Death, End
from tests.world import FIXED, World

EARLY = doomed.LEGS[:2]
"""Legs with most of the run still to come: after two deaths out of three in them, only the next leg is awaited."""
AGAIN = doomed.LEGS[2:4]
"""Legs that do what those before them did: there, every third death is died; elsewhere every second one."""
EVERY = "RELAY_EVERY_DEATH" in os.environ
"""Whether to leave out nothing, which takes some minutes; read before the tests get an environment of their own."""
PATIENCE = 6
"""How often a person types `relay resume` at most; a run that needs more than that is stuck."""


@dataclass(frozen=True)
class Stage:
    """A repository with its agents, as it is before a run, and the means to put it back there."""

    world: World
    spec: Path
    crasher: Crasher
    folder: Path
    kept: Path

    def relay(self, *argv: str | Path, death: Death | None = None, watch: bool = False) -> End:
        """Run the command line in a child that may die."""
        return self.crasher.relay(self.world.root, *argv, death=death, watch=watch)

    def keep(self, name: str) -> None:
        """Remember how everything on the disk stands."""
        shutil.copytree(self.folder, self.kept / name, symlinks=True)

    def back(self, name: str) -> None:
        """Put everything on the disk back."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.kept / name, self.folder, symlinks=True)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Set up a run that takes a revision: its implementer is wrong the first time."""
    folder, beside = tmp_path / "stage", tmp_path / "beside"
    beside.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    world = doomed.build(folder)
    (folder / "state").mkdir()
    with Crasher(beside) as crasher:
        made = Stage(world, world.spec(), crasher, folder, tmp_path / "kept")
        made.keep("fresh")
        yield made


def _deaths(end: End) -> list[Death]:
    """Choose the deaths that leave different disks behind; two with the same disk are one and the same."""
    found = [Death(point.number, "before") for point in end.points if point.before]
    return sorted(found + [Death(point.number, "after") for point in end.points if point.after])


def _receipts(world: World) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in world.runs.glob("*/legs/*/receipt.json")}


def _started(world: World) -> bool:
    return any(not path.name.startswith(".") for path in world.runs.glob("*"))


def _resumed(stage: Stage, second: Death | None, *more: str) -> End:
    """Resume until accepted, or as far as `more` says, the first time with another death on the way."""
    end = End(-signal.SIGKILL, [], "")
    for turn in range(PATIENCE):
        verb = ("resume",) if _started(stage.world) else ("run", stage.spec)
        end = stage.relay(*verb, *more, death=second if turn == 0 else None)
        if end.code == 0:
            break
        assert end.code == -signal.SIGKILL, (turn, end)
    return end


def _as_if_nothing_happened(stage: Stage, sealed: dict[Path, bytes]) -> None:
    """Assert everything that a death must not change."""
    world = stage.world
    run = world.only_run()
    assert doomed.replies(world) == doomed.REPLIES
    assert {path: path.read_bytes() for path in sealed} == sealed
    assert world.show("main", "calc.py") == FIXED
    assert world.git("log", "--format=%s", "--grep=^Relay-Run: ", "main") == "Make add add"
    assert world.git("rev-list", "--count", "main") == "3"
    assert world.git("status", "--porcelain") == ""
    assert doomed.worktrees(stage.world) == []
    verified = stage.relay("verify", run)
    assert verified.code == 0, verified.said
    world.git("gc", "-q", "--prune=now")
    named = {leg[name] for leg in world.receipts() for name in ("start", "base", "head")}
    for oid in named:
        world.git("cat-file", "-e", oid)
    assert list(world.runs.glob(".new-*")) == []
    nonces = [json.loads(path.read_bytes())["nonce"] for path in world.runs.glob("*/legs/*/start.json")]
    assert doomed.carriers(*(f"RELAY_NONCE={nonce}" for nonce in nonces)) == []


def _so_far_as_if_nothing_happened(stage: Stage, sealed: dict[Path, bytes]) -> None:
    """Assert the same of a run that only went on for a leg or two."""
    found = doomed.replies(stage.world)
    assert found
    assert found == doomed.REPLIES[: len(found)]
    assert {path: path.read_bytes() for path in sealed} == sealed
    assert doomed.worktrees(stage.world) == []
    verified = stage.relay("verify", stage.world.only_run())
    assert verified.code == 0, verified.said


def _eve_of(stage: Stage, leg: str) -> tuple[str | Path, ...]:
    """Bring the stage to the moment before a leg, by a death there; return what then has to be typed."""
    if leg == doomed.LEGS[0]:
        return ("run", stage.spec)
    before = f"{doomed.LEGS[doomed.LEGS.index(leg) - 1]}.io"
    points = stage.relay("run", stage.spec).points
    [last] = [point.number for point in points if point.name.endswith(before)]
    stage.back("fresh")
    assert stage.relay("run", stage.spec, death=Death(last)).code == -signal.SIGKILL
    return ("resume",)


def _deaths_of(stage: Stage, leg: str, *argv: str | Path) -> list[Death]:
    """Run on to the end, and return the deaths until the next leg begins."""
    stage.keep("eve")
    undisturbed = stage.relay(*argv, watch=True)
    assert undisturbed.code == 0, undisturbed.said
    assert doomed.replies(stage.world) == doomed.REPLIES
    later = [point.number for point in undisturbed.points for name in doomed.LEGS if name > leg and name in point.name]
    return [death for death in _deaths(undisturbed) if death.number < min(later, default=1 << 30)]


@pytest.mark.parametrize("leg", doomed.LEGS)
def test_a_run_that_is_killed_anywhere_ends_as_if_nothing_had_happened(stage: Stage, leg: str) -> None:
    argv = _eve_of(stage, leg)
    deaths = list(enumerate(_deaths_of(stage, leg, *argv)))
    assert len(deaths) > 15
    stride = 1 if EVERY else 3 if leg in AGAIN else 2
    for index, death in deaths[doomed.LEGS.index(leg) % stride :: stride]:
        stage.back("eve")
        assert stage.relay(*argv, death=death).code == -signal.SIGKILL, death
        sealed = _receipts(stage.world)
        if not _started(stage.world) and index % 8 and not EVERY:
            assert doomed.worktrees(stage.world) == []
            assert stage.world.refs("refs/relay/") == {}
            continue
        second = Death(1 + 7 * index % 40, ("before", "after")[index % 2])
        if leg in EARLY and index % 3 and not EVERY:
            _resumed(stage, second, "--until", leg[3:])
            _so_far_as_if_nothing_happened(stage, sealed)
            continue
        _resumed(stage, second)
        sealed |= _receipts(stage.world)
        assert stage.relay("approve").code == 0
        _as_if_nothing_happened(stage, sealed)


def test_an_approval_that_is_killed_anywhere_ships_once(stage: Stage) -> None:
    assert stage.relay("run", stage.spec).code == 0
    stage.keep("eve")
    undisturbed = stage.relay("approve", watch=True)
    assert undisturbed.code == 0, undisturbed.said
    deaths = _deaths(undisturbed)
    assert len(deaths) > 5
    for index, (death, again) in enumerate((death, again) for death in deaths for again in ("approve", "resume")):
        stage.back("eve")
        assert stage.relay("approve", death=death).code == -signal.SIGKILL, death
        sealed = _receipts(stage.world)
        run = stage.world.only_run()
        for turn in range(PATIENCE):
            approved = any(path.parent.name.endswith("-approve") for path in _receipts(stage.world))
            second = Death(1 + 3 * index % 12) if turn == 0 else None
            end = stage.relay(again if approved else "approve", run, death=second)
            if end.code == 0:
                break
            assert end.code in {-signal.SIGKILL, Exit.HUMAN}, end
            sealed |= _receipts(stage.world)
        _as_if_nothing_happened(stage, sealed)
        shipped = [leg for leg in stage.world.receipts() if (leg["effect"] or {}).get("outcome") == "shipped"]
        assert len(shipped) == 1


@pytest.mark.parametrize("leg", doomed.LEGS)
def test_an_agent_that_outlives_its_killed_runner_is_ended_before_the_next_one_starts(tmp_path: Path, leg: str) -> None:
    world = doomed.build(tmp_path / "world")
    doomed.doom(world, leg)
    running = world.start("run", world.spec())
    pids = doomed.await_doom(world, leg, running)
    try:
        running.kill()
        running.communicate()
        assert all(doomed.alive(pid) for pid in pids)
        resumed = world.relay("resume")
        assert resumed.code == 0, resumed
        assert not any(doomed.alive(pid) for pid in pids)
    finally:
        doomed.end(pids)
    _nothing_overlaps(doomed.lives(world), leg, pids)
    assert doomed.replies(world) == doomed.REPLIES
    assert doomed.worktrees(world) == []
    assert world.show(f"relay/{world.only_run()}", "calc.py") == FIXED
    _cut_and_gone_on_from(world, leg)


def _nothing_overlaps(lives: list[doomed.Life], leg: str, pids: set[int]) -> None:
    """Assert that the last sign of the old agent is older than the first one of the next."""
    last = max(life.at for life in lives if life.pid in pids)
    first = min(life.at for life in lives if life.pid not in pids and life.leg > leg)
    assert last < first


def _cut_and_gone_on_from(world: World, leg: str) -> None:
    """Assert what the receipts say of a leg whose runner was killed, and of the one after it."""
    index = doomed.LEGS.index(leg)
    cut, after = world.receipts()[index : index + 2]
    assert (cut["leg"], cut["ended_by"], cut["kind"]) == (leg, "interrupted", after["kind"])
    assert after["phase"] == cut["phase"]
    ref = f"refs/relay/{world.only_run()}/{leg}.cut"
    if cut["kind"] == "judge":
        assert ref not in world.refs()
        assert (cut["verdict"], cut["head"]) == ("inconclusive", cut["start"])
        return
    assert world.refs()[ref] == cut["head"] == after["start"] != cut["start"]
    assert world.git("show", f"{ref}:calc.py") == doomed.HALF
    note = (world.legs()[index] / "note.md").read_text(encoding="utf-8")
    assert "this leg ended by `interrupted`; nothing in it is verified" in note
    assert "nothing in it is verified" in (world.legs()[index + 1] / "prompt.md").read_text(encoding="utf-8")

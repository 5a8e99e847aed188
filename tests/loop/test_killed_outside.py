"""Killed at every point of a push, a proposal and a deployment, and approved again: there is one of each."""

import shutil
import signal
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay.errors import Exit
from tests.forge import TOKEN, Away, Hub, Pull, lined_up
from tests.loop import doomed
from tests.loop.crash import Crasher, Death, End
from tests.world import FIXED, World

OUTSIDE = ("push ", "http ", "send ")
"""The points that change what no look at this repository's disk can tell."""
PATIENCE = 5


@dataclass
class Stage:
    """A world whose run goes out to somewhere else, with all of it on one disk that can be put back."""

    world: World
    away: Away
    hub: Hub
    crasher: Crasher
    folder: Path
    kept: Path
    pulls: list[Pull]

    def relay(self, *argv: str, death: Death | None = None, watch: bool = False) -> End:
        """Run the command line in a child that may die."""
        return self.crasher.relay(self.world.root, *argv, death=death, watch=watch)

    def ready(self, *until: str, **ship: object) -> "Stage":
        """Line the run up, bring it as far as is said, and remember how everything stands."""
        self.world.save(phases=["implement"], ship=ship)
        self.world.git("push", "-q", "origin", "main")
        self.world.spec()
        if until:
            assert self.relay(*until).code == 0
        return self.kept_as_it_is()

    def kept_as_it_is(self) -> "Stage":
        """Remember how everything stands."""
        shutil.copytree(self.folder, self.kept, symlinks=True)
        self.pulls = deepcopy(self.hub.pulls)
        return self

    def back(self) -> None:
        """Put everything back."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.kept, self.folder, symlinks=True)
        self.hub.pulls[:] = deepcopy(self.pulls)

    def deaths(self, *argv: str, settled: "Callable[[Stage], None] | None" = None) -> list[Death]:
        """Go through it once undisturbed, and choose the deaths that leave different worlds behind."""
        end = self.relay(*argv, watch=True)
        assert end.code == 0, end.said
        (settled or Stage.settled)(self)
        found = [Death(point.number, "before") for point in end.points if point.before]
        found += [Death(point.number, "after") for point in end.points if point.after]
        outside = [point.number for point in end.points if point.name.startswith(OUTSIDE)]
        found += [Death(number, when) for number in outside for when in ("before", "after")]
        return sorted(set(found))

    def settled(self) -> None:
        """Assert what an undisturbed run leaves behind, and nothing besides."""
        receipts = self.world.receipts()
        outcomes = [leg["effect"]["outcome"] for leg in receipts if leg["act"] == "ship"]
        assert outcomes[-1] in {"shipped", "proposed"}, outcomes
        assert set(outcomes[:-1]) <= {"interrupted"}, outcomes
        assert [leg["phase"] for leg in receipts if leg["ended_by"] == "reply"] == ["implement"]
        assert doomed.worktrees(self.world) == []
        verified = self.relay("verify", self.world.only_run())
        assert verified.code == 0, verified.said


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    folder, beside = tmp_path / "stage", tmp_path / "beside"
    beside.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "*")
    world, away = lined_up(folder, method="pr")
    (folder / "state").mkdir()
    with Hub(away) as hub, Crasher(beside) as crasher:
        yield Stage(world, away, hub, crasher, folder, tmp_path / "kept", [])


def _again(stage: Stage, verb: str, death: Death, index: int) -> None:
    """Die there, and go on as a person does, with one more death on the way, until it is done."""
    stage.back()
    first = verb if (stage.world.runs).exists() else "run"
    argv = (first, *([str(stage.world.spec())] if first == "run" else []))
    assert stage.relay(*argv, death=death).code == -signal.SIGKILL, death
    for turn in range(PATIENCE):
        second = Death(1 + 3 * index % 16, ("before", "after")[index % 2]) if turn == 0 else None
        end = stage.relay(verb, stage.world.only_run(), death=second)
        if end.code == 0:
            break
        assert end.code == -signal.SIGKILL or (verb == "approve" and end.code == Exit.HUMAN), (death, end)
    stage.settled()


def test_a_push_that_is_killed_anywhere_goes_out_once(stage: Stage) -> None:
    run = ("run", str(stage.world.spec()))
    stage.ready(*run, method="push")
    base = stage.away.tip()
    deaths = stage.deaths("approve")
    assert len(deaths) > 8
    for index, death in enumerate(deaths):
        _again(stage, "approve", death, index)
        assert stage.away.git("rev-list", f"{base}..main").count("\n") == 0, death
        assert stage.away.git("show", "main:calc.py") + "\n" == FIXED


def test_a_proposal_that_is_killed_anywhere_is_opened_once(stage: Stage) -> None:
    run = ("run", str(stage.world.spec()))
    stage.ready(*run, method="pr", api=stage.hub.url, auto_merge="squash")
    deaths = stage.deaths("approve")
    assert len(deaths) > 10
    for index, death in enumerate(deaths):
        _again(stage, "approve", death, index)
        [pull] = stage.hub.pulls
        assert (pull.state, pull.auto) == ("open", "SQUASH"), death
        assert stage.away.git("rev-list", f"main..{pull.head}").count("\n") == 0, death
        assert stage.world.receipts()[-1]["effect"]["commit"] == stage.away.tip(pull.head)


def test_a_rejection_that_is_killed_anywhere_closes_the_proposal_and_proposes_nothing_by_itself(stage: Stage) -> None:
    run = ("run", str(stage.world.spec()))
    stage.ready(*run, method="pr", api=stage.hub.url, auto_merge="squash")
    assert stage.relay("approve").code == 0
    shutil.rmtree(stage.kept)
    stage.kept_as_it_is()
    reject = ("reject", stage.world.only_run(), "--why", "say why in a comment")
    deaths = stage.deaths(*reject, settled=rejected)
    assert len(deaths) > 6
    for death in deaths:
        stage.back()
        assert stage.relay(*reject, death=death).code == -signal.SIGKILL, death
        assert stage.relay("status").code == 0, death
        if stage.world.receipts()[-1]["act"] != "reject":
            assert stage.relay(*reject).code == 0, death
        rejected(stage)


def rejected(stage: Stage) -> None:
    """Assert that the proposal is closed, that there is no other one, and that the run was rejected once."""
    assert [(pull.state, pull.auto) for pull in stage.hub.pulls] == [("closed", None)]
    receipts = stage.world.receipts()
    assert [receipt["act"] for receipt in receipts].count("reject") == 1
    outcomes = [receipt["effect"]["outcome"] for receipt in receipts if receipt["act"] == "ship"]
    assert set(outcomes) <= {"proposed", "withdrawn", "failed"}, outcomes
    verified = stage.relay("verify", stage.world.only_run())
    assert verified.code == 0, verified.said


def test_a_night_that_approves_itself_and_is_killed_anywhere_opens_one_proposal(stage: Stage) -> None:
    stage.ready("run", str(stage.world.spec()), "--until", "implement", method="pr", api=stage.hub.url, approval="auto")
    deaths = stage.deaths("resume")
    assert len(deaths) > 10
    for index, death in enumerate(deaths):
        _again(stage, "resume", death, index)
        assert [pull.state for pull in stage.hub.pulls] == ["open"], death


def test_a_deployment_whose_relay_is_killed_anywhere_is_run_once(stage: Stage) -> None:
    log = stage.folder / "log"
    command = f"echo $RELAY_SHA >> {log}; sleep 0.05"
    stage.ready("run", str(stage.world.spec()), method="command", command=command)
    deaths = stage.deaths("approve")
    assert len(deaths) > 10
    for index, death in enumerate(deaths):
        _again(stage, "approve", death, index)
        [sha] = log.read_text().split()
        assert stage.world.receipts()[-1]["effect"]["commit"] == sha, death

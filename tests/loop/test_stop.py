"""Stopping, pausing, extending, rehearsing; and what is refused while a leg runs."""

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.loop.faults import refused, sober, stopped, through, worktrees
from tests.world import FIXED, SAFETY, World

SHORT = ["implement", "acceptance"]

_WAITS = """
if not pathlib.Path({flag!r}).exists():
    write({{"calc.py": "half done"}})
    with open({bell!r}, "w") as bell:
        bell.write(str(os.getpid()))
    import time
    time.sleep(600)
write({{"calc.py": {fixed!r}}})
reply(status="done")
"""


class Waiting:
    """A world whose implementer writes half, rings a bell and waits to be ended; once let through, it does its work."""

    def __init__(self, folder: Path, **tables: object) -> None:
        self.world = World.simple(folder)
        self._flag, self._bell = folder / "through", folder / "bell"
        os.mkfifo(self._bell)
        text = _WAITS.format(flag=str(self._flag), bell=str(self._bell), fixed=FIXED)
        self.world.python("implementer", text, phase="implement", vendor="north")
        self.world.save(**tables)

    def let_through(self) -> None:
        self._flag.touch()

    @contextmanager
    def running(self, *argv: str | Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        """Start the loop, and wait until the agent runs; gives the loop's process and the agent's number."""
        bell = os.open(self._bell, os.O_RDONLY | os.O_NONBLOCK)
        process = self.world.start(*argv)
        try:
            ready, _, _ = select.select([bell], [], [], SAFETY)
            assert ready, process.communicate(timeout=SAFETY)
            yield process, int(os.read(bell, 100))
        finally:
            os.close(bell)
            process.terminate()  # not killed: it has to end its agent
            process.communicate(timeout=SAFETY)


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path, phases=SHORT)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Make a world of two phases."""
    return World.simple(tmp_path, phases=SHORT)


def test_while_a_leg_runs_no_act_comes_between_and_everybody_is_told_who_holds_it(waiting: Waiting) -> None:
    world = waiting.world
    spec = world.spec()
    with waiting.running("run", spec) as (process, _):
        run = world.only_run()
        acts: list[tuple[str | Path, ...]] = [
            ("approve", run),
            ("answer", run, "so"),
            ("reject", run, "--why", "so"),
            ("resume", run, "--rounds", "1"),
            ("resume", run),
            ("run", spec),
        ]
        for argv in acts:
            ran = world.inside(*argv)
            refused(ran, 75)
            assert f"{process.pid}" in ran.err or f"relay stop {run}" in ran.err, ran
        assert [leg.name for leg in world.legs(run)] == ["01-implement"]
        assert world.receipts(run) == []
        assert [path.name for path in world.runs.iterdir()] == [run], "a run that was refused leaves no trace"


def test_a_running_loop_is_stopped_from_elsewhere_and_goes_on_when_a_person_says_so(waiting: Waiting) -> None:
    world = waiting.world
    with waiting.running("run", world.spec()) as (process, agent):
        run = world.only_run()
        ran = world.relay("stop")
        through(ran)
        assert f"relay resume {run}" in ran.err
        out, err = process.communicate(timeout=SAFETY)
    assert process.returncode == 143, (out, err)
    assert b"hint: relay resume" in err
    with pytest.raises(ProcessLookupError):
        os.kill(agent, 0)
    assert [leg.name for leg in world.legs()] == ["01-implement", "02-stop"]
    [cut, stop] = world.receipts()
    assert (cut["ended_by"], stop["act"]) == ("interrupted", "stop")
    assert world.show(f"refs/relay/{run}/01-implement.cut", "calc.py") == "half done\n", "what stood there is kept"
    assert worktrees() == []
    [line] = world.inside("status", "--json").events
    assert (line["outcome"], line["next"]) == ("stopped", f"relay resume {run}")

    waiting.let_through()
    through(world.inside("resume"))
    assert [leg.name for leg in world.legs()][2:] == ["03-go", "04-implement", "05-acceptance"]
    assert "nothing in it is verified" in world.text("04-implement", "prompt.md")
    through(world.inside("approve"))
    assert world.show("main", "calc.py") == FIXED


def test_an_idle_run_is_stopped_and_resumed_and_an_accepted_one_has_nothing_to_stop(world: World) -> None:
    sober(world.inside("run", world.spec(), "--until", "implement"))
    run = world.only_run()
    through(world.inside("stop", run))
    refused(world.inside("stop", run), 2, "stopped")
    refused(world.inside("answer", run, "so"), 2, "asks nothing")
    through(world.inside("resume"))
    assert [leg.name for leg in world.legs()] == ["01-implement", "02-stop", "03-go", "04-acceptance"]
    refused(world.inside("stop", run), 2, "accepted: there is nothing to stop")
    through(world.inside("approve", run))
    refused(world.inside("stop", run), 2, "shipped")


def test_a_stopped_run_that_gets_more_goes_on(world: World) -> None:
    sober(world.inside("run", world.spec(), "--until", "implement"))
    through(world.inside("stop"))
    through(world.inside("resume", "--rounds", "1"))
    assert [leg.name for leg in world.legs()][1:] == ["02-stop", "03-extend", "04-go", "05-acceptance"]


def test_a_budget_that_is_used_up_asks_for_more_and_goes_on_with_it(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, phases=SHORT, budget={"minutes": 0.02, "usd": 1.0})
    world = waiting.world
    ran = world.inside("run", world.spec())
    run = world.only_run()
    stopped(ran, 4, "budget", f"relay resume {run} --minutes 1\n")
    assert world.receipts()[0]["ended_by"] == "budget"
    stopped(world.inside("resume"), 4, "budget")
    refused(world.inside("answer", run, "more"), 2, "--minutes")
    assert [leg.name for leg in world.legs()] == ["01-implement"]
    waiting.let_through()
    through(world.inside("resume", "--minutes", "30", "--usd", "2.5"))
    assert world.receipts()[1]["effect"] == {"minutes": "30.0", "usd": "2.5"}
    assert [leg.name for leg in world.legs()][1:] == ["02-extend", "03-implement", "04-acceptance"]
    assert world.inside("resume", "--minutes", "0").code == 2


def test_until_pauses_after_a_phase_and_resume_goes_to_the_next_pause(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.implementer({"calc.py": "def add(a, b):\n    return a + b + 0\n"}, {"calc.py": FIXED})
    world.reviser("review", path="calc.py", quote="+ 0")
    refused(world.inside("run", world.spec(), "--until", "reviw"), 2, "reviw", "review")
    assert not world.runs.exists()
    ran = world.inside("run", world.spec(), "--until", "review")
    assert (ran.code, "open" in ran.err, "relay resume" in ran.err) == (0, True, True), ran
    assert [leg.name for leg in world.legs()] == ["01-implement", "02-review"]
    sober(world.inside("resume", "--until", "review"))
    assert [leg.name for leg in world.legs()] == ["01-implement", "02-review", "03-implement", "04-review"]
    refused(world.inside("resume", "--until", "nothing"), 2, "nothing")
    through(world.inside("resume", "--until", "acceptance"))
    assert world.legs()[-1].name == "05-acceptance"


def test_an_agent_is_chosen_on_the_command_line_for_one_run(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.python("stranger", '\nreply(verdict="approve")\n', phase="elsewhere", vendor="west")
    del world.phases["elsewhere"]
    world.save()
    refused(world.inside("run", world.spec(), "--agent", "review"), 2, "PHASE=AGENT")
    refused(world.inside("run", world.spec(), "--agent", "revue=stranger"), 2, "revue", "review")
    refused(world.inside("run", world.spec(), "--agent", "review=strangr"), 2, "did you mean `stranger`?")
    refused(world.inside("run", world.spec(), "--agent", "review=implementer"), 2, "north")
    through(world.inside("run", world.spec(), "--agent", "review=stranger"))
    assert [receipt["agent"] for receipt in world.receipts()] == ["implementer", "stranger", "acceptance-judge"]
    assert [receipt["vendor"] for receipt in world.receipts()] == ["north", "west", "south"]


def test_a_rehearsal_shows_plan_and_prompts_and_runs_and_writes_nothing(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.shell("implementer", f"touch {tmp_path}/was-run", phase="implement", reply="exit")
    world.save()
    before, git = world.refs(), sorted(path.name for path in (world.root / ".git").iterdir())
    ran = world.inside("run", world.spec(), "--dry-run")
    through(ran)
    for shown in ("implementer", "mechanical", "c1", "`grep -q 'return a + b' calc.py`", "`add` in calc.py subtracts."):
        assert shown in ran.out, shown
    prompts = [line for line in ran.out.splitlines() if line.startswith("--- the prompt of ")]
    assert prompts == [f"--- the prompt of {phase} ---" for phase in ("implement", "review", "acceptance")]
    assert "nothing was run or written" in ran.err
    [event] = world.inside("run", world.spec(), "--dry-run", "--json").events
    assert (event["type"], event["phases"]) == ("plan", ["implement", "review", "acceptance"])
    assert not (tmp_path / "was-run").exists()
    assert sorted(path.name for path in (world.root / ".git").iterdir()) == git
    assert (world.refs(), worktrees(), world.git("status", "--porcelain")) == (before, [], "")
    assert list(Path(os.environ["XDG_STATE_HOME"]).iterdir()) == []

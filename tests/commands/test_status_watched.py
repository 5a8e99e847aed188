"""`relay status --watch` shows what `relay status` says, at any width, and the night and the queue below it."""

import re

import pytest

from relay import alerts
from relay.report import board
from tests.commands.terminal import shown, watching
from tests.loop import dusk
from tests.loop.doomed import await_that
from tests.report import breakfast
from tests.world import SAFETY, World

QUESTION = {"status": "blocked", "summary": "?", "question": "Which sum is meant?"}


def asked(world: World) -> str:
    """Make a run that asks its person something, and let the world know that something is old; return the run."""
    world.python("implementer", f"reply(**{QUESTION!r})\n", phase="implement", vendor="north")
    assert world.relay("run", world.spec(name="a-task-with-a-name.md")).code == 4
    alerts.tell(
        breakfast.repo(world), alerts.new("a", "disk", f"worktrees of {world.only_run()} use 21 GB", "relay reap")
    )
    return world.only_run()


def last(text: str) -> list[str]:
    """Return the lines of the screen that was drawn last."""
    return [line.rstrip() for line in text[text.rindex("\nrun") :].strip("\n").splitlines()]


@pytest.mark.parametrize("width", [40, 80])
def test_what_a_run_needs_is_unfolded_on_the_board_as_plain_status_does_it(world: World, width: int) -> None:
    run = asked(world)
    plain = shown(world, "status", width=width)
    said = re.sub(r"\x1b\[\d+m", "", plain).splitlines()
    with watching(world, width=width, height=20) as screen:
        lines = last(screen.until(lambda text: "relay reap" in text))
        assert screen.end() == 0
    for told in ("the agent asks", f"    next: relay show {run}/01-implement note"):
        assert any(told in line for line in said), said
        assert any(told in line for line in lines), "a command is a line, however narrow the terminal is"
    assert "\u2026" not in "".join(lines), "nothing is cut"
    assert all(line.split() for line in lines[lines.index("") + 1 :])


@pytest.mark.parametrize("width", [40, 60])
def test_an_alert_is_broken_between_its_words_and_its_command_nowhere(world: World, width: int) -> None:
    run = asked(world)
    told = [line for line in shown(world, "status", width=width).splitlines() if line][-3:]
    told = [re.sub(r"\x1b\[\d+m", "", line) for line in told]
    at = next(number for number, line in enumerate(told) if line.startswith("1 alert"))
    assert " ".join(" ".join(told[at:]).split()) == (
        f"1 alert, of which the oldest: worktrees of {run} use 21 GB; relay reap"
    )
    assert len(told[at:]) > 1
    assert all(len(line) <= width for line in told[at:]), told
    assert any(run in line for line in told)
    assert told[-1].endswith("relay reap")


def test_status_and_the_board_name_the_same_leg_while_it_is_under_way(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    assert world.relay("reject", world.only_run(), "--why", "not yet").code == 0
    gate = world.folder / "gate"
    waits = f"import time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.05)\nreply(status='done')\n"
    world.python("implementer", waits, phase="implement", vendor="north")
    going = world.start("resume", world.only_run())
    try:
        with watching(world) as screen:
            screen.until(lambda text: "05-implement by implementer" in text)
            assert screen.end() == 0
        [event] = world.relay("status", "--json").events
        assert (event["leg"], event["held"]) == ("05-implement", True)
        row = world.relay("status").out.splitlines()[1]
        assert re.search(r"  05-implement by implementer  +1/1", row), row
    finally:
        gate.touch()
        going.communicate(timeout=SAFETY)


def test_a_night_in_progress_shows_its_purse_and_the_queue_what_is_next(world: World) -> None:
    seen = dusk.slow(world)
    dusk.queued(world, "One", "Two", "Three")
    assert board.night(breakfast.repo(world)) == ""
    night = world.start("nightly", "--usd", "5", "--tokens", "2000000", "--hours", "1")
    try:
        await_that(seen.exists, "nothing ran")
        with watching(world, width=100) as screen:
            text = screen.until(lambda text: "specs wait" in text)
            assert screen.end() == 0
    finally:
        night.terminate()
        night.communicate(timeout=SAFETY)
    lines = last(text)
    told = " ".join(" ".join(lines[lines.index("") + 1 :]).split())
    assert re.fullmatch(
        r"night \d+-\d+: 1 run; \$0\.00 of \$5\.00, as far as costs are known; 0 of 2\.0M tokens; "
        r"since \d\d:\d\d until \d\d:\d\d queue: 2 specs wait, next \S+/two\.md",
        told,
    ), told

"""`relay status` and its board on a terminal that is narrower than what there is to say."""

import re

from relay import alerts
from tests.commands.terminal import shown, watching
from tests.report import breakfast
from tests.world import SAFETY, SPEC, World

LONG = "whose-name-is-as-long-as-names-are"


def asked(world: World, name: str) -> str:
    """Make a run that waits for a person, because of rounds that are used up; return its id."""
    before = {path.name for path in world.runs.iterdir()} if world.runs.exists() else set()
    assert world.relay("run", world.spec(SPEC, f"{name}.md")).code == 4
    [run] = {path.name for path in world.runs.iterdir()} - before
    return run


def stubborn(world: World) -> None:
    """Let the reviewer never be content."""
    world.reviser("review", path="calc.py", quote="def add(a, b):", times=9)
    world.phases["review"]["rounds"] = 1
    world.save()


def test_the_run_in_progress_is_watched_first_however_many_wait_on_a_terminal_of_eighty_columns(world: World) -> None:
    stubborn(world)
    older = [asked(world, f"task-{number}-{LONG}") for number in range(5)]
    alerts.tell(breakfast.repo(world), alerts.new("a", "disk", "worktrees use 21 GB", "relay reap"))
    gate = world.folder / "gate"
    waits = f"import time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.05)\nreply(verdict='approve')\n"
    world.python("review-judge", waits, phase="review", vendor="south")
    run = world.start("run", world.spec(SPEC, f"now-{LONG}.md"))
    try:
        with watching(world, width=80, height=14) as screen:
            text = screen.until(re.compile(r"-now-\S+ +open \(held\)\n +leg: 02-review by(?s:.)*relay reap").search)
            assert screen.end() == 0
    finally:
        gate.touch()
        run.communicate(timeout=SAFETY)
    lines = [line.rstrip() for line in text[text.rindex("run  ") :].splitlines()]
    assert len(lines) <= 14, lines
    assert re.match(r"\d+-\d+-now-\S+ +open \(held\)$", lines[1]), "what is under way stands first"
    assert lines[2].startswith("    leg: 02-review by "), lines
    rows = [line.split()[0] for line in lines if re.match(r"\d+-\d+-task-", line)]
    assert rows == older[-len(rows) :] != [], "then the newest of those that wait"
    for row in rows:
        at = next(number for number, line in enumerate(lines) if line.startswith(row))
        assert any(line.startswith("    ") and "needs: 1 of 1 rounds" in line for line in lines[at : at + 4]), lines
        assert f"    next: relay show {row}/02-review note" in lines[at : at + 5]
    assert f"{5 - len(rows)} older runs not shown: relay status" in lines
    assert "1 alert, of which the oldest: worktrees use 21 GB; relay reap" in lines


def test_what_a_run_needs_stands_below_it_where_the_terminal_is_too_narrow(world: World) -> None:
    stubborn(world)
    run = asked(world, "a-task")
    text = shown(world, "status", width=60)
    [at] = [at for at, line in enumerate(text.splitlines()) if line.startswith(run)]
    row, needs, *rest = text.splitlines()[at:]
    assert row.split()[:3] == [run, "\x1b[31mneeds-human\x1b[0m", "02-review"]
    assert needs.startswith("    needs: 1 of 1 rounds of `review` are used up")
    assert f"    next: relay show {run}/02-review note" in rest
    assert all(len(line) <= 60 + len("\x1b[31m\x1b[0m") for line in [row, needs]), text
    assert "    needs:" not in shown(world, "status", width=240)
    assert world.relay("status").out.splitlines()[1].split()[:3] == [run, "needs-human", "02-review"]


def test_a_report_on_a_narrow_terminal_keeps_its_columns(world: World) -> None:
    stubborn(world)
    run = asked(world, LONG)
    lines = shown(world, "report", run, width=80).splitlines()
    row = next(line for line in lines if line.startswith(run))
    assert "rounds of" not in row
    assert any(line.startswith("    time: ") and "  needs: 1 of 1 rounds of `review`" in line for line in lines), lines

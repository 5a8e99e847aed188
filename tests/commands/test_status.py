"""`relay status` says what nobody may have seen, and `--watch` shows a leg while it runs."""

import re
from datetime import timedelta

import click

from relay import alerts
from relay.commands import status
from relay.host import clock
from relay.schedule import installed
from relay.schedule.job import Job
from tests.commands.terminal import watching
from tests.report import breakfast
from tests.world import SAFETY, SPEC, World


def test_a_leg_is_watched_while_it_runs_and_ctrl_c_is_a_good_end(world: World) -> None:
    gate = world.folder / "gate"
    waits = f"import time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.05)\nreply(verdict='approve')\n"
    world.python("review-judge", waits, phase="review", vendor="south")
    run = world.start("run", world.spec())
    with watching(world) as screen:
        shown = screen.until(lambda text: "02-review by review-judge" in text)
        assert "open (held)" in shown
        assert "\x1b[?1049h" in shown, "it draws on a screen of its own"
        gate.touch()
        screen.until(lambda text: "approval" in text)
        assert screen.end() == 0
    run.communicate(timeout=SAFETY)


def test_ended_runs_are_watched_only_when_asked_for(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    assert world.relay("approve", world.only_run()).code == 0
    with watching(world) as screen:
        assert "shipped" not in screen.until(lambda text: "no open runs" in text)
        assert screen.end() == 0
    with watching(world, "--all") as screen:
        screen.until(lambda text: "shipped" in text)
        assert screen.end() == 0


def test_nothing_is_watched_without_a_terminal_or_in_json(world: World) -> None:
    ran = world.relay("status", "--watch")
    assert (ran.code, ran.out) == (2, ""), ran
    assert "hint: relay status" in ran.err
    ran = world.relay("status", "--watch", "--json")
    assert "hint: relay status --json" in ran.err, ran


def test_open_alerts_are_counted_with_the_command_that_settles_them(world: World) -> None:
    ledger = breakfast.repo(world)
    assert world.relay("run", world.spec()).code == 0
    assert "alert" not in world.relay("status").err
    alerts.tell(ledger, alerts.new("a", "disk", "worktrees use 21 GB", "relay reap"))
    alerts.tell(ledger, alerts.new("b", "old", "something is old", "relay reap"))
    ran = world.relay("status")
    assert "2 alerts, of which the oldest: " in ran.err, ran
    assert "relay reap" in ran.err, ran
    assert [event["type"] for event in world.relay("status", "--json").events] == ["run", "alerts"]


def test_a_night_that_did_not_come_is_told_until_one_does(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    ledger, run = breakfast.repo(world), world.only_run()
    root = str(world.root)
    job = Job(
        name="project",
        key="1",
        project=root,
        folder=root,
        bare=False,
        command=("relay", "nightly"),
        env={"PATH": "/usr/bin"},
        env_file=f"{root}/env",
        log=f"{root}/log",
        at="17 4 * * *",
        zone="UTC",
        missed="once",
        hours=3,
    )
    since = clock.stamp(clock.now() - timedelta(days=3))
    installed.write(ledger, installed.Installed(method="cron", job=job, installed=since, files={}))
    ran = world.relay("status")
    assert "last night did not run: due " in ran.err, ran
    assert "relay schedule status" in ran.err, ran
    assert [event["type"] for event in world.relay("status", "--json").events] == ["run", "missed"]
    now = clock.stamp()
    breakfast.night(world, {"sum": run}, started=now, ended=now)
    assert "did not run" not in world.relay("status").err


def test_a_look_that_finds_nothing_new_reads_no_receipt_again(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    run, receipt = world.only_run(), world.legs()[-1] / "receipt.json"
    with click.Context(status.command):
        lines = status.Lines(breakfast.repo(world))
        first = lines.of(run)
        assert lines.of(run) is first
        lines.held = run
        assert lines.of(run)["next"] == "", "who holds it is looked at every time"
        lines.held = None
        torn = receipt.with_name("torn")
        torn.write_bytes(receipt.read_bytes()[:100])
        torn.replace(receipt)
        assert lines.of(run)["outcome"] == "unreadable"
        receipt.unlink()
        assert lines.of(run)["outcome"] != "unreadable"


def test_where_the_screen_is_too_small_the_newest_runs_are_watched_and_the_others_counted(world: World) -> None:
    for number in range(4):
        assert world.relay("run", world.spec(SPEC, f"spec-{number}.md")).code == 0
    with watching(world, height=4) as screen:
        shown = screen.until(lambda text: "not shown" in text)
        assert "3 older runs not shown: relay status" in shown
        assert ("spec-3" in shown, "spec-0" in shown) == (True, False)
        assert re.search(r"  unknown +approval", shown), "nobody knows what the programs of these agents cost"
        assert screen.end() == 0


def test_a_cost_that_nobody_knows_is_not_complete(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    [run] = world.relay("status", "--json").events
    assert (run["cost_microusd"], run["cost_complete"]) == (0, False)

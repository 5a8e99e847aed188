"""`relay status` says what nobody may have seen, and `--watch` shows a leg while it runs."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import click

from relay import alerts
from relay.commands import status
from relay.host import clock
from relay.schedule import installed
from relay.schedule.job import Job
from tests.report import breakfast
from tests.world import CHECKOUT, SAFETY, SPEC, World


class Screen:
    """A terminal with `relay status --watch` on it."""

    def __init__(self, world: World, *flags: str, height: int = 24) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, 160, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "relay", "status", "--watch", *flags],
            cwd=world.root,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TERM": "xterm-256color"},
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
        )
        self.text = ""

    def until(self, wanted: Callable[[str], object]) -> str:
        """Read what is drawn until it shows what is wanted."""
        end = time.monotonic() + SAFETY
        os.set_blocking(self.master, False)
        while not wanted(self.text):
            assert time.monotonic() < end, self.text[-4000:]
            assert self.process.poll() is None, self.text[-4000:]
            try:
                drawn = os.read(self.master, 1 << 16).decode("utf-8", "replace")
            except BlockingIOError:
                time.sleep(0.05)
                continue
            self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", lambda found: found[0] if found[0][-1] == "h" else "", drawn)
        return self.text

    def end(self) -> int:
        """Press Ctrl-C, and return how it exits."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(SAFETY)


@contextmanager
def watching(world: World, *flags: str, height: int = 24) -> Iterator[Screen]:
    """Watch inside a block."""
    screen = Screen(world, *flags, height=height)
    try:
        yield screen
    finally:
        if screen.process.poll() is None:
            screen.process.kill()
            screen.process.wait()
        os.close(screen.master)
        os.close(screen.slave)


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
    with watching(world, height=6) as screen:
        shown = screen.until(lambda text: "not shown" in text)
        assert "1 older run not shown: relay status" in shown
        assert ("spec-3" in shown, "spec-0" in shown) == (True, False)
        assert "cost unknown" in shown, "nobody knows what the programs of these agents cost"
        assert screen.end() == 0


def test_a_cost_that_nobody_knows_is_not_complete(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    [run] = world.relay("status", "--json").events
    assert (run["cost_microusd"], run["cost_complete"]) == (0, False)

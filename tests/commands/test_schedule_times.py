"""When nights start is said before and after it is installed, and a night that did not come the next morning."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.schedule import machines
from tests.world import CHECKOUT, SAFETY, World


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the one folder on PATH."""
    return machines.bare(tmp_path / "bin", monkeypatch)


def _units() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "systemd" / "user"


def test_relay_toml_says_when_unless_the_command_line_does(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl="", loginctl="echo yes")
    world.save(schedule={"at": "03:33", "missed": "skip"}, nightly={"hours": 20})
    assert world.inside("schedule", "install").code == 0
    [timer] = _units().glob("*.timer")
    assert "03:33:00\nPersistent=false" in timer.read_text()
    assert "TimeoutStartSec=1260min" in timer.with_suffix(".service").read_text()
    assert world.inside("schedule", "install", "--at", "@daily", "--missed", "once").code == 0
    assert "00:00:00\nPersistent=true" in timer.read_text()


def test_next_prints_times_with_their_zone(world: World) -> None:
    words = ("schedule", "next", "-n", "3", "--with", "systemd", "--zone", "Asia/Kolkata", "--at", "0 4 29 2 *")
    lines = world.inside(*words).out.splitlines()
    assert [line[4:] for line in lines] == [f"{year}-02-29 04:00 IST" for year in (2028, 2032, 2036)]
    assert len(world.inside("--json", *words).events) == 3


def test_next_is_said_though_nothing_here_could_start_a_night(world: World, bin_: Path) -> None:
    ran = world.inside("schedule", "next", "-n", "1")
    assert (ran.code, " 04:17 " in ran.out, "nothing is installed yet" in ran.err) == (0, True, True), ran
    assert not (bin_ / "crontab").exists()


def test_cron_that_is_not_there_can_be_shown_and_not_installed(world: World, bin_: Path) -> None:
    assert "17 4 * * * /bin/sh " in world.inside("schedule", "show", "--with", "cron").out
    ran = world.inside("schedule", "install", "--with", "cron")
    assert (ran.code, "there is no `crontab`" in ran.err) == (2, True), ran
    assert not (bin_ / "crontab").exists()


def test_a_time_that_is_there_twice_is_warned_of(world: World) -> None:
    ran = world.inside("schedule", "next", "--with", "systemd", "--zone", "Europe/Berlin", "--at", "02:30")
    assert ran.code == 0, ran
    assert "clocks change in Europe/Berlin: 02:30 is " in ran.err


def _at(moment: str, world: World, *words: str) -> str:
    """Call Relay when the clock of its machine shows another time."""
    command = [machines.needs("faketime"), "-f", moment, sys.executable, "-P", "-m", "relay", *words]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, cwd=world.root, env=env, capture_output=True, check=True, timeout=SAFETY, text=True)
    return done.stdout + done.stderr


def test_a_night_that_did_not_come_is_said_the_next_morning(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    machines.crontab(world.folder / "bin")
    monkeypatch.setenv("PATH", f"{world.folder / 'bin'}:{os.environ['PATH']}")
    _at("2027-12-31 23:59:30", world, "schedule", "install", "--with", "cron")
    midnight = _at("2028-01-01 00:00:30", world, "schedule", "status")
    assert "did not run" not in midnight
    assert "next        Sat 2028-01-01 04:17" in midnight
    morning = _at("2028-01-01 08:00:00", world, "schedule", "status")
    assert "last night did not run: due 2028-01-01 04:17" in morning
    _at("2028-02-29 04:17:00", world, "nightly", "--scheduled")
    assert "did not run" not in _at("2028-02-29 08:00:00", world, "schedule", "status")

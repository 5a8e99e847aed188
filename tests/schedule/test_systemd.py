"""The units are what systemd itself reads as meant: checked by systemd-analyze, and started by a real systemd."""

import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from relay.schedule import due, systemd
from tests.schedule import machines, records
from tests.world import SAFETY, World

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def _analyze(*words: str, zone: str = "UTC") -> str:
    done = subprocess.run(
        [machines.needs("systemd-analyze"), *words],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        check=False,
        timeout=SAFETY,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _texts(world: World, *options: str) -> dict[str, str]:
    """Return what would be written, by the end of each file's name."""
    ran = world.inside("--json", "schedule", "show", "--with", "systemd", *options)
    assert ran.code == 0, ran
    return {Path(event["path"]).suffix: event["text"] for event in ran.events if event["type"] == "file"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("17 4 * * *", ["*-*-* 04:17:00"]),
        ("@hourly", ["*-*-* *:00:00"]),
        ("*/15 4 * * *", ["*-*-* 04:00,15,30,45:00"]),
        ("0 1-5/2,22 * * *", ["*-*-* 01,03,05,22:00:00"]),
        ("0 4 * * mon-fri", ["Mon..Fri *-*-* 04:00:00"]),
        ("0 4 * * 0,6", ["Sat,Sun *-*-* 04:00:00"]),
        ("0 4 * * 5-7", ["Fri..Sun *-*-* 04:00:00"]),
        ("0 4 1-7 1,3-6 *", ["*-01,03..06-01..07 04:00:00"]),
        ("0 4 13 * fri", ["*-*-13 04:00:00", "Fri *-*-* 04:00:00"]),
        ("0 4 */10 * fri", ["Fri *-*-01,11,21,31 04:00:00"]),
    ],
)
def test_a_cron_line_is_said_as_on_calendar_has_it(text: str, said: list[str]) -> None:
    assert systemd.calendar(due.read(text), None) == said


@pytest.mark.parametrize(
    "text", ["17 4 * * *", "*/15 4 * * *", "0 4 13 * fri", "0 4 */10 * fri", "5 4,22 1-7 1,3-6 *", "0 4 29 2 *"]
)
def test_systemd_itself_comes_to_the_same_times(text: str) -> None:
    line, moments = due.read(text), set()
    for one in systemd.calendar(line, None):
        said = _analyze("calendar", "--iterations=12", f"--base-time={NOW:%F %T}", one)
        found = re.findall(r"\S+ (\S+ \S+) UTC$", said, re.MULTILINE)
        moments |= {datetime.fromisoformat(moment).replace(tzinfo=UTC) for moment in found}
    assert sorted(moments)[:10] == due.coming(line, NOW, 10)


def test_over_changes_of_the_clock_systemd_comes_to_the_same_times() -> None:
    zone, line = ZoneInfo("Europe/Berlin"), due.read("02:30")
    for day in ("2027-03-27", "2027-10-30"):
        start = datetime.fromisoformat(f"{day} 12:00:00").replace(tzinfo=zone)
        said = _analyze(
            "calendar", "--iterations=3", f"--base-time={day} 12:00:00", *systemd.calendar(line, None), zone=zone.key
        )
        found = re.findall(r"\(in UTC\): \S+ (\S+ \S+) UTC", said)
        assert found == [f"{one.astimezone(UTC):%F %T}" for one in due.coming(line, start, 3, skips=True)]


def _verified(folder: Path, texts: dict[str, str]) -> str:
    """Have systemd-analyze read both units, and return all that it says; a warning is a fault."""
    folder.mkdir()
    for suffix, text in texts.items():
        (folder / f"night{suffix}").write_text(text)
    done = subprocess.run(
        [machines.needs("systemd-analyze"), "--user", "verify", *map(str, folder.iterdir())],
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
        capture_output=True,
        check=False,
        timeout=SAFETY,
        text=True,
    )
    return f"{done.stdout}{done.stderr}" + (f"exit {done.returncode}" if done.returncode else "")


@pytest.mark.parametrize(
    "options",
    [(), ("--at", "0 4 13 * fri", "--missed", "skip"), ("--at", "@hourly"), ("--zone", "Europe/Berlin")],
    ids=" ".join,
)
def test_systemd_finds_no_fault_in_the_units(world: World, options: tuple[str, ...]) -> None:
    texts = _texts(world, *options)
    assert _verified(world.folder / "units", texts) == ""
    assert ("Persistent=false" in texts[".timer"]) == ("skip" in options)
    assert "SuccessExitStatus=75" in texts[".service"]


def test_systemd_finds_a_fault_that_is_there(world: World) -> None:
    texts = _texts(world)
    texts[".timer"] = texts[".timer"].replace("04:17:00", "17 4 * * *")
    assert "Failed to parse" in _verified(world.folder / "units", texts)


def test_a_secret_of_this_shell_stands_in_no_unit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    texts = _texts(world)
    assert "sk-ant" not in "".join(texts.values())
    assert f"EnvironmentFile=-{os.environ['XDG_CONFIG_HOME']}/relay/env" in texts[".service"]


def test_path_is_frozen_without_what_is_relative(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f".:bin::/usr/bin:/a b:/usr/bin:/x\ny:{os.environ['PATH']}")
    frozen = _texts(world)[".service"].partition('Environment="PATH=')[2].partition('"')[0]
    assert frozen.startswith("/usr/bin:/a b:")
    assert all(entry.startswith("/") for entry in frozen.split(":"))


MANAGER = """
mount -t tmpfs t /run
mkdir -p /run/systemd/system /run/mine
export XDG_RUNTIME_DIR=/run/mine
env -u PYTHONPATH {systemd} --user --log-target=console >systemd.log 2>&1 &
count=0
until [ -S /run/mine/systemd/private ]; do
  sleep 0.1; count=$((count + 1)); [ $count -lt 200 ] || {{ cat systemd.log; exit 9; }}
done
ended() {{
  count=0
  until [ "$(systemctl --user show "$1" --property=ExecMainExitTimestampMonotonic --value)" -gt 0 ]; do
    sleep 0.1; count=$((count + 1)); [ $count -lt 300 ] || {{ systemctl --user status "$1"; exit 8; }}
  done
}}
"""


def _manager(script: str, world: World) -> str:
    """Run lines of shell beside a real systemd of a person's, which ends with them.

    Schedules there have two times a day: for them no delay is drawn, which would be up to ten minutes.
    """
    machines.needs("systemctl")
    if not machines.SYSTEMD:
        pytest.skip("systemd itself is not installed")
    return machines.alone(MANAGER.format(systemd=machines.SYSTEMD) + script, world.root)


def _odd(tmp_path: Path) -> World:
    """Make a repository whose path has a letter for everything that can go wrong, the backslash too."""
    return World.simple(tmp_path / f"{machines.ODD} \\n")


def test_a_night_that_was_slept_through_is_started_by_the_real_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, config = _odd(tmp_path), tmp_path / machines.ODD / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    # A night starts in the person's home, where no file may take the place of a module.
    (Path(os.environ["HOME"]) / "json.py").write_text("raise SystemExit('taken')\n")
    said = _manager(
        """
        $RELAY schedule install --with systemd --at '17 4,5 * * *'
        timer=$(basename "$XDG_CONFIG_HOME"/systemd/user/*.timer) service=${timer%.timer}.service
        systemctl --user show "$service" --property=ExecMainStartTimestampMonotonic
        systemctl --user is-active "$timer"
        systemctl --user stop "$timer"
        touch -d '3 days ago' "$HOME/.local/share/systemd/timers/stamp-$timer"
        systemctl --user start "$timer"
        ended "$service"
        systemctl --user show "$service" --property=ExecStart --property=EnvironmentFiles
        $RELAY schedule status
        """,
        world,
    )
    assert "ExecMainStartTimestampMonotonic=0\nactive\n" in said, "installing alone starts no night"
    assert f"-C {world.root} nightly --scheduled" in said
    assert f"EnvironmentFiles={config}/relay/env (ignore_errors=yes)" in said
    assert [night["scheduled"] for night in records.nights(world)] == [True]


def test_a_night_that_shall_be_skipped_is_not_started_later(world: World) -> None:
    said = _manager(
        """
        $RELAY schedule install --with systemd --at '17 4,5 * * *' --missed skip
        timer=$(basename "$XDG_CONFIG_HOME"/systemd/user/*.timer)
        systemctl --user stop "$timer"
        mkdir -p "$HOME/.local/share/systemd/timers"
        touch -d '3 days ago' "$HOME/.local/share/systemd/timers/stamp-$timer"
        systemctl --user start "$timer"
        sleep 1
        systemctl --user show "${timer%.timer}.service" --property=ExecMainStartTimestampMonotonic
        """,
        world,
    )
    assert said.strip().endswith("=0")
    assert records.nights(world) == []


def test_an_old_stamp_starts_no_night_at_noon_and_removal_leaves_nothing(world: World) -> None:
    said = _manager(
        """
        $RELAY schedule install --with systemd
        timer=$(basename "$XDG_CONFIG_HOME"/systemd/user/*.timer)
        systemctl --user stop "$timer"
        mkdir -p "$HOME/.local/share/systemd/timers"
        touch -d '3 days ago' "$HOME/.local/share/systemd/timers/stamp-$timer"
        $RELAY schedule install --with systemd --at '3 3,5 * * *'
        sleep 1
        systemctl --user show "${timer%.timer}.service" --property=ExecMainStartTimestampMonotonic
        $RELAY schedule remove
        systemctl --user list-unit-files 'relay-*' --no-legend || true
        find "$HOME" "$XDG_CONFIG_HOME/systemd" -name '*relay-nightly*'
        """,
        world,
    )
    assert said == "ExecMainStartTimestampMonotonic=0\n"


def test_a_night_that_another_holds_off_is_no_failure(world: World) -> None:
    machines.needs("flock")
    said = _manager(
        """
        $RELAY schedule install --with systemd
        timer=$(basename "$XDG_CONFIG_HOME"/systemd/user/*.timer) service=${timer%.timer}.service
        mkdir -p .git/relay/nights
        flock .git/relay/nights/lock sleep 100 &
        while flock -n .git/relay/nights/lock true; do sleep 0.1; done
        systemctl --user start "$service"
        systemctl --user show "$service" --property=Result --property=ExecMainStatus
        """,
        world,
    )
    assert set(said.split()) == {"Result=success", "ExecMainStatus=75"}
    assert [night["ended_by"] for night in records.nights(world)] == ["held"]


def test_without_its_repository_a_night_is_skipped_and_the_words_that_are_said_take_the_timer_away(
    tmp_path: Path,
) -> None:
    world = _odd(tmp_path)
    said = _manager(
        """
        $RELAY schedule install --with systemd 2>/dev/null
        units=$XDG_CONFIG_HOME/systemd/user
        service=$(basename "$units"/*.service)
        mkdir -p "/run/mine/systemd/user/$service.d"
        printf '[Service]\\nStandardOutput=file:/run/said\\n' >"/run/mine/systemd/user/$service.d/said.conf"
        systemctl --user daemon-reload
        mv "$PWD" "$PWD.away"
        cd /
        systemctl --user start "$service" 2>/dev/null || true
        systemctl --user show "$service" --property=Result
        cat /run/said
        sh -c "$(sed 's/.*take its schedule away: //' /run/said)" 2>/dev/null
        systemctl --user list-unit-files 'relay-*' --no-legend || true
        find "$units" -name 'relay-*'
        """,
        world,
    )
    result, line = said.splitlines()
    assert result == "Result=exec-condition"
    assert f"there is no `{world.root}` any more" in line

"""What a schedule meets after its installing: hands that edit, programs and folders that are gone."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.schedule import machines, records
from tests.world import SAFETY, World


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the one folder on PATH."""
    return machines.bare(tmp_path / "bin", monkeypatch)


def _schedule() -> list[Path]:
    return sorted((Path(os.environ["XDG_CONFIG_HOME"]) / "relay" / "schedule").iterdir())


def test_lines_that_a_person_edited_in_the_crontab_are_kept_beside(world: World, bin_: Path) -> None:
    table = machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    [script] = _schedule()
    table.write_text(table.read_text().replace("17 4", "5 5"))
    ran = world.inside("schedule", "install", "--with", "cron")
    kept = script.with_suffix(".cron.edited")
    assert f"what was edited by hand is kept as `{kept}`" in ran.err, ran
    assert "\n5 5 * * * /bin/sh " in kept.read_text()
    assert "\n17 4 * * * /bin/sh " in table.read_text()
    table.write_text(table.read_text().replace("17 4", "6 6"))
    ran = world.inside("schedule", "remove")
    assert f"kept as `{kept}-2`" in ran.err, ran
    assert (_schedule(), table.exists()) == ([kept, Path(f"{kept}-2")], False)


def test_where_crontab_is_gone_removing_leaves_a_command_that_does_it(world: World, bin_: Path) -> None:
    table = machines.crontab(bin_)
    table.write_text("0 5 * * * mine\n")
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    (bin_ / "crontab").rename(bin_ / "away")
    ran = world.inside("schedule", "remove")
    assert (ran.code, _schedule()) == (0, []), ran
    [command] = [line for line in ran.err.splitlines() if "crontab -l" in line]
    (bin_ / "away").rename(bin_ / "crontab")
    path = f"{bin_}:{os.defpath}"
    subprocess.run(["/bin/sh", "-c", command.removeprefix("hint: ")], check=True, env={"PATH": path}, timeout=SAFETY)
    assert table.read_text() == "0 5 * * * mine\n"


def test_a_program_that_is_gone_since_is_said_with_what_to_type(world: World, bin_: Path) -> None:
    machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    path = world.root / ".git" / "relay" / "schedule.json"
    record = records.schedule(world)
    assert "which is gone" not in world.inside("schedule", "status").out
    record["job"]["command"][0] = "/nowhere/bin/python"
    path.write_text(json.dumps(record))
    ran = world.inside("schedule", "status")
    assert "starts      `/nowhere/bin/python`, which is gone" in ran.out, ran
    assert "hint: relay schedule install" in ran.err, ran
    assert world.inside("--json", "schedule", "status").events[0]["gone"] == "/nowhere/bin/python"


def test_a_home_where_nothing_can_be_written_is_no_bug_and_nothing_is_installed(
    world: World, bin_: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = machines.crontab(bin_)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/proc/no/home")
    ran = world.inside("schedule", "install", "--with", "cron")
    assert (ran.code, "`/proc/no/home/relay/schedule` cannot be made: " in ran.err) == (4, True), ran
    assert not table.exists()
    assert "no schedule is installed" in world.inside("schedule", "status").err


def test_a_workflow_is_told_nothing_of_this_machine(world: World) -> None:
    ran = world.inside("schedule", "install", "--with", "actions")
    assert ran.code == 0, ran
    assert "gh secret set NAME" in ran.err
    assert "as-scheduled" not in ran.err
    assert os.environ["XDG_CONFIG_HOME"] not in ran.err


def test_removing_says_what_no_longer_happens(world: World, bin_: Path) -> None:
    machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    [script] = _schedule()
    script.unlink()
    assert "cron starts no more nights here" in world.inside("schedule", "remove").err


def test_a_copied_repository_has_no_schedule_and_takes_none_away(world: World, bin_: Path) -> None:
    table = machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    before, files = table.read_text(), _schedule()
    copy = world.folder / "copy"
    shutil.copytree(world.root, copy, symlinks=True)
    ran = world.relay("-C", str(copy), "schedule", "remove")
    assert "no schedule is installed here" in ran.err, ran
    assert (table.read_text(), _schedule()) == (before, files)
    assert world.relay("-C", str(copy), "schedule", "install", "--with", "cron").code == 0
    assert before.strip() in table.read_text()
    assert world.inside("schedule", "remove").code == 0
    assert table.read_text().count(" /bin/sh ") == 1, "that of the copy stays"


def test_a_moved_repository_still_takes_its_own_schedule_away(world: World, bin_: Path) -> None:
    table = machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    world.root = world.root.rename(world.folder / "moved")
    ran = world.inside("schedule", "remove")
    assert (ran.code, table.exists(), _schedule()) == (0, False, []), ran


def _faults(world: World) -> list[tuple[str, str]]:
    events = world.inside("--json", "doctor", "--as-scheduled").events
    return [(event["level"], event["text"]) for event in events if "night" in event["text"] and event["level"] != "ok"]


def test_what_keeps_an_installed_schedule_from_starting_is_said_by_the_doctor(world: World, bin_: Path) -> None:
    table = machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    assert _faults(world) == []
    whole = table.read_text()
    table.write_text(whole.replace("17 4", "5 5"))
    assert _faults(world) == [("warn", "the line that starts the nights by cron was edited by hand")]
    table.write_text("0 5 * * * mine\n")
    [(level, text)] = _faults(world)
    assert (level, text.startswith("no night will start: cron says")) == ("FAIL", True)
    table.write_text(whole)
    [script] = _schedule()
    script.write_text(script.read_text() + "exit 1\n")
    assert _faults(world) == [("warn", f"`{script.name}`, which starts the nights, was edited by hand")]
    script.unlink()
    assert _faults(world) == [("FAIL", f"`{script}`, which starts the nights, is gone")]
    assert world.inside("doctor", "--as-scheduled").code == 2


@pytest.mark.parametrize(("field", "value"), [("zone", "Nowhere/Atlantis"), ("at", "whenever")])
def test_what_cannot_be_read_of_a_schedule_ends_no_status(world: World, bin_: Path, field: str, value: str) -> None:
    machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    record = records.schedule(world)
    record["job"][field] = value
    path = world.root / ".git" / "relay" / "schedule.json"
    path.write_text(json.dumps(record))
    ran = world.inside("status")
    assert (ran.code, value in ran.err) == (0, True), ran
    path.write_text(json.dumps(records.schedule(world) | {"installed": "yesterday"}))
    assert world.inside("status").code == 0

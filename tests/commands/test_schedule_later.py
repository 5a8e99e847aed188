"""What a schedule meets after its installing: hands that edit, programs and folders that are gone."""

import json
import os
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

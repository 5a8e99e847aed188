"""The schedule is what this machine really runs; installing and removing touch nothing that is not Relay's."""

import os
import shutil
from pathlib import Path

import pytest

from tests.schedule import machines, records
from tests.world import World


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the one folder on PATH."""
    return machines.bare(tmp_path / "bin", monkeypatch)


def _units() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "systemd" / "user"


def _tree(*folders: Path) -> list[str]:
    return sorted(str(path) for folder in folders for path in folder.rglob("*"))


def test_systemd_is_taken_where_it_answers_and_told_in_order(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl="", loginctl="echo no", crontab="")
    ran = world.inside("schedule", "install")
    assert ran.code == 0, ran
    [timer] = _units().glob("*.timer")
    assert "OnCalendar=*-*-* 04:17:00\nPersistent=true\n" in timer.read_text()
    assert [call.removeprefix("--user ") for call in machines.calls(bin_, "systemctl")][-5:] == [
        "show --property=Version",
        f"stop {timer.name}",
        f"clean --what=state {timer.name}",
        "daemon-reload",
        f"enable --now {timer.name}",
    ]
    assert "hint: loginctl enable-linger" in ran.err
    assert machines.calls(bin_, "crontab") == []
    assert not any("enable-linger" in call for call in machines.calls(bin_, "loginctl")), "it is never forced"
    assert records.schedule(world)["method"] == "systemd"


def test_linger_that_is_on_is_not_explained(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl="", loginctl="echo yes")
    ran = world.inside("schedule", "install")
    assert (ran.code, "linger" in ran.err) == (0, False), ran


def test_where_systemd_does_not_answer_cron_is_taken(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl="echo Failed to connect to bus; exit 1")
    table = machines.crontab(bin_)
    ran = world.inside("schedule", "install", "--at", "02:30")
    assert ran.code == 0, ran
    assert "\n30 2 * * * /bin/sh " in table.read_text()
    assert not _units().exists()


def test_where_nothing_can_start_a_night_that_is_said_with_a_way(world: World, bin_: Path) -> None:
    ran = world.inside("schedule", "install")
    assert ran.code == 4, ran
    assert "systemd: there is no `systemctl`; cron: there is no `crontab`" in ran.err
    assert "--with github" in ran.err
    assert machines.calls(bin_, "git") == []


def test_units_for_a_systemd_that_cannot_be_reached_come_with_what_to_type(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl="exit 1")
    ran = world.inside("schedule", "install", "--with", "systemd")
    assert ran.code == 0, ran
    [timer] = _units().glob("*.timer")
    assert "hint: systemctl --user daemon-reload\n" in ran.err
    assert f"systemctl --user enable --now {timer.name}\n" in ran.err


def test_a_scheduler_that_refuses_is_an_error_and_what_was_written_can_be_removed(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl='case "$*" in *enable*) echo Unit is masked; exit 1 ;; esac')
    ran = world.inside("schedule", "install")
    assert (ran.code, "Unit is masked" in ran.err) == (4, True), ran
    assert world.inside("schedule", "remove").code == 0
    assert list(_units().iterdir()) == []


def test_launchd_lets_the_old_list_go_before_it_reads_the_new(world: World, bin_: Path) -> None:
    machines.programs(bin_, launchctl="")
    ran = world.inside("schedule", "install", "--with", "launchd")
    assert ran.code == 0, ran
    [plist] = (Path(os.environ["HOME"]) / "Library" / "LaunchAgents").iterdir()
    assert machines.calls(bin_, "launchctl") == [
        f"bootout gui/{os.getuid()}/{plist.stem}",
        f"bootstrap gui/{os.getuid()} {plist}",
    ]
    assert world.inside("schedule", "remove").code == 0
    assert not plist.exists()


def test_another_way_takes_the_place_of_the_one_before(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl="", loginctl="echo yes")
    table = machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "systemd").code == 0
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    assert list(_units().iterdir()) == []
    assert "relay nightly begin" in table.read_text()
    assert world.inside("schedule", "install", "--with", "systemd").code == 0
    assert not table.exists()


def test_showing_writes_nothing_and_installing_writes_that(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl="", loginctl="echo yes")
    before = _tree(Path(os.environ["HOME"]), world.root)
    shown = world.inside("--json", "schedule", "show", "--at", "@weekly").events
    assert _tree(Path(os.environ["HOME"]), world.root) == before
    assert world.inside("schedule", "install", "--at", "@weekly").code == 0
    assert {event["path"]: event["text"] for event in shown} == {
        str(path): path.read_text() for path in _units().iterdir()
    }


def test_two_repositories_of_one_name_do_not_meet(tmp_path: Path, bin_: Path) -> None:
    table = machines.crontab(bin_)
    table.write_text("0 5 * * * mine\n")
    worlds = [World.simple(tmp_path / name) for name in ("one", "two")]
    for world in worlds:
        assert world.inside("schedule", "install", "--with", "cron").code == 0
    assert table.read_text().count("relay nightly begin") == 2
    assert worlds[0].inside("schedule", "remove").code == 0
    assert table.read_text().count("relay nightly begin") == 1
    assert worlds[1].inside("--json", "schedule", "status").events[0]["armed"] == "active"
    assert worlds[1].inside("schedule", "remove").code == 0
    assert table.read_text() == "0 5 * * * mine\n"


def test_a_linked_worktree_schedules_the_repository(world: World, bin_: Path) -> None:
    table = machines.crontab(bin_)
    world.git("worktree", "add", "-q", str(world.folder / "linked"))
    assert world.inside("schedule", "install", "--with", "cron", folder=world.folder / "linked").code == 0
    assert records.schedule(world)["job"]["folder"] == str(world.root)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    assert table.read_text().count("relay nightly begin") == 1


def test_what_a_person_edited_is_said_and_kept(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl="", loginctl="echo yes")
    assert world.inside("schedule", "install").code == 0
    [timer] = _units().glob("*.timer")
    timer.write_text(timer.read_text().replace("04:17", "05:05"))
    status = world.inside("schedule", "status")
    assert f"{timer}: edited by hand" in status.out
    assert f"{timer.with_suffix('.service')}: as Relay wrote it" in status.out
    again = world.inside("schedule", "install")
    assert f"what was edited by hand is kept as `{timer}.edited`" in again.err
    assert "05:05" in Path(f"{timer}.edited").read_text()
    assert "04:17" in timer.read_text()
    timer.write_text("mine")
    assert f"kept as `{timer}.edited-2`" in world.inside("schedule", "remove").err
    assert sorted(path.name for path in _units().iterdir()) == [f"{timer.name}.edited", f"{timer.name}.edited-2"]


def test_a_line_that_a_person_edited_in_the_crontab_is_said(world: World, bin_: Path) -> None:
    table = machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    table.write_text(table.read_text().replace("17 4", "18 4"))
    assert "armed       edited by hand" in world.inside("schedule", "status").out
    table.write_text("")
    assert "armed       not active" in world.inside("schedule", "status").out


def test_a_workflow_of_somebody_elses_is_not_written_over(world: World) -> None:
    workflow = world.root / ".github" / "workflows" / "relay-nightly.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("on: push\n")
    ran = world.inside("schedule", "install", "--with", "actions")
    assert (ran.code, "Relay did not write it" in ran.err) == (4, True), ran
    assert workflow.read_text() == "on: push\n"
    workflow.unlink()
    ran = world.inside("schedule", "install", "--with", "actions")
    assert (ran.code, "git add .github/workflows/relay-nightly.yml" in ran.err) == (0, True), ran
    assert "relay nightly --scheduled" in workflow.read_text()
    assert world.inside("schedule", "remove").code == 0
    assert not workflow.exists()


def test_removing_what_is_not_there_is_no_failure(world: World, bin_: Path) -> None:
    machines.crontab(bin_)
    assert world.inside("schedule", "remove").code == 0
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    shutil.rmtree(Path(os.environ["XDG_CONFIG_HOME"]) / "relay")
    (bin_ / "table").unlink()
    assert "gone" in world.inside("schedule", "status").out
    assert world.inside("schedule", "remove").code == 0
    assert "no schedule is installed" in world.inside("schedule", "status").err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--at", "0 0 3 * * *"), "has 6 fields"),
        (("--zone", "Europe/Nowhere"), "there is no time zone"),
        (("--with", "cron", "--zone", "Asia/Tokyo"), "cron knows only the machine's own zone"),
        (("--with", "launchd", "--zone", "Asia/Tokyo"), "launchd knows only the machine's own zone"),
        (("--with", "launchd", "--at", "*/2 1-4 * * *"), "would have to count up 120 times"),
        (("--missed", "twice"), "is not one of"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    world: World, bin_: Path, options: tuple[str, ...], problem: str
) -> None:
    machines.programs(bin_, systemctl="", launchctl="", crontab="exit 1")
    before = _tree(Path(os.environ["HOME"]), world.root)
    ran = world.inside("schedule", "install", *options)
    assert (ran.code, problem in ran.err, "hint:" in ran.err) == (2, True, True), ran
    assert _tree(Path(os.environ["HOME"]), world.root) == before


def test_a_crontab_that_cannot_be_read_is_left_alone(world: World, bin_: Path) -> None:
    machines.programs(bin_, crontab="echo you are not allowed to use this program >&2; exit 1")
    ran = world.inside("schedule", "install", "--with", "cron")
    assert (ran.code, "you are not allowed" in ran.err) == (4, True), ran
    assert set(machines.calls(bin_, "crontab")) == {"-l"}


def test_a_folder_that_no_scheduler_could_name_is_refused(tmp_path: Path, bin_: Path) -> None:
    machines.programs(bin_, systemctl="")
    world = World.simple(tmp_path / "a\nb")
    ran = world.inside("schedule", "install")
    assert (ran.code, "no scheduler can name the path" in ran.err) == (2, True), ran

"""What a person is told to type works as it is printed, wherever their folders lie."""

import os
import pwd
import shlex
from pathlib import Path

import pytest

from tests.schedule import machines
from tests.world import World


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a repository in a folder with a letter for all that a shell could take for its own."""
    machines.bare(tmp_path / "bin", monkeypatch)
    return World.simple(tmp_path / machines.ODD)


def test_a_record_that_cannot_be_read_is_taken_away_by_the_words_that_are_printed(odd: World) -> None:
    path = odd.root / ".git" / "relay" / "schedule.json"
    path.parent.mkdir()
    path.write_text("{}")
    ran = odd.inside("schedule", "status")
    assert ran.code == 6, ran
    [hint] = [line for line in ran.err.splitlines() if line.startswith("hint:")]
    words = shlex.split(hint)
    assert words[-6:] == ["rm", str(path), "&&", "relay", "schedule", "install"]


def test_a_file_of_somebody_elses_is_looked_at_by_the_words_that_are_printed(
    odd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(odd.folder / "ho me"))
    [shown, _] = odd.inside("--json", "schedule", "show", "--with", "systemd").events
    path = Path(shown["path"])
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    ran = odd.inside("schedule", "install", "--with", "systemd")
    assert ran.code == 4, ran
    assert shlex.split(ran.err.strip().splitlines()[-1])[-2:] == ["cat", str(path)]


def test_a_page_that_no_browser_shows_is_opened_by_the_words_that_are_printed(
    odd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BROWSER", "no-such-program")
    assert odd.relay("nightly").code == 0
    ran = odd.relay("report", "--open")
    assert ran.code == 4, ran
    word, path = shlex.split(ran.err.strip().splitlines()[-1])[-2:]
    assert (word, Path(path).suffix, Path(path).exists()) == ("open", ".html", True)


def test_a_zone_that_a_persons_line_gives_to_all_below_it_is_said(odd: World) -> None:
    table = machines.crontab(odd.folder.parent / "bin")
    for above, said in (("CRON_TZ=Asia/Tokyo\n", True), ("#CRON_TZ=Asia/Tokyo\n", False)):
        table.write_text(above)
        ran = odd.inside("schedule", "install", "--with", "cron")
        assert (ran.code, "has `CRON_TZ=Asia/Tokyo`" in ran.err) == (0, said), ran


@pytest.mark.parametrize("group", ["schedule", "queue", "note"])
def test_without_a_verb_the_help_is_printed_and_is_no_error(odd: World, group: str) -> None:
    ran = odd.inside(group)
    assert (ran.code, ran.err) == (2, ""), ran
    assert ran.out == odd.inside(group, "--help").out
    assert "Commands:" in ran.out


def _lasting(world: World) -> str:
    """Return what the doctor has to say of a state folder that a reboot empties."""
    checks = world.inside("--json", "doctor").events
    [hint] = [check["hint"] for check in checks if "is in a temporary folder" in check["text"]]
    assert isinstance(hint, str)
    return hint


def test_where_home_is_temporary_too_the_doctor_names_a_folder_that_is_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(world.folder / "state"))
    own = pwd.getpwuid(os.getuid()).pw_dir
    monkeypatch.setenv("HOME", own)
    assert _lasting(world) == "export XDG_STATE_HOME=$HOME/.local/state"
    monkeypatch.setenv("HOME", str(world.folder))
    assert _lasting(world) == f"export XDG_STATE_HOME={own}/.local/state"

"""`relay schedule show` prints the exact text, and says beside it what that is, why, and what `install` comes to."""

from pathlib import Path

import pytest

from tests.schedule import machines
from tests.world import World


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the one folder on PATH."""
    return machines.bare(tmp_path / "bin", monkeypatch)


def test_what_is_shown_says_which_way_it_is_why_and_what_installing_it_does(world: World, bin_: Path) -> None:
    machines.crontab(bin_)
    ran = world.inside("schedule", "show", "--at", "02:30")
    assert ran.code == 0, ran
    assert "by cron, since systemd is not to be had: there is no `systemctl`" in ran.err
    assert "`install` writes this script, and puts these lines into your crontab; the next night starts " in ran.err
    assert "--with takes systemd or launchd or github instead" in ran.err
    assert "hint: relay schedule install --at 02:30" in ran.err
    assert "==> crontab <==\n" in ran.out
    assert "since" not in ran.out.replace("by `relay schedule install`", "")
    machines.programs(bin_, systemctl="", loginctl="")
    assert "by systemd, since systemd answers here" in world.inside("schedule", "show").err


def test_what_is_asked_for_and_not_to_be_had_is_said(world: World, bin_: Path) -> None:
    machines.crontab(bin_)
    ran = world.inside("schedule", "show", "--with", "systemd")
    assert "warning: systemd is not to be had here: there is no `systemctl`" in ran.err, ran
    assert "warning" not in world.inside("schedule", "show", "--with", "cron").err


def test_what_stands_already_by_another_way_is_said_to_go(world: World, bin_: Path) -> None:
    machines.crontab(bin_)
    assert world.inside("schedule", "install").code == 0
    assert "goes" not in world.inside("schedule", "show").err
    assert "; what cron starts here now goes" in world.inside("schedule", "show", "--with", "systemd").err


def test_a_workflow_of_github_is_had_by_either_name(world: World, bin_: Path) -> None:
    machines.crontab(bin_)
    named, shown = (world.inside("schedule", "show", "--with", word) for word in ("github", "actions"))
    assert named.code == 0, named
    assert ".github/workflows/" in named.out
    assert named.out == shown.out
    assert named.err.endswith("hint: relay schedule install --with github\n"), "as it is called on GitHub and here"
    assert "for you to commit and push; this machine starts nothing" in named.err

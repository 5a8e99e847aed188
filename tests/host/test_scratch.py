"""Temporary folders of Relay's own go with it; what a killed one left is removed later, and nobody else's."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from relay.host import scratch
from tests.host import held
from tests.world import CHECKOUT, SAFETY


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "temp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def test_a_folder_is_there_for_this_user_alone_and_then_it_is_not(place: Path) -> None:
    with scratch.folder("stage") as folder:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "sub").mkdir()
        (folder / "sub").chmod(0)
    assert list(place.iterdir()) == []


def test_a_folder_goes_though_its_user_took_the_mark_or_every_permission(place: Path) -> None:
    with scratch.folder("stage") as folder:
        (folder / scratch.MARK).unlink()
    with scratch.folder("stage") as folder:
        folder.chmod(0)
    assert list(place.iterdir()) == []


def test_a_folder_that_was_swapped_for_a_link_takes_nothing_along(place: Path) -> None:
    mine = place.parent / "mine"
    mine.mkdir()
    (mine / "thesis").write_text("years")
    with scratch.folder("stage") as folder:
        folder.rename(place.parent / "moved")
        folder.symlink_to(mine)
    assert (mine / "thesis").read_text() == "years"
    assert list(place.iterdir()) == []


def test_what_a_killed_relay_left_is_removed_and_told_and_a_dry_run_only_tells(place: Path) -> None:
    dead = held.left(place)
    assert scratch.sweep(dry=True) == [dead]
    assert (dead / "sub" / "socket").exists()
    assert scratch.sweep() == [dead]
    assert list(place.iterdir()) == []
    assert scratch.sweep() == []


def test_a_folder_stays_as_long_as_a_process_has_it_in_whatever_container(place: Path) -> None:
    with held.held(place, held.APART) as (folder, _):
        assert scratch.sweep() == []
        assert (folder / "sub" / "socket").exists()
    assert list(place.iterdir()) == []


def test_making_a_folder_removes_no_other(place: Path) -> None:
    dead = held.left(place)
    with scratch.folder("stage"):
        assert dead.exists()


def test_a_removal_that_is_killed_in_the_middle_is_ended_by_the_next(place: Path) -> None:
    dead = held.left(place)
    script = """
import os, signal, sys
from relay.host import scratch
sys.addaudithook(lambda event, _: event == "os.rmdir" and os.kill(os.getpid(), signal.SIGKILL))
scratch.sweep()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        check=False,
        timeout=SAFETY,
    )
    assert done.returncode == -signal.SIGKILL
    assert not (dead / "sub" / "socket").exists()
    held.age(dead)
    assert scratch.sweep() == [dead]
    assert list(place.iterdir()) == []


def _young(folder: Path) -> None:
    os.utime(folder)


def _open_to_all(folder: Path) -> None:
    folder.chmod(0o755)


def _unmarked(folder: Path) -> None:
    (folder / scratch.MARK).unlink()


def _another_mark(folder: Path) -> None:
    (folder / scratch.MARK).write_bytes((folder / scratch.MARK).read_bytes().replace(b".", b".7", 1))


def _empty_mark(folder: Path) -> None:
    (folder / scratch.MARK).write_bytes(b"")


def _a_link_as_its_mark(folder: Path) -> None:
    (folder / scratch.MARK).rename(folder.parents[1] / "mark")
    (folder / scratch.MARK).symlink_to(folder.parents[1] / "mark")


def _a_pipe_as_its_mark(folder: Path) -> None:
    (folder / scratch.MARK).unlink()
    os.mkfifo(folder / scratch.MARK)


@pytest.mark.parametrize(
    "doubt",
    [_young, _open_to_all, _unmarked, _another_mark, _empty_mark, _a_link_as_its_mark, _a_pipe_as_its_mark],
    ids=lambda doubt: doubt.__name__.strip("_"),
)
def test_a_folder_that_is_not_surely_left_by_a_relay_stays(place: Path, doubt: Callable[[Path], None]) -> None:
    dead = held.left(place)
    held.age(dead)
    doubt(dead)
    if doubt is not _young:
        held.age(dead)
    assert scratch.sweep() == []
    assert (dead / "sub" / "socket").exists()


@pytest.mark.parametrize("name", ["relay-door-1.4-src", "relay-door-1.4-ABCDEFGH", "relay-my-notes-1.4-abcdefgh"])
def test_a_folder_by_another_name_stays_though_a_mark_lies_in_it(place: Path, name: str) -> None:
    dead = held.left(place)
    other = dead.rename(place / name)
    held.age(other)
    assert scratch.sweep() == []
    assert (other / "sub" / "socket").exists()


def test_a_folder_of_another_machine_or_of_before_a_boot_stays_for_a_day(place: Path) -> None:
    dead = held.left(place)
    mark = dead / scratch.MARK
    mark.write_bytes(mark.read_bytes().partition(b" ")[0] + b" 00000000-0000-0000-0000-000000000000")
    now = dead.joinpath("sub").stat().st_mtime
    os.utime(dead, (now, now - 2 * scratch.HOUR))
    assert scratch.sweep() == []
    os.utime(dead, (now, now - scratch.DAY - scratch.HOUR))
    assert scratch.sweep() == [dead]


def test_a_folder_that_another_sweep_is_at_is_left_to_it(place: Path) -> None:
    dead = held.left(place)
    with (dead / scratch.MARK).open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert scratch.sweep() == []
    assert scratch.sweep() == [dead]


def test_a_program_that_was_started_meanwhile_does_not_keep_a_folder_that_is_left(place: Path) -> None:
    script = """
import os, signal, subprocess
from relay.host import scratch
with scratch.folder("door") as folder:
    lasting = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
    print(folder, lasting.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        check=False,
        timeout=SAFETY,
    )
    name, pid = done.stdout.split()
    try:
        folder = Path(os.fsdecode(name))
        held.age(folder)
        assert folder.parent == place
        assert scratch.sweep() == [folder]
    finally:
        os.kill(int(pid), 9)

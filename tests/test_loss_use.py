"""Who uses a worktree: by its folder, an open file, or another name; and who may do so, since nobody can read that."""

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.reaper.scenes import alerts, reap, repaired, with_a_worktree_kept, worktrees
from tests.world import CHECKOUT, SAFETY, World

SLEEP = "import sys, time; print('there', flush=True); time.sleep(600)"


@contextmanager
def _living(*command: str, folder: Path | str = "/") -> Iterator[int]:
    """Keep a program alive that says when it is there."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as there:
        try:
            assert there.stdout is not None
            assert there.stderr is not None
            assert select.select([there.stdout], [], [], SAFETY)[0], "it never came so far"
            if not there.stdout.readline():
                pytest.skip(f"no such program can be started here: {there.stderr.read()!r}")
            yield there.pid
        finally:
            there.kill()


def _stays_and_then_goes(world: World, place: Path, *command: str, folder: Path | str = "/") -> None:
    with _living(*command, folder=folder):
        events = reap(world)
        assert alerts(events) == ["worktree"], events
        assert (place / ".git").is_file()
    assert "worktree" in repaired(reap(world))
    assert worktrees() == []


def test_a_worktree_in_which_a_file_is_open_for_writing_stays(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    _stays_and_then_goes(world, place, sys.executable, "-c", f"file = open({str(place / 'dump.log')!r}, 'w'); {SLEEP}")


@pytest.mark.parametrize("below", [".", "deep/er"])
def test_a_worktree_that_has_another_name_in_a_container_stays_while_somebody_works_there(
    tmp_path: Path, below: str
) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    (place / "deep" / "er").mkdir(parents=True)
    mount = tmp_path / "mount"
    mount.mkdir()
    text = f"mount --bind '{place}' '{mount}' && cd '{mount}/{below}' && exec {sys.executable} -c \"{SLEEP}\""
    apart = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child")
    _stays_and_then_goes(world, place, *apart, "sh", "-c", text)


def test_a_worktree_stays_while_a_process_that_may_not_be_read_may_be_there(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    if os.geteuid() or shutil.which("setpriv") is None:
        pytest.skip("only root can be kept from reading its own processes")
    blind = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", sys.executable, "-m", "relay", "reap"]
    with _living(sys.executable, "-c", SLEEP, folder=place):
        ran = subprocess.run(
            blind,
            cwd=world.root,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            timeout=SAFETY,
            check=False,
        )
        if "setpriv" in ran.stderr:
            pytest.skip(f"no power can be dropped here: {ran.stderr}")
        assert ran.returncode == 0, ran
        assert place.exists(), ran.stdout


def test_a_process_of_another_user_that_cannot_be_read_holds_up_nothing(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    if os.geteuid() or shutil.which("setpriv") is None:
        pytest.skip("only root can be another user")
    with _living("setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", "echo there; exec sleep 600"):
        assert "worktree" in repaired(reap(world))
    assert not place.exists()

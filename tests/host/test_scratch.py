"""Temporary folders of Relay's own go with it; what a killed one left is removed later, and nobody else's."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from relay.host import pids, scratch


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def _left(place: Path, signature: str, *, old: bool = True) -> Path:
    path = place / f"relay-stage-{signature}-abc"
    (path / "objects").mkdir(parents=True)
    if old:
        os.utime(path, (1, 1))
    return path


def test_a_folder_is_there_for_this_user_alone_and_then_it_is_not(place: Path) -> None:
    with scratch.folder("stage") as folder:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "sub").mkdir()
        (folder / "sub").chmod(0)
    assert list(place.iterdir()) == []


def test_what_a_killed_relay_left_is_removed_and_nothing_else(place: Path) -> None:
    with subprocess.Popen(["sleep", "0"]) as gone:
        signature = pids.signature(pids.process(gone.pid))
    dead, mine, young = (
        _left(place, signature),
        _left(place, pids.signature()),
        _left(place, f"{gone.pid}.7", old=False),
    )
    other = place / "relay-notes-of-mine"
    other.mkdir()
    with scratch.folder("stage"):
        assert not dead.exists()
        assert mine.exists()
        assert young.exists()
        assert other.exists()

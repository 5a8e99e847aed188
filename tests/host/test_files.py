"""Files: whole or not at all, and reads that follow no link."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from relay.errors import Exit, RelayError
from relay.host import files
from tests.world import CHECKOUT, SAFETY


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_written_file_has_the_content_and_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    files.write(path, b"one")
    files.write(path, b"two\0\xff", mode=0o644)
    assert path.read_bytes() == b"two\0\xff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert names(tmp_path) == ["receipt.json"]


def test_a_write_that_takes_only_a_part_is_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    files.write(tmp_path / "receipt.json", b"0123456789")
    assert (tmp_path / "receipt.json").read_bytes() == b"0123456789"


def test_a_full_disk_keeps_the_old_file_and_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "receipt.json"
    files.write(path, b"old")
    write = os.write

    def full(descriptor: int, data: memoryview) -> int:
        if len(data) < 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:5])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RelayError) as caught:
        files.write(path, b"0123456")
    assert caught.value.message == f"no space left to write `{path}`"
    assert "df -h" in caught.value.hint
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["receipt.json"]


def test_the_file_is_synced_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def syncing(descriptor: int) -> None:
        done.append("sync")
        sync(descriptor)

    def renaming(old: str, new: str) -> None:
        done.append("rename")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", renaming)
    files.write(tmp_path / "receipt.json", b"x")
    files.sync_folder(tmp_path)
    assert done == ["sync", "rename", "sync"]


def test_a_write_never_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("kept")
    (tmp_path / "mine").symlink_to("theirs")
    with pytest.raises(RelayError, match="is a link"):
        files.write(tmp_path / "mine", b"x")
    assert (tmp_path / "theirs").read_text() == "kept"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match=r"nowhere/receipt\.json") as caught:
        files.write(tmp_path / "nowhere" / "receipt.json", b"x")
    assert caught.value.exit_code is Exit.HUMAN


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_bytes(b"x" * 100)
    assert files.read(path, 100) == b"x" * 100
    with pytest.raises(RelayError, match="larger than 99 bytes"):
        files.read(path, 99)


def test_a_file_that_is_not_there_says_so_plainly(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "note.md")
    with pytest.raises(FileNotFoundError):
        files.read_below(tmp_path, "legs/note.md")


def test_only_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "folder", "pipe"):
        with pytest.raises(RelayError, match=name):
            files.read(tmp_path / name)
        with pytest.raises(RelayError, match=name):
            files.read_below(tmp_path, name)
    with pytest.raises(RelayError, match="/dev/zero"):
        files.read(Path("/dev/zero"))


def test_reading_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").write_text("x")
    before = open_files()
    for name in ("folder", "a", "a/b", "folder/x", "nowhere/x"):
        with pytest.raises((RelayError, FileNotFoundError)):
            files.read_below(tmp_path, name, 0)
    assert open_files() == before


def test_a_file_below_a_folder_is_read_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.py").write_text("found")
    assert files.read_below(tmp_path, "a/b/c.py") == b"found"


def test_a_link_on_the_way_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "sub").symlink_to("../outside")
    with pytest.raises(RelayError, match="through a link"):
        files.read_below(tmp_path / "tree", "sub/secret")


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a\0b"])
def test_a_path_that_climbs_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RelayError, match="not a plain path"):
        files.read_below(tmp_path, name)


def test_a_hash_is_the_one_that_everybody_knows() -> None:
    assert files.sha256(b"relay") == hashlib.sha256(b"relay").hexdigest()


def test_a_tree_goes_with_everything_in_it_and_nothing_beside_it(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "kept").write_text("kept")
    (tree / "locked" / "inner").mkdir(parents=True)
    (tree / "locked" / "inner" / "file").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "dangling").symlink_to("nowhere")
    os.mkfifo(tree / "pipe")
    (tree / "locked" / "inner").chmod(0)
    (tree / "locked").chmod(0o500)
    files.remove_tree(tree)
    assert not os.path.lexists(tree)
    assert (outside / "kept").read_text() == "kept"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755


def test_a_link_to_a_tree_goes_and_the_tree_stays(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "link").symlink_to("tree")
    files.remove_tree(tmp_path / "link")
    assert names(tmp_path) == ["tree"]


def test_what_is_gone_already_is_no_failure(tmp_path: Path) -> None:
    files.remove_tree(tmp_path / "nothing" / "here")
    assert names(tmp_path) == []


def test_a_tree_too_deep_to_name_goes_as_well(tmp_path: Path) -> None:
    dig = "import os\nfor _ in range(1500):\n    os.mkdir('d' * 10)\n    os.chdir('d' * 10)\nopen('f', 'w').close()\n"
    (tmp_path / "deep").mkdir()
    subprocess.run([sys.executable, "-c", dig], cwd=tmp_path / "deep", check=True, timeout=SAFETY)
    files.remove_tree(tmp_path / "deep")
    assert names(tmp_path) == []


def test_a_home_is_the_variable_then_home_then_the_user_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/var/my/state")
    assert files.state_home() == Path("/var/my/state")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert files.state_home() == Path("/home/me/.local/state")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert files.config_home() == Path("/home/me/.config")
    monkeypatch.setenv("HOME", "")
    assert files.config_home().is_absolute()


def test_a_user_without_any_home_is_told_what_to_set() -> None:
    program = (
        "from relay.host import files\nfrom relay.errors import RelayError\nimport os\nos.getuid = lambda: 54321\n"
    )
    program += "try:\n    files.state_home()\nexcept RelayError as e:\n    print(e.message, e.hint, sep='|')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=SAFETY,
    )
    message, hint = done.stdout.split("|")
    assert "no home folder" in message
    assert hint.startswith("set it: export XDG_STATE_HOME=")

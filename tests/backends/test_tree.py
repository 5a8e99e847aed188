"""The tools that read and write files: nothing leads out of the worktree, whatever is planted in it."""

import os
from pathlib import Path

import pytest

from relay.backends import tree
from tests.backends.hands import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


OUTSIDE = ["../out.txt", "/etc/hostname", "link/out.txt", "file-link", "sub/../../out.txt"]


@pytest.fixture
def planted(desk: Desk) -> Path:
    """Plant links that lead out of the worktree, and return the file they lead to."""
    out = desk.root.parent / "out.txt"
    out.write_text("outside\n")
    (desk.root / "link").symlink_to(desk.root.parent)
    (desk.root / "file-link").symlink_to(out)
    (desk.root / "sub").mkdir()
    return out


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_worktree(desk: Desk, planted: Path, path: str) -> None:
    for done in (
        desk("read", path=path),
        desk("write", path=path, content="x"),
        desk("edit", path=path, old="outside", new="x"),
    ):
        assert done.text == f"`{path}` is outside your folder."
    assert planted.read_text() == "outside\n"


@pytest.mark.parametrize("path", [".git", ".git/config", "sub/.GIT/hooks/x", "sub/../.git/config", "to-git/config"])
def test_what_is_gits_own_is_neither_read_nor_written(desk: Desk, path: str) -> None:
    desk.git("init", "-q")
    (desk.root / "sub").mkdir()
    (desk.root / "to-git").symlink_to(".git")
    for done in (desk("read", path=path), desk("write", path=path, content="x")):
        assert done.text == f"`{path}` is git's own, and out of bounds."
    assert ".git/" not in desk("read", path=".").text.splitlines()


def test_a_link_inside_the_worktree_is_followed_and_stays_a_link(desk: Desk) -> None:
    desk("write", path="real.txt", content="one\n")
    (desk.root / "link.txt").symlink_to("real.txt")
    assert desk("edit", path="link.txt", old="one", new="two").ok
    assert (desk.root / "link.txt").is_symlink()
    assert (desk.root / "real.txt").read_text() == "two\n"


def test_a_hard_link_to_elsewhere_is_not_written_through(desk: Desk, planted: Path) -> None:
    os.link(planted, desk.root / "hard")
    assert desk("edit", path="hard", old="outside", new="inside").ok
    assert planted.read_text() == "outside\n"


def test_a_fifo_a_loop_and_a_huge_file_hold_nobody_up(desk: Desk) -> None:
    os.mkfifo(desk.root / "fifo")
    (desk.root / "loop").symlink_to("loop")
    with (desk.root / "huge").open("wb") as stream:
        stream.truncate(tree.LIMIT + 1)
    assert "is not a plain file" in desk("read", path="fifo").text
    assert "is not a plain file" in desk("write", path="fifo", content="x").text
    assert not desk("read", path="loop").ok
    assert not desk("write", path="loop", content="x").ok
    assert desk("read", path="huge").text.startswith("`huge` is larger than")
    assert not desk("read", path="a\0b").ok


def test_a_folder_that_is_swapped_for_a_link_in_between_leads_nowhere(desk: Desk, planted: Path) -> None:
    below = tree.inside(desk.root, "sub/out.txt")
    (desk.root / "sub").rmdir()
    (desk.root / "sub").symlink_to(desk.root.parent)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        os.close(tree._folder(desk.root, below.split("/")[:-1], make=True))  # noqa: SLF001 - between two steps of it
    assert planted.read_text() == "outside\n"


def test_a_folder_is_no_file_to_write(desk: Desk) -> None:
    (desk.root / "sub").mkdir()
    assert "is not a plain file" in desk("write", path="sub", content="x").text
    assert "is a folder" in desk("write", path=".", content="x").text
    assert not desk("write", path="sub/" + "x" * 300, content="x").ok


def test_what_is_wrong_with_a_file_is_said_without_where_the_worktree_is(desk: Desk) -> None:
    os.mkfifo(desk.root / "fifo")
    (desk.root / "loop").symlink_to("loop")
    said = [desk("read", path=path).text for path in ("fifo", "loop", "nowhere/x", str(desk.root / "fifo"))]
    assert all(desk.root.name + "/" not in text for text in said[:3])
    assert said[0].startswith("`fifo` ")

"""What is mounted below a tree is no part of it: nothing of either goes, and the one who wanted that is told where."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relay.host import files
from tests.world import CHECKOUT, SAFETY

APART = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]
REMOVE = """
import sys
from pathlib import Path
from relay.errors import RelayError
from relay.host import files
path = Path(sys.argv[1])
print(files.mounted_below(path))
try:
    files.remove_tree(path)
    print("removed")
except RelayError as error:
    print(error.message, error.hint, sep="|")
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a tree with a file and a folder to mount something on, and beside it a folder that is precious."""
    for folder in ("tree/a first", "tree/target", "precious/sub"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("tree/a first/file", "tree/file", "precious/thesis", "precious/sub/notes"):
        (tmp_path / file).write_text("years")
    return tmp_path / "tree"


def _removal(tree: Path, mount: str, path: Path | None = None) -> tuple[str, str]:
    """Mount as `mount` says, where no other process sees it, and remove the tree: return the mount found, and the end.

    The mounts are gone afterwards.
    """
    if shutil.which("unshare") is None:
        pytest.skip("`unshare` of util-linux is not here, so nothing can be mounted")
    remove = shlex.join([sys.executable, "-c", REMOVE, str(path or tree)])
    done = subprocess.run(
        [*APART, "sh", "-euc", f"{mount}\n{remove}"],
        cwd=tree.parent,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        check=False,
        timeout=SAFETY,
    )
    if done.stderr.startswith((b"unshare:", b"mount:")):
        pytest.skip(f"nothing can be mounted here: {done.stderr!r}")
    assert done.returncode == 0, done
    found, _, end = done.stdout.decode().rstrip("\n").rpartition("\n")
    return found, end


def _listed(tree: Path) -> list[str]:
    return sorted(str(path.relative_to(tree.parent)) for path in tree.parent.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("mount", "at"),
    [
        ("mount --bind precious tree/target", "tree/target"),
        ("mount --bind precious/thesis tree/file", "tree/file"),
        ("mount --bind precious tree", "tree"),
        ("mount -t tmpfs none tree/target", "tree/target"),
        ("mkdir -p 'tree/a first/b\\c'; mount --bind precious 'tree/a first/b\\c'", "tree/a first/b\\c"),
        ("mkdir \"tree/$(printf 'a\\rb')\"; mount --bind precious \"tree/$(printf 'a\\rb')\"", "tree/a\rb"),
    ],
    ids=["a folder of the same disk", "a file", "all of it", "another disk", "a name with a blank", "a name with a CR"],
)
def test_a_tree_with_a_mount_below_it_stays_whole_and_so_does_what_is_mounted(tree: Path, mount: str, at: str) -> None:
    before = _listed(tree)
    found, end = _removal(tree, mount)
    where = f"{tree.parent}/{at}"
    message, hint = end.split("|")
    assert found == where
    assert message == f"cannot remove `{tree}`: something is mounted at `{where}`"
    assert shlex.split(hint.partition("again: ")[2]) == ["umount", where]
    assert _listed(tree) == before


def test_a_mount_is_seen_where_the_tree_is_named_through_a_link(tree: Path) -> None:
    (tree.parent / "link").symlink_to(tree.parent)
    before = _listed(tree)
    found, _ = _removal(tree, "mount --bind precious tree/target", tree.parent / "link" / "tree")
    assert found == str(tree / "target")
    assert _listed(tree) == before


def test_where_the_kernel_lists_no_mounts_another_disk_is_seen_by_its_number(tree: Path) -> None:
    before = _listed(tree)
    found, end = _removal(tree, "mount -t tmpfs none 'tree/a first'\nmount -t tmpfs none /proc")
    assert found == str(tree / "a first")
    assert "something is mounted" in end
    assert _listed(tree) == before


def test_a_tree_goes_where_no_mount_is_listed_and_none_is_there(tree: Path) -> None:
    assert _removal(tree, "mount -t tmpfs none /proc") == ("None", "removed")
    assert not tree.exists()


def test_a_mount_beside_a_tree_and_a_link_to_one_hold_nothing_up(tree: Path) -> None:
    (tree / "link").symlink_to(tree.parent / "tree-2")
    mount = "mkdir tree-2\nmount --bind precious tree-2"
    assert _removal(tree, mount) == ("None", "removed")
    assert not tree.exists()
    assert (tree.parent / "precious" / "sub" / "notes").exists()


def test_nothing_is_mounted_below_what_is_not_there(tmp_path: Path) -> None:
    assert files.mounted_below(tmp_path / "nothing" / "here") is None

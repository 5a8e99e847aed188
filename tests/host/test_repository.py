"""Finding a repository: the same answer as git, without running it, whatever the environment says."""

import subprocess
from pathlib import Path

import pytest

from relay.errors import Exit, RelayError
from relay.host import repository
from tests.world import SAFETY

IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always")


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *args], cwd=folder, capture_output=True, text=True, check=True, timeout=SAFETY
    )
    return done.stdout.rstrip("\n")


def make(folder: Path, *options: str) -> Path:
    """Make a repository with one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", *options)
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def agrees_with_git(found: repository.Repository, folder: Path) -> None:
    """Check against git itself where the repository is."""
    answer = git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir", "--git-dir")
    common, git_dir = (Path(line).resolve() for line in answer.splitlines())
    assert (found.common, found.git_dir) == (common, git_dir)
    if found.top is not None:
        assert found.top == Path(git(folder, "rev-parse", "--show-toplevel")).resolve()


def test_a_checkout_is_found_from_its_top_and_from_below(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    (root / "a" / "b").mkdir(parents=True)
    for folder in (root, root / "a" / "b"):
        found = repository.discover(folder)
        agrees_with_git(found, folder)
        assert (found.top, found.main_top) == (root, root)


def test_a_linked_worktree_knows_the_main_checkout(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    git(root, "worktree", "add", "-q", "--detach", "../w")
    found = repository.discover(tmp_path / "w")
    agrees_with_git(found, tmp_path / "w")
    assert (found.common, found.top, found.main_top) == (root / ".git", tmp_path / "w", root)
    assert found.git_dir == root / ".git" / "worktrees" / "w"


def test_a_checkout_through_a_link_is_the_same_checkout(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    (root / "sub").mkdir()
    (tmp_path / "link").symlink_to("r")
    assert repository.discover(tmp_path / "link" / "sub") == repository.discover(root)


def test_a_bare_repository_has_no_checkout(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    git(tmp_path, "clone", "-q", "--bare", "r", "b.git")
    for folder in (tmp_path / "b.git", tmp_path / "b.git" / "refs"):
        found = repository.discover(folder)
        assert found.common == found.git_dir == tmp_path / "b.git"
        assert (found.top, found.main_top) == (None, None)
    assert root.exists()


def test_a_worktree_of_a_bare_repository_has_no_main_checkout(tmp_path: Path) -> None:
    make(tmp_path / "r")
    git(tmp_path, "clone", "-q", "--bare", "r", "b/.git")
    git(tmp_path / "b" / ".git", "worktree", "add", "-q", "--detach", "../w")
    found = repository.discover(tmp_path / "b" / "w")
    agrees_with_git(found, tmp_path / "b" / "w")
    assert (found.top, found.main_top) == (tmp_path / "b" / "w", None)
    assert repository.discover(tmp_path / "b").top is None


def test_a_submodule_is_a_repository_of_its_own(tmp_path: Path) -> None:
    make(tmp_path / "s")
    root = make(tmp_path / "r")
    git(root, "submodule", "add", "-q", str(tmp_path / "s"), "lib")
    found = repository.discover(root / "lib")
    agrees_with_git(found, root / "lib")
    assert (found.top, found.main_top) == (root / "lib", root / "lib")


def test_a_git_dir_that_lies_elsewhere_is_followed(tmp_path: Path) -> None:
    root = make(tmp_path / "r", "--separate-git-dir", str(tmp_path / "away"))
    found = repository.discover(root)
    agrees_with_git(found, root)
    assert (found.common, found.top, found.main_top) == (tmp_path / "away", root, root)


def test_a_git_dir_itself_is_no_checkout(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    found = repository.discover(root / ".git")
    assert (found.common, found.top, found.main_top) == (root / ".git", None, root)


def test_a_repository_without_commits_is_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert repository.discover(tmp_path).top == tmp_path


def test_an_inherited_git_dir_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, other = make(tmp_path / "r"), make(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert repository.discover(root).common == root / ".git"


def test_an_empty_git_folder_is_passed_over_as_git_does(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    (root / "sub" / ".git").mkdir(parents=True)
    found = repository.discover(root / "sub")
    agrees_with_git(found, root / "sub")
    assert found.top == root


def test_outside_of_every_repository_one_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="is not in a git repository") as caught:
        repository.discover(tmp_path)
    assert caught.value.exit_code is Exit.USAGE
    with pytest.raises(RelayError, match="there is no folder"):
        repository.discover(tmp_path / "nowhere")


@pytest.mark.parametrize("pointer", [b"", b"gitdir: ../gone\n", b"gitdir:\n", b"garbage", b"\0\xff"])
def test_a_pointer_that_leads_nowhere_is_named(tmp_path: Path, pointer: bytes) -> None:
    root = make(tmp_path / "r")
    git(root, "worktree", "add", "-q", "--detach", "w")
    (root / "w" / ".git").write_bytes(pointer)
    with pytest.raises(RelayError, match=r"w/\.git"):
        repository.discover(root / "w")


def test_a_pointer_loop_is_named(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RelayError, match="there is no folder"):
        repository.discover(tmp_path / "loop")

"""The command layer: the same answer whatever the caller's environment, settings and hooks say."""

import os
import select
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import pytest

from relay.errors import Exit, Interrupted, RelayError
from relay.host import clock, git, pids, repository
from relay.host.repository import Repository
from tests.world import CHECKOUT, SAFETY, World

ADA = git.Identity(name="Ada", email="ada@example.org")


@pytest.fixture
def project(tmp_path: Path) -> World:
    return World(tmp_path, {"a.txt": "one\ntwo\nthree\n", "sub/b.txt": "b\n"})


@pytest.fixture
def repo(project: World) -> Repository:
    return repository.discover(project.root)


def fake(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program in place of git, first on PATH."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    program = bin_folder / "git"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_DIR", "other"),
        ("GIT_WORK_TREE", "other"),
        ("GIT_COMMON_DIR", "other"),
        ("GIT_INDEX_FILE", "other/index"),
        ("GIT_OBJECT_DIRECTORY", "other/objects"),
        ("GIT_NAMESPACE", "elsewhere"),
        ("GIT_CONFIG_COUNT", "nonsense"),
        ("GIT_CONFIG_PARAMETERS", "'core.bare'='true'"),
        ("GIT_CONFIG_GLOBAL", "other/config"),
        ("GIT_ICASE_PATHSPECS", "1"),
        ("GIT_TRACE", "1"),
        ("GIT_EXTERNAL_DIFF", "/bin/false"),
        ("GIT_CEILING_DIRECTORIES", "/"),
        ("GIT_PAGER", "/bin/false"),
    ],
)
def test_an_inherited_variable_changes_nothing(
    project: World, repo: Repository, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    first = project.git("rev-parse", "HEAD")
    second = project.commit({"a.txt": "one\n2\nthree\n"})

    def everything() -> tuple[object, ...]:
        status = git.run(
            repo, "-C", str(project.root), "status", "--porcelain", env={"GIT_WORK_TREE": str(project.root)}
        )
        return status, git.resolve(repo, "HEAD"), git.refs(repo), git.diff(repo, first, second), git.identity(repo)

    expected = everything()
    assert expected[0] == b""
    assert expected[4] == ADA
    monkeypatch.setenv(name, value)
    assert everything() == expected


def test_a_commit_is_named_in_full_or_not_at_all(project: World, repo: Repository) -> None:
    head = project.git("rev-parse", "HEAD")
    assert git.resolve(repo, "refs/heads/main") == head
    assert git.resolve(repo, head[:8]) == head
    assert git.resolve(repo, "refs/heads/none") is None
    assert git.resolve(repo, "--all") is None
    assert git.resolve(repo, "HEAD:a.txt") is None
    assert git.resolve(repo, "") is None


def test_a_tag_does_not_hide_the_branch_of_its_name(project: World, repo: Repository) -> None:
    project.git("tag", "main")
    project.commit({"a.txt": "new\n"})
    assert git.full_name(repo, "main") == "refs/heads/main"
    project.git("tag", "v1")
    assert git.full_name(repo, "v1") == "refs/tags/v1"
    assert git.full_name(repo, "refs/tags/main") == "refs/tags/main"
    assert git.full_name(repo, "nothing") is None


def test_the_branch_that_is_checked_out_is_known_and_a_detached_head_has_none(project: World, repo: Repository) -> None:
    assert git.head_branch(repo) == "refs/heads/main"
    project.git("checkout", "-q", "--detach")
    assert git.head_branch(repo) is None


def test_an_empty_repository_has_no_commit(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "new")], check=True)
    repo = repository.discover(tmp_path / "new")
    assert git.resolve(repo, "HEAD") is None
    assert git.refs(repo) == {}


@pytest.mark.parametrize("value", ["--output=/tmp/x", "-d", "", "a\0b"])
def test_a_value_that_looks_like_an_option_never_reaches_git(repo: Repository, value: str) -> None:
    with pytest.raises(RelayError, match="cannot be the name"):
        git.diff(repo, value, "HEAD")


def test_a_ref_moves_only_from_where_it_is_said_to_stand(project: World, repo: Repository) -> None:
    first = project.git("rev-parse", "HEAD")
    second = project.commit({"a.txt": "x\n"})
    git.update_ref(repo, "refs/relay/run/01", first, None)
    with pytest.raises(RelayError, match="does not stand at") as caught:
        git.update_ref(repo, "refs/relay/run/01", second, None)
    assert caught.value.exit_code is Exit.GATE
    with pytest.raises(RelayError, match="does not stand at"):
        git.update_ref(repo, "refs/relay/run/01", first, second)
    git.update_ref(repo, "refs/relay/run/01", second, first)
    assert git.refs(repo, "refs/relay/") == {"refs/relay/run/01": second}
    with pytest.raises(RelayError, match="does not stand at"):
        git.delete_ref(repo, "refs/relay/run/01", first)
    git.delete_ref(repo, "refs/relay/run/01", second)
    with pytest.raises(RelayError, match="does not stand at"):
        git.delete_ref(repo, "refs/relay/run/01", second)
    assert git.refs(repo, "refs/relay/") == {}


def test_a_commit_is_written_without_hook_signature_or_checkout(project: World, repo: Repository) -> None:
    marker = project.folder / "ran"
    for hook in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "prepare-commit-msg"):
        path = project.root / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
        path.chmod(0o755)
    project.git("config", "commit.gpgsign", "true")
    project.git("config", "user.signingkey", "none")
    head = project.git("rev-parse", "HEAD")
    with clock.fix(datetime(2026, 11, 29, 2, 30, tzinfo=UTC)):
        made = git.commit_tree(repo, git.tree(repo, head), [head], "tïtle\0\n\nbody\n", ADA)
    git.update_ref(repo, "refs/relay/run/01", made, None)
    assert not marker.exists()
    shown = project.git("cat-file", "commit", made)
    assert shown.count("Ada <ada@example.org> 1795919400 +0000") == 2
    assert shown.endswith("\n\ntïtle\n\nbody")
    assert "gpgsig" not in shown
    assert project.git("rev-parse", "HEAD") == head
    assert git.exists(repo, made)
    assert not git.exists(repo, "0" * 40)


def test_objects_and_refs_are_synced_to_disk(repo: Repository) -> None:
    assert git.run(repo, "config", "core.fsync") == b"committed,loose-object,reference\n"


def test_nobody_is_named_where_the_user_is_not_known(project: World, repo: Repository) -> None:
    assert git.identity(repo) == ADA
    project.git("config", "--unset", "user.email")
    before = (project.root / ".git/config").read_bytes()
    assert git.identity(repo) == git.NOBODY
    assert (project.root / ".git/config").read_bytes() == before


def test_a_replaced_object_is_seen_as_it_is(project: World, repo: Repository) -> None:
    head = project.git("rev-parse", "HEAD")
    tree = git.tree(repo, head)
    other = project.commit({"a.txt": "other\n"})
    project.git("replace", head, other)
    assert git.tree(repo, head) == tree


def test_a_sha256_repository_works(tmp_path: Path) -> None:
    root = tmp_path / "long"
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(root)], check=True)
    repo = repository.discover(root)
    tree = git.run(repo, "mktree", stdin=b"").decode().strip()
    made = git.commit_tree(repo, tree, [], "first", ADA)
    git.update_ref(repo, "refs/heads/made", made, None)
    assert len(made) == 64
    assert git.resolve(repo, "refs/heads/made") == made


def test_a_failure_names_the_command_and_the_first_complaint(repo: Repository) -> None:
    with pytest.raises(RelayError, match=r"git `cat-file` failed with 128: fatal: ") as caught:
        git.run(repo, "cat-file", "blob", "HEAD:none")
    assert caught.value.exit_code is Exit.HUMAN


def test_a_git_that_hangs_is_ended_with_its_children(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, f"sleep 1000 & echo $! >{tmp_path}/child; wait", monkeypatch)
    with pytest.raises(RelayError, match=r"took longer than 0.5 s"):
        git.run(repo, "status", timeout=0.5)
    assert gone(int((tmp_path / "child").read_text()))


def test_an_interruption_ends_git_and_passes_through(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        raise Interrupted(number)

    fake(tmp_path, f"sleep 1000 & echo $! >{tmp_path}/child; kill -TERM {os.getpid()}; wait", monkeypatch)
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with pytest.raises(Interrupted):
            git.run(repo, "status")
        assert signal.getsignal(signal.SIGTERM) is interrupt
    finally:
        signal.signal(signal.SIGTERM, before)
    assert gone(int((tmp_path / "child").read_text()))


def gone(pid: int) -> bool:
    """Wait until a process that was killed has ended, and tell whether it did."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], SAFETY)[0])
    finally:
        os.close(process)


def test_a_lock_that_another_git_holds_is_waited_for(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(
        tmp_path,
        f"""echo x >>{tmp_path}/tries
        [ $(wc -l <{tmp_path}/tries) -gt 2 ] && echo done && exit 0
        echo "fatal: Unable to create '/r/.git/packed-refs.lock': File exists." >&2; exit 128""",
        monkeypatch,
    )
    assert git.run(repo, "pack-refs") == b"done\n"
    assert (tmp_path / "tries").read_text() == "x\n" * 3


def test_a_full_disk_is_told_as_such(repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, 'echo "error: unable to write file: No space left on device" >&2; exit 1', monkeypatch)
    with pytest.raises(RelayError, match="no space left on the disk"):
        git.run(repo, "commit-tree", ok=(0, 1))


def test_git_is_found_by_absolute_path_only(repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, f"touch {tmp_path}/ran", monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "bin:./bin::/usr/bin:/bin")
    assert git.resolve(repo, "HEAD")
    assert not (tmp_path / "ran").exists()
    monkeypatch.setenv("PATH", "bin")
    with pytest.raises(RelayError, match="git is not on PATH"):
        git.resolve(repo, "HEAD")


def test_importing_the_module_does_not_import_gitpython() -> None:
    text = "import sys, relay.host.git; sys.exit('git' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], cwd=CHECKOUT, timeout=SAFETY, check=False)
    assert done.returncode == 0


def test_a_git_ends_at_its_limit_though_what_it_started_keeps_its_pipes(tmp_path: Path) -> None:
    world = World(tmp_path)
    way = tmp_path / "way"
    way.write_text(f"#!/bin/sh\nsetsid sleep 60 &\necho $! > {tmp_path}/kept\nexec sleep 60\n")
    way.chmod(0o700)
    repo = repository.discover(world.root)
    with pytest.raises(RelayError, match="took longer than 1 s and was ended"):
        git.call(repo, "ls-remote", "ssh://127.0.0.1/x", env={"GIT_SSH_COMMAND": str(way)}, timeout=1)
    kept = int((tmp_path / "kept").read_text())
    assert pids.stat(kept), "it was waited for"
    pids.end([kept])

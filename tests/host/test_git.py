"""The command layer: the same answer whatever the caller's environment, settings and hooks say."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import pytest

from relay.errors import Exit, Interrupted, RelayError
from relay.host import clock, git, repository
from relay.host.repository import Repository
from relay.terms import Change
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


HOSTILE = {
    "diff.external": "./tool",
    "diff.noprefix": "true",
    "diff.mnemonicPrefix": "true",
    "diff.context": "0",
    "diff.renames": "false",
    "diff.planted.textconv": "./tool",
    "diff.planted.command": "./tool",
    "color.ui": "always",
    "color.diff": "always",
    "core.pager": "./tool",
    "core.fsmonitor": "./tool",
}


def test_a_diff_is_the_same_whatever_the_settings_say(project: World, repo: Repository, tmp_path: Path) -> None:
    first = project.commit({".gitattributes": "* diff=planted\n", "t ab.txt": "x\n"})
    second = project.commit({"a.txt": "one\n2\nthree\n"})
    plain = git.diff(repo, first, second)
    assert plain.startswith(b"diff --git a/a.txt b/a.txt\n")
    assert b"\n one\n-two\n+2\n three\n" in plain
    (project.root / "tool").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (project.root / "tool").chmod(0o755)
    for name, value in HOSTILE.items():
        project.git("config", name, value)
    assert git.diff(repo, first, second) == plain
    assert git.numstat(repo, first, second) == (Change(path="a.txt", added=1, removed=1),)
    assert not (tmp_path / "ran").exists()


ODD = {
    "new\nline": "b\n",
    'quo"te': "b\n",
    "-rf": "b\n",
    ":(top)magic": "b\n",
    "with blank ": "b\n",
    "tab\there": "b\n",
    "ünï": "b\n",
    os.fsdecode(b"\xff"): "b\n",
}


def test_odd_names_are_counted_and_found(project: World, repo: Repository) -> None:
    first = project.git("rev-parse", "HEAD")
    project.write({f"odd/{name}": text for name, text in ODD.items()})
    project.git("add", "odd")
    project.git("commit", "-qm", "odd")
    second = project.git("rev-parse", "HEAD")
    assert set(git.changed_lines(repo, first, second)) == {f"odd/{name}" for name in ODD}
    assert {change.path for change in git.numstat(repo, first, second)} == {git.label(f"odd/{name}") for name in ODD}
    assert set(git.paths(repo, second, "odd")) == {f"odd/{name}" for name in ODD}
    for name in ODD:
        assert git.blob(repo, second, f"odd/{name}") == b"b\n"
        assert git.paths(repo, second, f"odd/{name}") == [f"odd/{name}"]
    assert git.paths(repo, second, "o*") == []
    git.label(os.fsdecode(b"\xff")).encode("utf-8")


def test_changed_lines_are_those_of_the_new_side(project: World, repo: Repository) -> None:
    first = project.commit({"n.txt": "".join(f"{n}\n" for n in range(1, 21)), "gone.txt": "x\n", "plus.txt": "a\n"})
    changed = "".join("new\nnewer\n" if n == 5 else f"{n}\n" for n in range(1, 20))
    (project.root / "gone.txt").unlink()
    project.git("commit", "-qam", "remove")
    second = project.commit({"n.txt": changed, "plus.txt": "++ b/x\n@@ -1 +1 @@", "bin": b"\0\1"})
    assert git.changed_lines(repo, first, second) == {"n.txt": ((5, 6),), "plus.txt": ((1, 2),)}
    assert Change(path="bin", added=-1, removed=-1) in git.numstat(repo, first, second)
    assert Change(path="gone.txt", added=0, removed=1) in git.numstat(repo, first, second)


def test_a_file_that_is_not_there_is_none(project: World, repo: Repository) -> None:
    head = project.git("rev-parse", "HEAD")
    assert git.blob(repo, head, "sub/b.txt") == b"b\n"
    assert git.blob(repo, head, "sub") is None
    assert git.blob(repo, head, "none.txt") is None
    assert git.blob(repo, head, "../a.txt") is None
    assert git.paths(repo, head) == ["a.txt", "sub/b.txt"]


def test_two_branches_merge_without_a_checkout(project: World, repo: Repository) -> None:
    base = project.git("rev-parse", "HEAD")
    ours = project.commit({"a.txt": "ours\n"})
    project.git("checkout", "-q", "--detach", base)
    theirs = project.commit({"sub/b.txt": "theirs\n"})
    clash = project.commit({"a.txt": "theirs\n"})
    project.git("checkout", "-q", "main")
    tree, conflicts = git.merge_tree(repo, ours, theirs)
    assert conflicts == ()
    assert tree is not None
    assert git.run(repo, "cat-file", "blob", f"{tree}:sub/b.txt") == b"theirs\n"
    assert git.merge_tree(repo, ours, clash) == (None, ("a.txt",))
    assert git.merge_base(repo, ours, clash) == base
    assert git.ancestor(repo, base, ours)
    assert not git.ancestor(repo, ours, base)
    assert project.git("status", "--porcelain") == ""


def test_histories_that_share_nothing_have_no_merge_base(project: World, repo: Repository) -> None:
    head = project.git("rev-parse", "HEAD")
    root = git.commit_tree(repo, git.tree(repo, head), [], "root", ADA)
    assert git.merge_base(repo, head, root) is None
    with pytest.raises(RelayError, match="unrelated histories"):
        git.merge_tree(repo, head, root)


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

    fake(tmp_path, f"sleep 1000 & echo $! >{tmp_path}/child; kill -USR1 {os.getpid()}; wait", monkeypatch)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(Interrupted):
            git.run(repo, "status")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert gone(int((tmp_path / "child").read_text()))


def gone(pid: int) -> bool:
    """Tell whether a process has ended; a zombie that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


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

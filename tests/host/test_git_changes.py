"""What changed between two commits, and what a merge would give: the same whatever settings and names there are."""

import os
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import git, repository
from relay.host.repository import Repository
from relay.terms import Change
from tests.world import World

ADA = git.Identity(name="Ada", email="ada@example.org")


@pytest.fixture
def project(tmp_path: Path) -> World:
    return World(tmp_path, {"a.txt": "one\ntwo\nthree\n", "sub/b.txt": "b\n"})


@pytest.fixture
def repo(project: World) -> Repository:
    return repository.discover(project.root)


HOSTILE = {
    "diff.external": "TOOL",
    "diff.noprefix": "true",
    "diff.mnemonicPrefix": "true",
    "diff.context": "0",
    "diff.renames": "false",
    "diff.planted.textconv": "TOOL",
    "diff.planted.command": "TOOL",
    "color.ui": "always",
    "color.diff": "always",
    "core.pager": "TOOL",
    "core.fsmonitor": "TOOL",
}


def test_a_diff_is_the_same_whatever_the_settings_say(project: World, repo: Repository, tmp_path: Path) -> None:
    first = project.commit({".gitattributes": "* diff=planted\n", "t ab.txt": "x\n"})
    second = project.commit({"a.txt": "one\n2\nthree\n"})
    plain = git.diff(repo, first, second)
    assert plain.startswith(b"diff --git a/a.txt b/a.txt\n")
    assert b"\n one\n-two\n+2\n three\n" in plain
    (project.root / "tool").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (project.root / "tool").chmod(0o755)
    attributes = project.root / ".git/info/attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("* diff=planted\n")
    for name, value in HOSTILE.items():
        project.git("config", name, value.replace("TOOL", str(project.root / "tool")))
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

"""Trees that never were commits: the code of one with the tests of another."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from relay import clean
from relay.host import git, scratch
from relay.host.repository import Repository
from relay.swap.patterns import steers, swapped


def mixed(repo: Repository, patterns: Sequence[str], *, code: str, tests: str, only: str = "") -> str:
    """Make a commit, which no ref names, of one commit's files and the test files of another; or of one of those."""

    def goes(path: bytes) -> bool:
        return git.label(path) == only if only else swapped(git.label(path), patterns)

    kept = {path: entry for path, entry in _entries(repo, code).items() if not goes(path)}
    brought = {path: entry for path, entry in _entries(repo, tests).items() if goes(path)}
    return _commit(repo, kept | brought, [code])


def restored(repo: Repository, patterns: Sequence[str], *, code: str, tests: str) -> str:
    """Make a commit of one commit's files, with every test file that the other has as it is there.

    Tests that were added stay; settings of tests that were added go, since they steer those that were there before.
    """
    brought = {path: entry for path, entry in _entries(repo, tests).items() if swapped(git.label(path), patterns)}
    kept = {path: entry for path, entry in _entries(repo, code).items() if not steers(git.label(path))}
    return _commit(repo, kept | brought, [code])


def alone(repo: Repository, patterns: Sequence[str], commit: str) -> str:
    """Make a commit of one commit's test files and nothing else."""
    tests = {path: entry for path, entry in _entries(repo, commit).items() if swapped(git.label(path), patterns)}
    return _commit(repo, tests, [])


def _entries(repo: Repository, commit: str) -> dict[bytes, bytes]:
    """Return the files of a commit, as git lists them, by path."""
    out = git.run(repo, "ls-tree", "-r", "-z", "--full-tree", commit)
    return {entry.partition(b"\t")[2]: entry for entry in out.split(b"\0") if entry}


def _commit(repo: Repository, wanted: Mapping[bytes, bytes], parents: Iterable[str]) -> str:
    with scratch.folder("index") as folder:
        env = {"GIT_INDEX_FILE": os.fspath(Path(folder) / "index")}
        listed = b"".join(entry + b"\0" for entry in wanted.values())
        answer = git.call(repo, "update-index", "-z", "--index-info", stdin=listed, env=env)
        if answer.code:
            raise clean.SetupError("the tests of the base cannot stand beside the new code: a folder is a file there")
        tree = git.run(repo, "write-tree", env=env).strip().decode()
    return git.commit_tree(repo, tree, parents, "tests between base and head\n", git.NOBODY)

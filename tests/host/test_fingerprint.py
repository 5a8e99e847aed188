"""Fingerprints: whatever an agent could reach and changed has a name, and nothing makes the look fail or hang."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay.host import git, repository, worktree
from relay.host.jail import Rung
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.host.tripwire import fingerprint
from tests.world import World


@dataclass
class Leg:
    """A worktree in the hands of an agent, and what Relay saw before."""

    project: World
    repo: Repository
    lease: Lease
    before: dict[str, str]
    rung: Rung

    @property
    def root(self) -> Path:
        return self.project.root

    def git(self, *args: str) -> str:
        return self.project.git("-C", str(self.lease.path), *args)

    def differs(self) -> set[str]:
        after = fingerprint.take(self.repo, self.lease, tree=True, rung=self.rung)
        return {name for name in self.before | after if self.before.get(name) != after.get(name)}


@pytest.fixture
def leg(tmp_path: Path, rung: Rung) -> Leg:
    project = World(tmp_path, {"a.py": "a = 1\n", "sub/b.py": "b\n", ".gitignore": ".env\n*.log\nnode_modules/\n"})
    project.git("tag", "v1")
    project.git("worktree", "add", "-q", "--detach", str(tmp_path / "side"))
    project.write({".env": "A=1\n", "untracked.txt": "mine\n", "a.py": "a = 10\n", "node_modules/x/y.js": "y\n"})
    project.git("stash", "-q")
    project.write({"sub/b.py": "dirty\n"})
    repo = repository.discover(project.root)
    lease = worktree.lease(repo, tmp_path / "trees/01", project.git("rev-parse", "HEAD"), "run=x")
    return Leg(project, repo, lease, fingerprint.take(repo, lease, tree=True, rung=rung), rung)


def test_two_looks_at_the_same_are_the_same_and_fit_into_json(leg: Leg) -> None:
    assert leg.differs() == set()
    assert json.loads(json.dumps(leg.before)) == leg.before
    assert {"refs/heads/main", "refs/tags/v1", "refs/stash", "stash", "config", "HEAD"} <= leg.before.keys()
    assert {"checkout/sub/b.py", "checkout/untracked.txt", "checkout/.env", "tree/HEAD"} <= leg.before.keys()


def test_reading_work_is_no_change(leg: Leg) -> None:
    os.utime(leg.root / "a.py")
    leg.git("status")
    leg.project.git("status")
    leg.project.git("log", "-1")
    (leg.lease.path / "run.log").write_text("ignored\n")
    git.update_ref(leg.repo, "refs/relay/run/01", leg.project.git("rev-parse", "HEAD"), None)
    assert leg.differs() == set()


def test_the_legs_own_files_count_only_when_asked_for(leg: Leg) -> None:
    plain = fingerprint.take(leg.repo, leg.lease, tree=False)
    assert not any(name.startswith("tree") for name in plain)
    (leg.lease.path / "a.py").write_text("a = 2\n")
    (leg.lease.path / "new.py").write_text("x\n")
    (leg.lease.path / "sub/b.py").unlink()
    leg.git("commit", "-q", "--allow-empty", "-m", "mine")
    assert fingerprint.take(leg.repo, leg.lease, tree=False) == plain
    assert leg.differs() == {"tree/HEAD", "tree/a.py", "tree/new.py", "tree/sub/b.py"}


def _hook(leg: Leg) -> None:
    (leg.root / ".git/hooks").mkdir(exist_ok=True)
    (leg.root / ".git/hooks/post-commit").write_text("#!/bin/sh\n")


def _exclude(leg: Leg) -> None:
    (leg.root / ".git/info").mkdir(exist_ok=True)
    (leg.root / ".git/info/exclude").write_text("*.py\n")


def _alternates(leg: Leg) -> None:
    (leg.root / ".git/objects/info/alternates").write_text("/elsewhere\n")


def _stash_below(leg: Leg) -> None:
    log = leg.root / ".git/logs/refs/stash"
    log.write_text(log.read_text() * 2)


def _checkout_of_others(leg: Leg) -> None:
    leg.project.git("-C", str(leg.project.folder / "side"), "checkout", "-q", "-b", "moved")


def _same_size_and_time(leg: Leg) -> None:
    found = (leg.root / "a.py").stat()
    (leg.root / "a.py").write_text("a = 9\n")
    os.utime(leg.root / "a.py", ns=(found.st_atime_ns, found.st_mtime_ns))


def _hidden_edit(leg: Leg) -> None:
    leg.project.git("update-index", "--assume-unchanged", "a.py")
    (leg.root / "a.py").write_text("a = 9\n")


def _pops_the_stash(leg: Leg) -> None:
    leg.git("stash", "pop", "-q")


def _odd_name(leg: Leg) -> None:
    (leg.root / os.fsdecode(b"\xff\n")).write_text("x")


def _moves_a_branch(leg: Leg) -> None:
    made = leg.git("commit-tree", "-m", "mine", "HEAD^{tree}")
    leg.git("update-ref", "refs/heads/main", made)


def _replaces(leg: Leg) -> None:
    leg.git("update-ref", "refs/replace/x", "HEAD")


ALL_STAGED = {f"checkout/{name}" for name in (".gitignore", "a.py", "sub/b.py")}
"""Every file is new to a branch that has no commit."""

DEEDS: dict[str, tuple[Callable[[Leg], object], set[str]]] = {
    "moves a branch": (_moves_a_branch, {"refs/heads/main"}),
    "makes a branch": (lambda leg: leg.git("branch", "mine"), {"refs/heads/mine"}),
    "deletes a tag": (lambda leg: leg.git("tag", "-d", "v1"), {"refs/tags/v1"}),
    "replaces an object": (_replaces, {"refs/replace/x"}),
    "pops the stash": (_pops_the_stash, {"refs/stash", "stash", "tree/a.py"}),
    "edits the stash below": (_stash_below, {"stash"}),
    "changes the settings": (lambda leg: leg.git("config", "user.email", "x@x"), {"config"}),
    "plants a hook": (_hook, {"hooks/post-commit"}),
    "hides files": (_exclude, {"info/exclude"}),
    "borrows objects": (_alternates, {"objects/info/alternates"}),
    "switches the checkout": (
        lambda leg: leg.project.git("symbolic-ref", "HEAD", "refs/heads/x"),
        {"HEAD", *ALL_STAGED},
    ),
    "moves another worktree": (_checkout_of_others, {"refs/heads/moved", "worktrees/side/HEAD"}),
    "edits a tracked file": (lambda leg: (leg.root / "a.py").write_text("a = 3\n"), {"checkout/a.py"}),
    "edits and keeps the times": (_same_size_and_time, {"checkout/a.py"}),
    "edits and hides it": (_hidden_edit, {"checkout/a.py"}),
    "edits a dirty file": (lambda leg: (leg.root / "sub/b.py").write_text("other\n"), {"checkout/sub/b.py"}),
    "edits an untracked file": (lambda leg: (leg.root / "untracked.txt").write_text("x"), {"checkout/untracked.txt"}),
    "edits an ignored file": (lambda leg: (leg.root / ".env").write_text("A=2\n"), {"checkout/.env"}),
    "makes a file": (lambda leg: (leg.root / "sub/new.py").write_text("x"), {"checkout/sub/new.py"}),
    "makes an odd name": (_odd_name, {"checkout/\\xff\n"}),
    "stages": (lambda leg: leg.project.git("add", "sub/b.py"), {"checkout/sub/b.py"}),
    "cuts its own .git": (lambda leg: (leg.lease.path / ".git").unlink(), {"worktree/.git"}),
    "unlocks itself": (lambda leg: leg.project.git("worktree", "unlock", str(leg.lease.path)), {"worktree/locked"}),
    "turns its entry": (lambda leg: (leg.lease.git_dir / "commondir").write_text("/x"), {"worktree/commondir"}),
    "private settings": (
        lambda leg: (leg.lease.git_dir / "config.worktree").write_text("#"),
        {"worktree/config.worktree"},
    ),
}


@pytest.mark.parametrize("name", DEEDS)
def test_what_an_agent_changed_is_named(leg: Leg, name: str) -> None:
    deed, expected = DEEDS[name]
    deed(leg)
    assert leg.differs() == expected


# --- it never fails and never hangs -------------------------------------------------------------------------------


def test_a_fifo_in_the_checkout_hangs_nothing_and_stays(leg: Leg) -> None:
    (leg.root / ".gitignore").unlink()
    os.mkfifo(leg.root / ".gitignore")
    assert {"checkout", "checkout/.gitignore"} <= leg.differs()
    assert (leg.root / ".gitignore").is_fifo()


def test_a_fifo_in_the_tree_hangs_nothing(leg: Leg) -> None:
    os.mkfifo(leg.lease.path / "sub/.gitattributes")
    os.mkfifo(leg.lease.path / "pipe")
    assert {"tree/sub/.gitattributes", "tree/pipe"} <= leg.differs()


@pytest.mark.parametrize("gone", ["trees/01", "project/.git/worktrees/01", "project/.git/config", "project/.git/HEAD"])
def test_what_is_gone_is_a_difference_and_no_failure(leg: Leg, gone: str) -> None:
    place = leg.project.folder / gone
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    assert leg.differs()


def test_broken_settings_are_a_difference_and_no_failure(leg: Leg) -> None:
    (leg.root / ".git/config").write_text("[broken")
    assert "config" in leg.differs()


@pytest.mark.parametrize("name", ["config", "HEAD", "info/exclude", "packed-refs", "refs/heads/pipe", "hooks/pre-push"])
def test_a_fifo_among_gits_own_files_hangs_nothing(leg: Leg, name: str) -> None:
    place = leg.root / ".git" / name
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    assert leg.differs() & {name, "git"}
    assert place.is_fifo()


def test_nothing_that_was_planted_runs_during_a_look(leg: Leg) -> None:
    marker = leg.project.folder / "ran"
    tool = leg.project.folder / "tool"
    tool.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    tool.chmod(0o755)
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.external"):
        leg.git("config", key, str(tool))
    for top in (leg.root, leg.lease.path):
        (top / ".gitattributes").write_text("* filter=evil\n")
        (top / "a.py").write_text("a = 5\n")
    assert {"config", "checkout/a.py", "tree/a.py"} <= leg.differs()
    assert not marker.exists()


def test_the_linked_checkout_that_relay_was_called_in_is_watched_too(leg: Leg) -> None:
    linked = repository.discover(leg.project.folder / "side")
    before = fingerprint.take(linked, leg.lease, tree=False)
    (leg.project.folder / "side/a.py").write_text("a = 7\n")
    after = fingerprint.take(linked, leg.lease, tree=False)
    assert {name for name in before | after if before.get(name) != after.get(name)} == {"checkout 2/a.py"}


def test_hooks_elsewhere_are_watched(leg: Leg) -> None:
    hooks = leg.project.folder / "hooks"
    hooks.mkdir()
    leg.project.git("config", "core.hooksPath", str(hooks))
    before = fingerprint.take(leg.repo, leg.lease, tree=False)
    (hooks / "post-commit").write_text("#!/bin/sh\n")
    after = fingerprint.take(leg.repo, leg.lease, tree=False)
    assert {name for name in before | after if before.get(name) != after.get(name)} == {f"{hooks}/post-commit"}

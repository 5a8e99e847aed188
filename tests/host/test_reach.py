"""What a fingerprint sees beside index and refs: settings and hooks wherever they lie, ignored files, checkouts."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay.host import repository, worktree
from relay.host.jail import choose
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.host.tripwire import checkouts, fingerprint, steering
from tests.world import World


@dataclass
class Scene:
    """A repository with all that steers git, a leg's worktree, and what Relay saw before."""

    project: World
    repo: Repository
    lease: Lease
    before: dict[str, str]

    @property
    def root(self) -> Path:
        return self.project.root

    @property
    def common(self) -> Path:
        return self.root / ".git"

    def look(self) -> dict[str, str]:
        return fingerprint.take(self.repo, self.lease, tree=False)

    def differs(self) -> set[str]:
        after = self.look()
        return {name for name in self.before | after if self.before.get(name) != after.get(name)}


def _put(path: Path, text: str = "# old\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    project = World(tmp_path, {"a.py": "a = 1\n", ".gitignore": ".husky/_/\nbin/\nnode_modules/\n*.bin\n"})
    for name in ("side", "other"):
        project.git("worktree", "add", "-q", "--detach", str(tmp_path / name))
    common, home = project.root / ".git", Path.home()
    for name in ("modules/lib/x/HEAD", "modules/lib/x/config", "modules/lib/x/modules/deep/HEAD", "extra"):
        _put(common / name)
    _put(common / "modules/lib/x/modules/deep/config")
    _put(common / "hooks/pre-commit.d/one")
    _put(home / "shared", "[include]\n path = deeper\n")
    _put(home / "deeper")
    _put(home / "conditional")
    _put(home / "script")
    (common / "hooks/pre-push").symlink_to(home / "script")
    project.git("config", "include.path", "extra")
    project.git("config", "--add", "include.path", "~/shared")
    project.git("config", "includeIf.gitdir:/nowhere/.path", "~/conditional")
    project.git("config", "core.hooksPath", ".husky/_")
    for top in (project.root, tmp_path / "side"):
        _put(top / ".husky/_/pre-commit")
    for name in ("bin/tool", "bin/deep/tool", "node_modules/x.js", "large.bin"):
        _put(project.root / name)
    (project.root / "large.bin").write_bytes(b"x" * (2 << 20))
    repo = repository.discover(project.root)
    lease = worktree.lease(repo, tmp_path / "trees/01", project.git("rev-parse", "HEAD"), "run=x")
    before = fingerprint.take(repo, lease, tree=False)
    return Scene(project, repo, lease, before)


def _append(path: str) -> Callable[[Scene], object]:
    """Change a file: below the project's `.git`, the home, or the folder of the test."""

    def deed(scene: Scene) -> None:
        full = Path(path.format(git=scene.common, home=Path.home(), root=scene.root, folder=scene.project.folder))
        _put(full, f"{full.read_text() if full.exists() else ''}# new\n")

    return deed


def _same_size_and_time(scene: Scene) -> None:
    tool = scene.root / "bin/tool"
    found = tool.stat()
    tool.write_text("# new\n")
    os.utime(tool, ns=(found.st_atime_ns, found.st_mtime_ns))


def _another_hooks_path(scene: Scene) -> None:
    scene.project.git("config", "core.hooksPath", str(Path.home() / "mine"))


DEEDS: dict[str, tuple[Callable[[Scene], object], set[str]]] = {
    "a hook below a relative hooksPath": (
        _append("{root}/.husky/_/pre-commit"),
        {"hooks path/.husky/_/pre-commit", "checkout/.husky/_/"},
    ),
    "a new hook there": (
        _append("{root}/.husky/_/pre-push"),
        {"hooks path/.husky/_/pre-push", "checkout/.husky/_/"},
    ),
    "such a hook of a linked checkout": (
        _append("{folder}/side/.husky/_/pre-commit"),
        {"hooks path of worktrees/side/checkout/.husky/_/pre-commit", "worktrees/side/checkout/.husky/_/"},
    ),
    "another hooksPath": (
        _another_hooks_path,
        {
            *("config", "hooks path {home}/mine", "hooks path/.husky/_", "hooks path/.husky/_/pre-commit"),
            *(f"hooks path of worktrees/{name}/checkout/.husky/_" for name in ("side", "other")),
            "hooks path of worktrees/side/checkout/.husky/_/pre-commit",
        },
    ),
    "a submodule's settings": (_append("{git}/modules/lib/x/config"), {"modules/lib/x/config"}),
    "a submodule's hook": (_append("{git}/modules/lib/x/hooks/post-checkout"), {"modules/lib/x/hooks/post-checkout"}),
    "a submodule's submodule": (
        _append("{git}/modules/lib/x/modules/deep/config"),
        {"modules/lib/x/modules/deep/config"},
    ),
    "a file that is included": (_append("{git}/extra"), {"config include {git}/extra"}),
    "one that this includes": (_append("{home}/deeper"), {"config include {home}/deeper"}),
    "one that is included elsewhere": (_append("{home}/conditional"), {"config include {home}/conditional"}),
    "what a hook links to": (_append("{home}/script"), {"hooks/pre-push"}),
    "a hook in a folder": (_append("{git}/hooks/pre-commit.d/two"), {"hooks/pre-commit.d/two"}),
    "settings of another worktree": (
        _append("{git}/worktrees/side/config.worktree"),
        {"worktrees/side/config.worktree"},
    ),
    "a file of another worktree": (_append("{folder}/side/a.py"), {"worktrees/side/checkout/a.py"}),
    "the index of another worktree": (
        lambda scene: scene.project.git("-C", str(scene.project.folder / "side"), "rm", "-q", "--cached", "a.py"),
        {"worktrees/side/checkout/a.py"},
    ),
    "a file in an ignored folder": (_append("{root}/bin/deep/tool"), {"checkout/bin/"}),
    "one that looks untouched": (_same_size_and_time, {"checkout/bin/"}),
    "its mode": (lambda scene: (scene.root / "bin/tool").chmod(0o755), {"checkout/bin/"}),
    "a large ignored file": (_append("{root}/large.bin"), {"checkout/large.bin"}),
    "a cache": (_append("{root}/node_modules/x.js"), set()),
    "a lock that nobody holds": (_append("{git}/index.lock"), {"locks/index.lock"}),
    "one of a branch": (_append("{git}/refs/heads/main.lock"), {"locks/refs/heads/main.lock"}),
    "the person's settings": (_append("{home}/.gitconfig"), {"home/.gitconfig"}),
    "those in the other place": (_append("{home}/config/git/config"), {"home/.config/git/config"}),
}


@pytest.mark.parametrize("name", DEEDS)
def test_what_steers_git_is_named_wherever_it_lies(scene: Scene, name: str) -> None:
    deed, expected = DEEDS[name]
    deed(scene)
    assert scene.differs() == {name.format(git=scene.common, home=Path.home()) for name in expected}


def test_two_looks_at_the_same_are_the_same(scene: Scene) -> None:
    scene.project.git("status")
    scene.project.git("-C", str(scene.project.folder / "side"), "status")
    assert scene.differs() == set()


def test_settings_behind_a_link_are_watched_too(scene: Scene) -> None:
    dotfile = Path.home() / "project.gitconfig"
    (scene.common / "config").rename(dotfile)
    (scene.common / "config").symlink_to(dotfile)
    scene.before = scene.look()
    dotfile.write_text(dotfile.read_text() + "[user]\n\tname = Mallory\n")
    assert scene.differs() == {"config"}


def test_a_folder_of_hooks_that_becomes_a_link_is_named(scene: Scene) -> None:
    (scene.common / "hooks").rename(scene.project.folder / "moved")
    (scene.common / "hooks").symlink_to(scene.project.folder / "moved")
    assert scene.differs() == {"hooks"}


def test_a_folder_of_too_many_files_is_watched_up_to_a_bound_and_that_is_said(scene: Scene) -> None:
    for number in range(checkouts.ENTRIES):
        (scene.root / f"bin/{number:05}").touch()
    scene.before = scene.look()
    assert scene.before["checkout/bin/"].endswith(f"more than {checkouts.ENTRIES} entries are not watched")
    assert scene.differs() == set()
    (scene.root / "bin/00000").write_text("x")
    assert scene.differs() == {"checkout/bin/"}


def test_too_many_hooks_are_watched_up_to_a_bound_and_that_is_said(scene: Scene) -> None:
    for number in range(steering.MANY):
        (scene.common / f"hooks/{number:05}").touch()
    assert "more than" in scene.look()["hooks/..."]


def test_includes_that_go_round_in_a_circle_end(scene: Scene) -> None:
    (Path.home() / "deeper").write_text('[includeIf "gitdir:/nowhere/"]\n path = shared\n')
    assert scene.differs() == {f"config include {Path.home()}/deeper"}


def test_more_linked_worktrees_than_are_looked_into_are_counted(scene: Scene) -> None:
    for number in range(checkouts.LINKED):
        scene.project.git("worktree", "add", "-q", "--detach", str(scene.project.folder / f"wt{number}"))
    assert scene.look()["worktrees"] == "2 more are not looked into"


def test_an_entry_that_names_another_folder_is_not_followed_there(scene: Scene) -> None:
    (scene.common / "worktrees/side/gitdir").write_text(f"{scene.project.folder}/.git\n")
    differs = scene.differs()
    assert "worktrees/side/gitdir" in differs
    assert not any(name.startswith("worktrees/side/checkout/agents") for name in scene.look())


@pytest.mark.parametrize("name", ["worktrees", "modules", "hooks", "refs", "worktrees/side"])
def test_a_file_or_a_pipe_where_git_has_a_folder_makes_no_look_fail(scene: Scene, name: str) -> None:
    (scene.common / name).rename(scene.project.folder / "gone")
    (scene.common / name).touch()
    assert scene.differs()
    (scene.common / name).unlink()
    os.mkfifo(scene.common / name)
    assert scene.differs()


def test_what_is_watched_and_what_is_not_is_said_where_no_jail_is_wanted() -> None:
    said = choose("off")[1]
    assert "in the repository, its checkouts and your git settings is seen afterwards" in said
    assert "anywhere else is not seen" in said

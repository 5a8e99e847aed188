"""What is kept nowhere but in a worktree, wherever in it that lies: no pass of the reaper takes it."""

import os
from pathlib import Path

import pytest

from tests.reaper.scenes import SILENT, again, alerts, reap, repaired, standing, with_a_worktree_kept, worktrees
from tests.world import FIXED, World


def _said(world: World) -> str:
    """Return what one pass raises; it must be the worktree, once."""
    events = reap(world)
    assert alerts(events) == ["worktree"], events
    again(world)
    return str(next(event["what"] for event in events if event["type"] == "alert"))


def _commit(world: World, folder: Path, name: str) -> str:
    """Commit a new file in a worktree, and return the commit."""
    (folder / name).write_text("a thought\n")
    world.git("add", name, folder=folder)
    world.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", name, folder=folder)
    return world.git("rev-parse", "HEAD", folder=folder)


def _clean(world: World, place: Path) -> None:
    world.git("checkout", "-q", "--", ".", folder=place)


def test_a_repository_that_was_cloned_by_hand_where_a_submodule_belongs_is_not_lost(tmp_path: Path) -> None:
    made = World(tmp_path / "library", {"a.txt": "a\n"})
    world = World.simple(tmp_path / "world")
    world.git("update-index", "--add", "--cacheinfo", f"160000,{made.git('rev-parse', 'HEAD')},vendor")
    world.git("commit", "-q", "-m", "a submodule")
    place = _left(world, {"calc.py": "half\n"})
    world.git("clone", "-q", str(made.root), "vendor", folder=place)
    _commit(world, place / "vendor", "idea.txt")
    world.git("checkout", "-q", "--detach", "HEAD~1", folder=place / "vendor")
    assert world.git("status", "--porcelain", "--", "vendor", folder=place) == ""
    assert "`vendor` in it is kept nowhere else" in _said(world)
    assert (place / "vendor" / ".git").is_dir()


def test_files_in_the_empty_folder_of_a_submodule_are_not_lost(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.git("update-index", "--add", "--cacheinfo", f"160000,{world.git('rev-parse', 'HEAD')},vendor")
    world.git("commit", "-q", "-m", "a submodule")
    place = _left(world, {"calc.py": "half\n"})
    (place / "vendor" / "notes.txt").write_text("mine\n")
    assert "`vendor`" in _said(world)
    (place / "vendor" / "notes.txt").unlink()
    assert "worktree" in repaired(reap(world))


def _left(world: World, files: dict[str, str], **tables: object) -> Path:
    """Let a run leave the worktree of its first leg, in which these files were written."""
    world.python("implementer", SILENT.format(files=files, fixed=FIXED), phase="implement", vendor="north")
    if tables:
        world.save(**tables)
    assert world.relay("run", world.spec()).code == 0
    [place] = worktrees()
    return place


def test_a_rebase_that_waits_for_a_person_keeps_its_worktree_and_what_was_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    (place / "README.md").write_text("a thought\n")
    monkeypatch.setenv("GIT_SEQUENCE_EDITOR", "sed -i 1ibreak")
    world.git("rebase", "-q", "-i", "--autostash", "HEAD~1", folder=place)
    assert world.git("status", "--porcelain", folder=place) == ""
    assert "a rebase in it is not finished" in _said(world)
    world.git("rebase", "--continue", folder=place)
    assert (place / "README.md").read_text() == "a thought\n"


@pytest.mark.parametrize("ref", ["refs/worktree/idea", "refs/bisect/bad"])
def test_a_commit_on_a_ref_that_a_worktree_has_for_itself_is_not_lost(tmp_path: Path, ref: str) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    _clean(world, place)
    tree = world.git("rev-parse", "HEAD~1^{tree}", folder=place)
    commit = world.git("commit-tree", "-m", "idea", "-p", "HEAD", tree, folder=place)
    world.git("update-ref", ref, commit, folder=place)
    assert f"its commit `{commit[:12]}` is on no ref" in _said(world)
    world.git("branch", "kept", commit)
    assert "worktree" in repaired(reap(world))
    assert (worktrees(), standing(world)) == ([], [])


def test_a_file_on_a_ref_that_a_worktree_has_for_itself_is_not_lost(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    (place / "thought.txt").write_text("a thought\n")
    blob = world.git("hash-object", "-w", "thought.txt", folder=place)
    world.git("update-ref", "refs/worktree/idea", blob, folder=place)
    (place / "thought.txt").unlink()
    assert "refs/worktree/idea" in _said(world)


def test_a_copied_file_that_was_changed_is_not_lost_and_one_that_was_not_keeps_nothing(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.commit({".gitignore": ".env.test\n.env.dev\n"})
    for name in (".env.test", ".env.dev"):
        (world.root / name).write_text("a=1\n")
    place = _left(world, {".env.test": "a token that was found\n"}, worktree={"copy": [".env.*"]})
    assert "`.env.test` in it is kept nowhere else" in _said(world)
    (place / ".env.test").write_text("a=1\n")
    assert "worktree" in repaired(reap(world))
    assert (worktrees(), standing(world)) == ([], [])


SEED: dict[str, object] = {"setup": ["mkdir -p data && echo seed > data/seed.csv"]}


def test_a_new_file_in_an_ignored_folder_that_setup_made_is_not_lost(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.commit({".gitignore": "data/\n"})
    place = _left(world, {"data/results.csv": "a night\n"}, worktree=SEED)
    assert "`data/results.csv` in it is kept nowhere else" in _said(world)
    (place / "data" / "results.csv").unlink()
    assert "worktree" in repaired(reap(world))
    assert worktrees() == []


def test_what_set_up_made_and_somebody_changed_is_not_lost_where_it_waited_for_a_person(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.commit({".gitignore": "data/\n"})
    place = _left(world, {"data/seed.csv": "by tests\n"}, worktree=SEED)
    assert repaired(reap(world, "--dry-run")) == ["worktree", "worktree"]
    (place / "data" / "seed.csv").write_text("by hand\n")
    assert "`data/seed.csv` in it is kept nowhere else" in _said(world)


def test_the_ordinary_end_of_a_leg_leaves_a_new_file_in_a_folder_that_setup_made(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.commit({".gitignore": "data/\n"})
    text = "sed -i 's/a - b/a + b/' calc.py; echo sorted > data/seed.csv; echo night > data/results.csv"
    world.shell("implementer", text, phase="implement", reply="exit")
    world.save(worktree=SEED)
    assert world.relay("run", world.spec()).code == 0
    [place] = worktrees()
    assert (place / "data" / "results.csv").read_text() == "night\n"


def test_a_submodule_that_setup_fetched_keeps_no_worktree_until_somebody_commits_or_writes_there(
    tmp_path: Path,
) -> None:
    library = World(tmp_path / "library", {"lib.txt": "lib\n"})
    world = World.simple(tmp_path / "world")
    world.git("config", "--global", "protocol.file.allow", "always")
    world.git("submodule", "--quiet", "add", str(library.root), "lib")
    world.git("commit", "-q", "-m", "a submodule")
    place = _left(world, {"calc.py": "half\n"}, worktree={"submodules": True})
    world.git("status", folder=place)
    world.git("fetch", "-q", folder=place / "lib")
    world.git("submodule", "--quiet", "update", "--init", folder=place)
    assert repaired(reap(world, "--dry-run")) == ["worktree", "worktree"]
    (place / "lib" / "new.txt").write_text("mine\n")
    assert "`lib` in it is kept nowhere else" in str(reap(world, "--dry-run"))
    _commit(world, place / "lib", "new.txt")
    world.git("checkout", "-q", "--detach", "HEAD~1", folder=place / "lib")
    assert "it has submodules with commits of their own" in _said(world)


@pytest.mark.parametrize("name", ["build/tool", "node_modules/tool", "data/tool"])
def test_a_repository_in_an_ignored_folder_is_not_lost_whatever_that_is_called(tmp_path: Path, name: str) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    _clean(world, place)
    (world.root / ".git" / "info").mkdir(exist_ok=True)
    (world.root / ".git" / "info" / "exclude").write_text("build/\nnode_modules/\ndata/\n")
    (place / name).mkdir(parents=True)
    world.git("init", "-q", folder=place / name)
    _commit(world, place / name, "tool.py")
    assert f"`{name}/.git` in it is kept nowhere else" in _said(world)
    assert (place / name / ".git" / "HEAD").is_file()


def test_a_repository_that_setup_fetched_into_a_cache_keeps_no_worktree_until_somebody_commits_there(
    tmp_path: Path,
) -> None:
    world = World.simple(tmp_path)
    world.commit({".gitignore": "node_modules/\n"})
    fetch = "git init -q node_modules/tool && cd node_modules/tool && git -c user.name=a -c user.email=a@example.org"
    worktree = {"setup": [f"{fetch} commit -q --allow-empty -m tool"]}
    place = _left(world, {"calc.py": "half\n"}, worktree=worktree)
    tool = place / "node_modules" / "tool"
    world.git("status", folder=tool)
    assert repaired(reap(world, "--dry-run")) == ["worktree", "worktree"]
    _commit(world, tool, "mine.py")
    assert "`node_modules/tool/.git` in it" in _said(world)


def test_what_is_staged_of_a_file_that_setup_made_is_not_lost(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    place = _left(world, {"calc.py": "half\n"}, worktree={"setup": ["echo made > made.txt"]})
    world.git("add", "made.txt", folder=place)
    assert repaired(reap(world, "--dry-run")) == ["worktree", "worktree"]
    (place / "made.txt").write_text("a thought\n")
    world.git("add", "made.txt", folder=place)
    (place / "made.txt").write_text("made\n")
    assert "`made.txt` is staged in it" in _said(world)


def test_the_alert_names_what_no_commit_has_and_nothing_that_one_of_them_has(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path, beside="notes.local")
    _clean(world, place)
    said = _said(world)
    assert "`notes.local` in it is kept nowhere else" in said
    assert "calc.py" not in said


def test_something_mounted_in_a_worktree_is_named(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    (place / "node_modules").mkdir()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "work.txt").write_text("years\n")
    if os.system(f"mount --bind {theirs} {place / 'node_modules'} 2>/dev/null"):  # noqa: S605 - paths of this test's
        pytest.skip("nothing can be mounted here")
    try:
        assert f"something is mounted at `{place / 'node_modules'}`" in _said(world)
        assert (theirs / "work.txt").read_text() == "years\n"
        assert (place / ".git").is_file()
    finally:
        os.system(f"umount {place / 'node_modules'}")  # noqa: S605

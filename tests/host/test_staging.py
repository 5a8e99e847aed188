"""Git on an agent's tree, in the open and in a jail: both see the same and carry the same, by the person's settings."""

import os
from pathlib import Path

import pytest

from relay.host.jail import Rung
from tests.host.leg import FILES, Leg, begin, why
from tests.world import World


@pytest.fixture
def project(tmp_path: Path) -> World:
    return World(tmp_path, FILES)


@pytest.fixture
def leg(project: World, rung: Rung) -> Leg:
    return begin(project, rung)


def test_the_users_own_ignore_file_counts(project: World, rung: Rung) -> None:
    ignore = Path(os.environ["XDG_CONFIG_HOME"]) / "git/ignore"
    ignore.parent.mkdir(parents=True)
    ignore.write_text(".idea/\n")
    leg = begin(project, rung)
    leg.write(".idea/workspace.xml")
    leg.write("new.py")
    assert leg.changed(leg.take()) == {"new.py"}


@pytest.mark.parametrize("way", ["a linked file", "a linked folder"])
def test_what_the_user_ignores_counts_where_links_lead_to_it(project: World, rung: Rung, way: str) -> None:
    home, real = Path(os.environ["HOME"]), project.folder / "dotfiles"
    real.mkdir()
    (real / "ignore").write_text("*.swo\n")
    if way == "a linked file":
        (home / ".ignored").symlink_to(real / "ignore")
        project.git("config", "--global", "core.excludesFile", "~/.ignored")
    else:
        (Path(os.environ["XDG_CONFIG_HOME"]) / "git").symlink_to(real)
    leg = begin(project, rung)
    leg.write("a.swo")
    leg.write("new.py")
    assert leg.changed(leg.take()) == {"new.py"}


def test_a_setting_without_a_value_is_one_that_is_on(project: World, rung: Rung) -> None:
    with (Path(os.environ["HOME"]) / ".gitconfig").open("a") as file:
        file.write("[core]\n\tautocrlf\n")
    leg = begin(project, rung)
    leg.write("n.txt", "one\r\ntwo\r\n")
    made = leg.take()
    assert project.git("cat-file", "-p", f"{made.commit}:n.txt") == "one\ntwo"


def test_a_repository_with_an_odd_path_is_staged_like_any(tmp_path: Path, rung: Rung) -> None:
    odd = tmp_path / 'a "b":\nc\\d'
    odd.mkdir()
    leg = begin(World(odd, FILES), rung)
    leg.write("a.py", "a = 2\n")
    assert leg.changed(leg.take()) == {"a.py"}


def test_many_files_are_carried_as_a_pack(leg: Leg) -> None:
    for number in range(150):
        leg.write(f"many/{number}.txt", f"{number}\n")
    made = leg.take()
    assert len(leg.changed(made)) == 150
    assert leg.project.git("fsck", "--strict", made.commit) == ""


def test_a_file_that_git_finds_fault_with_is_named_and_the_rest_is_kept(leg: Leg) -> None:
    leg.write(".gitmodules", '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=evil\n')
    leg.write("a.py", "a = 2\n")
    made = leg.take()
    if leg.rung.holds:
        assert why(made) == {".gitmodules": "git finds fault with it: gitmodulesUrl"}
        assert leg.changed(made) == {"a.py"}
        assert leg.project.git("show", f"{made.commit}:a.py") == "a = 2"
    else:
        assert leg.changed(made) == {"a.py", ".gitmodules"}

"""Shapes that would hide work, or act on whoever steps into them, are left out by name; the rest is kept."""

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


def test_a_folder_that_its_owner_may_not_read_is_named_for_root_too(leg: Leg) -> None:
    leg.write("closed/a.txt")
    (leg.top / "closed").chmod(0)
    leg.write("new.py")
    made = leg.take()
    (leg.top / "closed").chmod(0o700)
    assert set(why(made)) - {"closed/a.txt"} == {"closed/"}
    assert leg.changed(made) == {"new.py"}


def test_a_folder_that_git_would_take_for_a_bare_repository_is_named(leg: Leg) -> None:
    leg.git("init", "-q", "--bare", "sub/inner")
    leg.write("sub/inner/objects/keep")
    leg.write("new.py")
    made = leg.take()
    assert why(made) == {"sub/inner/": "an embedded repository"}
    assert leg.changed(made) == {"new.py"}


def test_a_bare_repository_that_was_there_before_may_change(project: World, rung: Rung) -> None:
    project.commit({"fixture/HEAD": "ref: refs/heads/main\n", "fixture/objects/keep": "", "fixture/refs/keep": ""})
    leg = begin(project, rung)
    leg.write("fixture/refs/more")
    assert leg.changed(leg.take()) == {"fixture/refs/more"}


def test_names_that_another_machine_takes_for_those_of_git_are_named(leg: Leg) -> None:
    leg.write(".g\u200cit", "1\n")
    (leg.top / ".gitm\u200codules").symlink_to("a.py")
    leg.write("good.txt")
    made = leg.take()
    assert set(why(made)) == {".g\u200cit", ".gitm\u200codules"}
    assert leg.changed(made) == {"good.txt"}


def test_a_link_into_what_is_git_s_own_is_named(leg: Leg) -> None:
    (leg.top / "hk").symlink_to(".git/hooks")
    (leg.top / "sub/hk").symlink_to("../.git/hooks")
    made = leg.take()
    assert why(made) == dict.fromkeys(("hk", "sub/hk"), "a link that leads out of the tree")

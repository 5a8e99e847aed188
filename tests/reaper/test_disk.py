"""The disk that worktrees may use: a size that people write, room that is made where nothing is lost, and an alert."""

import os
from pathlib import Path

import pytest

from relay import caches
from relay.errors import RelayError
from relay.host import repository
from relay.reaper import disk
from relay.record import ledger as ledgers
from tests.loop.faults import refused
from tests.reaper.scenes import SILENT, again, alerts, reap, repaired, standing, worktrees
from tests.world import FIXED, World

BIG = 1 << 20


@pytest.mark.parametrize(
    ("text", "size"),
    [("20GB", 20_000_000_000), ("500MB", 500_000_000), ("1.5 GiB", 1_610_612_736), ("7 kb", 7000), ("12B", 12)],
)
def test_a_size_is_read_as_people_write_it(text: str, size: int) -> None:
    assert disk.limit(text) == size


@pytest.mark.parametrize("text", ["", "20", "GB", "-1GB", "20 gigs", "1e3MB", "0GB", "1,5GB"])
def test_any_other_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(RelayError) as caught:
        disk.limit(text)
    assert "`reap.max_disk` is" in caught.value.message
    assert caught.value.hint


def test_no_size_is_no_limit() -> None:
    assert disk.limit(None) is None


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (999, "999 B"), (20_000, "20 KB"), (23_400_000_000, "23.4 GB")])
def test_a_size_is_shown_in_three_digits(size: int, text: str) -> None:
    assert disk.shown(size) == text


def test_a_second_name_and_a_link_cost_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(os.urandom(BIG))
    once = caches.used(tmp_path)
    os.link(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c").symlink_to("/usr")
    assert BIG <= once <= caches.used(tmp_path) < once + BIG // 2


def test_a_wrong_size_in_relay_toml_is_refused_before_anything_is_done(world: World) -> None:
    world.save(reap={"max_disk": "plenty"})
    refused(world.relay("reap"), 2, "`reap.max_disk` is `plenty`, which is no size", '"20GB"')


def _unanswered(folder: Path, *, beside: str = "") -> tuple[World, Path]:
    """Make a run that waits for a person, with the worktree of its newest leg, of which all is kept or not."""
    world = World.simple(folder)
    files = {"calc.py": "half\n"} | ({beside: "x" * BIG} if beside else {})
    text = SILENT.replace('== "01-implement"', '!= "00"').format(files=files, fixed=FIXED)
    world.python("implementer", text, phase="implement", vendor="north")
    world.commit({".gitignore": "*.local\n"})
    assert world.relay("run", world.spec()).code == 4
    return world, worktrees()[-1]


def test_the_worktree_of_a_leg_that_a_person_is_asked_about_stays_until_room_is_needed(tmp_path: Path) -> None:
    world, place = _unanswered(tmp_path)
    assert set(repaired(reap(world))) == {"worktree"}
    assert worktrees() == [place]
    again(world)
    world.save(reap={"max_disk": "1GB"})
    assert "worktree" not in repaired(reap(world))
    world.save(reap={"max_disk": "1kB"})
    dry = world.relay("reap", "-n")
    assert f"removed `{place}`: it made room" in dry.out, dry
    assert place.is_dir()
    events = reap(world)
    assert repaired(events) == ["worktree"]
    assert worktrees() == []
    assert world.show(f"refs/relay/{world.only_run()}/{place.name}.cut", "calc.py") == "half\n"


def test_what_is_kept_nowhere_else_is_not_given_up_for_room_but_raised(tmp_path: Path) -> None:
    world, place = _unanswered(tmp_path, beside="found.local")
    world.save(reap={"max_disk": "500kB"})
    events = reap(world)
    assert "disk" in alerts(events)
    assert any("and `[reap] max_disk` is 500 KB" in event["what"] for event in events)
    assert (place / "found.local").stat().st_size == BIG
    again(world)
    world.save(reap={"max_disk": "1GB"})
    reap(world)
    assert "disk" not in standing(world)


def test_what_set_up_fetched_makes_room_once_no_worktree_can(tmp_path: Path) -> None:
    world, place = _unanswered(tmp_path, beside="found.local")
    fetched = caches.place(ledgers.at(repository.discover(world.root))) / "uv"
    fetched.mkdir(parents=True)
    (fetched / "wheel").write_bytes(os.urandom(6 * BIG))
    world.save(reap={"max_disk": "6MB"})
    dry = world.relay("reap", "-n")
    assert f"emptied `{fetched.parent}`: what set-up fetched made room" in dry.out, dry
    assert (fetched / "wheel").exists()
    events = reap(world)
    assert "disk" in repaired(events)
    assert "disk" not in alerts(events)
    assert not fetched.exists()
    assert place.is_dir(), "what is kept nowhere else is no room"
    again(world)


def test_the_caches_of_a_worktree_that_is_gone_go_after_it(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    assert world.relay("run", world.spec()).code == 0
    left = ledgers.at(repository.discover(world.root)).worktree(world.only_run(), "01-implement.cache")
    (left / "uv").mkdir(parents=True)
    (left / "uv" / "wheel").write_text("fetched\n")
    (mine := left.with_name("01-implement.mine.cache")).mkdir()
    (mine / "thesis").write_text("mine\n")
    (left / caches.TAG).write_text("as Relay writes it\n")
    reap(world)
    assert not left.exists()
    assert (mine / "thesis").exists(), "of such a name, and not Relay's"
    again(world)

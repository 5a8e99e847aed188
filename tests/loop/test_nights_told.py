"""A person is told of each night, whatever ends it, and when: by its own notice, else by that of the next one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import tomli_w

from relay import nights
from relay.errors import Exit
from relay.terms import Nightly
from tests.loop import dusk
from tests.loop.doomed import await_that
from tests.loop.dusk import Bell, newest, queued, records, went
from tests.loop.test_queue import ledger
from tests.world import CHECKOUT, SAFETY, World

FILL = """
import os
file = os.open("{small}/fill", os.O_CREAT | os.O_WRONLY)
os.posix_fallocate(file, 0, os.statvfs("{small}").f_bavail * 4096 - {free})
"""
"""A program that fills a disk but for so many bytes."""


def slow_bell(folder: Path) -> tuple[Path, Path]:
    """Let the person's command wait until it is let through; return what says that it rings, and what lets it."""
    rings, go = folder / "rings", folder / "go"
    command = f"touch {rings}; while ! test -e {go}; do sleep 0.05; done; cat >> {folder}/bell.txt"
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "relay" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(tomli_w.dumps({"notify": {"command": command}}), encoding="utf-8")
    return rings, go


def test_a_night_that_is_killed_while_it_tells_a_person_is_told_by_the_next_one_and_then_no_more(
    world: World, tmp_path: Path
) -> None:
    rings, _ = slow_bell(tmp_path)
    dusk.short(world)
    queued(world, "One")
    night = world.start("nightly", "--scheduled")
    await_that(rings.exists, "nobody was told")
    night.kill()
    night.communicate(timeout=SAFETY)
    lost = newest(world)
    assert (lost["ended_by"], lost["told"]) == ("done", False)
    (Path(os.environ["XDG_CONFIG_HOME"]) / "relay" / "config.toml").unlink()
    (Path(os.environ["XDG_CONFIG_HOME"]) / "relay").rmdir()
    bell = Bell(tmp_path)
    went(world.inside("nightly", "--scheduled"))
    assert bell.events == ["night"], "a scheduled night with nothing to do tells of the one before"
    assert f"nobody was told of the night before: relay report --night {lost['id']}" in bell.text
    assert [night["told"] for night in records(world)] == [True, True]
    went(world.inside("nightly", "--scheduled"))
    assert bell.events == ["night"]


def test_a_night_whose_notice_failed_is_told_by_the_next_that_can(world: World, tmp_path: Path) -> None:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "relay" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[notify]\ncommand = 'exit 1'\n", encoding="utf-8")
    dusk.short(world)
    queued(world, "One")
    went(world.inside("nightly"))
    for _ in range(4):
        went(world.inside("nightly", "--scheduled"))
    assert [night["told"] for night in records(world)] == [False] * 5
    path.unlink()
    path.parent.rmdir()
    bell, lost = Bell(tmp_path), newest(world)["id"]
    went(world.inside("nightly", "--scheduled"))
    assert f"perhaps nobody was told of the night before: relay report --night {lost}" in bell.text
    assert "; and of 2 before" in bell.text
    assert [night["told"] for night in records(world)] == [True] * 6


def test_a_signal_that_comes_while_a_person_is_told_lets_that_end(world: World, tmp_path: Path) -> None:
    rings, go = slow_bell(tmp_path)
    dusk.short(world)
    queued(world, "One")
    night = world.start("nightly")
    await_that(rings.exists, "nobody was told")
    night.terminate()
    go.touch()
    _, err = night.communicate(timeout=SAFETY)
    assert night.returncode == 128 + signal.SIGTERM, err
    assert "1 run: 1 accepted" in (tmp_path / "bell.txt").read_text(encoding="utf-8")
    assert (newest(world)["ended_by"], newest(world)["told"]) == ("done", True)


def test_a_record_that_an_older_relay_wrote_counts_as_told(world: World, tmp_path: Path) -> None:
    bell, here = Bell(tmp_path), ledger(world)
    old = nights.begin(here, Nightly(), scheduled=True)
    nights.write(here, msgspec.structs.replace(old, ended=old.started, ended_by="done"))
    path = here.nights / f"{old.id}.json"
    fields = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({name: value for name, value in fields.items() if name != "told"}))
    went(world.inside("nightly", "--scheduled"))
    assert bell.events == []


def test_whenever_a_signal_comes_no_record_stays_open_and_a_person_is_told_of_each(
    world: World, tmp_path: Path
) -> None:
    bell = Bell(tmp_path)
    dusk.short(world)
    folder = world.root / ".git" / "relay" / "nights"
    for count in range(8):
        night = world.start("nightly")
        while len(list(folder.glob("[0-9]*.json"))) == count and night.poll() is None:
            time.sleep(0.001)  # the sooner after its record is there, the better
        night.terminate()
        night.communicate(timeout=SAFETY)
    assert all(night["ended"] for night in records(world))
    assert len(bell.events) == len(records(world))


@pytest.mark.parametrize("free", [0, 4096], ids=["nothing free", "one page free"])
def test_a_disk_that_takes_no_more_rings_the_bell_all_the_same(world: World, tmp_path: Path, free: int) -> None:
    bell = Bell(tmp_path)
    dusk.short(world)
    queued(world, "One")
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=30m small {small} && cp -a {world.root}/. {small}"
    script = f'{mount} && {sys.executable} -c "$FILL" && cd {small} && exec {sys.executable} -m relay nightly'
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "FILL": FILL.format(small=small, free=free)},
        capture_output=True,
        check=False,
        timeout=SAFETY,
    )
    if b"unshare" in done.stderr or b"mount:" in done.stderr:
        pytest.skip("no mount namespace can be made here")
    assert (done.returncode, b"this is a bug" in done.stderr) == (Exit.HUMAN, False), done.stderr
    assert bell.events == ["night"]
    assert "free at" in bell.text

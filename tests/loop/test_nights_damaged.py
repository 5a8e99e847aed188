"""A night among records that are damaged, on a disk that fills, beside a queue that another holds: it ends well."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relay import alerts, nights
from relay.terms import Nightly
from tests.loop import dusk
from tests.loop.dusk import MENDED, Bell, items, newest, queued, records, runs, went
from tests.loop.faults import refused, sober
from tests.loop.test_queue import ledger
from tests.world import CHECKOUT, SAFETY, SPEC, World


@pytest.mark.parametrize(
    "limit", [("--usd", "nan"), ("--usd", "inf"), ("--hours", "nan"), ("--hours", "inf"), ("--hours", "1e12")]
)
def test_a_purse_that_cannot_be_reckoned_with_is_refused(world: World, limit: tuple[str, str]) -> None:
    queued(world, "One")
    for options in ((), ("--dry-run",)):
        refused(world.inside("nightly", *options, *limit), 2, f"`{limit[0][2:]}` is")
    assert (records(world), runs(world)) == ([], [])


def test_a_record_that_cannot_be_written_any_more_ends_no_night_and_the_notice_tells_the_truth(
    world: World, tmp_path: Path
) -> None:
    bell = Bell(tmp_path)
    place = ledger(world).nights
    dusk.short(world, f"head -c 1000000 /dev/zero > {place}/fill\n{MENDED}")
    queued(world, "One")
    place.mkdir()
    script = f"mount -t tmpfs -o size=32k small {place} && exec {sys.executable} -m relay nightly"
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        check=False,
        timeout=SAFETY,
    )
    if b"unshare" in done.stderr or b"mount:" in done.stderr:
        pytest.skip("no mount namespace can be made here")
    assert (done.returncode, b"this is a bug" in done.stderr) == (0, False), done.stderr
    assert b"no space left" in done.stderr
    assert bell.events == ["night"]
    assert "1 run: 1 accepted" in bell.text
    assert runs(world) == ["one"]


def test_a_queue_that_another_holds_ends_no_night(world: World) -> None:
    dusk.short(world)
    queued(world, "One", "Two")
    here = ledger(world)
    holding = (
        "import sys, time; from pathlib import Path; from relay.host import lock\n"
        f"with lock.hold(Path({str(here.queue / 'lock')!r}), 'another'):\n"
        "    print('held', flush=True); time.sleep(600)"
    )
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen([sys.executable, "-c", holding], env=env, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
            sober(world.inside("nightly"))
        finally:
            other.kill()
    both = [("started", "one", "accepted"), ("started", "two", "accepted")]
    assert (items(world), newest(world)["ended_by"]) == (both, "done")
    went(world.inside("nightly"))
    assert (runs(world), list(here.queue.glob("*.json"))) == (["one", "two"], [])


@pytest.mark.parametrize("damage", ["renamed", "undated", "torn"])
def test_a_damaged_record_of_another_night_ends_none(world: World, damage: str) -> None:
    here = ledger(world)
    old = nights.begin(here, Nightly(), scheduled=True)
    path = here.nights / f"{old.id}.json"
    if damage == "renamed":
        path.rename(path.with_name("mine.json"))
    elif damage == "undated":
        path.write_text(path.read_text().replace(old.started, "long ago"))
    else:
        path.write_bytes(path.read_bytes()[:30])
    dusk.short(world)
    queued(world, "One")
    went(world.inside("nightly"))
    assert runs(world) == ["one"]


def test_of_what_no_night_can_take_a_person_hears_once_and_again_when_the_reason_is_another(
    world: World, tmp_path: Path
) -> None:
    bell = Bell(tmp_path)
    dusk.short(world)
    world.commit({"tasks/one.md": "# One\n"})
    world.save(phases=["implement"], queue="tasks/*.md")
    for _ in range(3):
        went(world.inside("nightly", "--scheduled"))
    assert (bell.events, len(records(world))) == (["night"], 3)
    world.commit({"tasks/one.md": ""})
    went(world.inside("nightly", "--scheduled"))
    assert bell.events == ["night"] * 2
    world.commit({"tasks/two.md": SPEC})
    went(world.inside("nightly", "--scheduled"))
    assert bell.events == ["night"] * 3


def test_what_the_night_leaves_at_its_limit_is_written_down_in_its_order(world: World) -> None:
    world.commit({f"tasks/{name}.md": SPEC.replace("Make", name) for name in ("three", "two")})
    dusk.short(world, "sleep 300")
    world.save(phases=["implement"], queue="tasks/*.md", nightly={"hours": 2 / 3600})
    queued(world, "One")
    went(world.inside("nightly"))
    assert [(did, name) for did, name, _ in items(world)] == [
        ("started", "one"),
        ("skipped", "three"),
        ("skipped", "two"),
    ]
    assert (newest(world)["ended_by"], runs(world)) == ("hours", ["one"])


def test_an_alert_that_is_torn_is_told_again(world: World) -> None:
    here = ledger(world)
    one = alerts.new("ref:x", "ref", "x", "true")
    assert alerts.tell(here, one)
    [path] = here.alerts.glob("*.json")
    path.write_bytes(b"")
    assert alerts.tell(here, one)
    assert not alerts.tell(here, one)

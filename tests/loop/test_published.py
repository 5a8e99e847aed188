"""`ship.publish`: notes and receipts under a ref, so that another clone can tell the run, and nothing that is long."""

from pathlib import Path

from tests.forge import accepted
from tests.loop.faults import refused, through
from tests.world import World


def test_another_clone_tells_the_run_from_the_ref(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push", publish="push")
    run = world.only_run()
    through(world.inside("approve"))
    ref = f"refs/relay-ledger/{run}"
    assert world.refs()[ref] == away.git("rev-parse", ref)
    kept = away.git("ls-tree", "-r", "--name-only", ref).split()
    assert {"plan.toml", "spec.md", "legs/01-implement/receipt.json", "legs/01-implement/note.md"} <= set(kept)
    assert not [name for name in kept if name.endswith(("prompt.md", ".jsonl", ".log", "start.json"))]

    clone = tmp_path / "clone"
    world.git("clone", "-q", str(away.folder), str(clone), folder=tmp_path)
    refused(world.inside("trace", "--from", run, folder=clone), 2, "no receipts are kept", "git fetch REMOTE")
    world.git("fetch", "-q", "origin", "refs/relay-ledger/*:refs/relay-ledger/*", folder=clone)
    there = world.inside("trace", "--from", run, folder=clone)
    through(there)
    here = world.inside("trace", run)
    assert there.out == here.out
    assert "outcome: shipped" in there.out
    assert not (clone / ".git" / "relay").exists()


def test_a_ref_that_cannot_be_pushed_is_said_and_the_run_has_shipped_all_the_same(tmp_path: Path) -> None:
    world, away = accepted(tmp_path, method="push", publish="push")
    away.hook("update", 'case "$1" in refs/relay-ledger/*) echo "not here" >&2; exit 1;; esac')
    ran = world.inside("approve")
    through(ran)
    assert "are not published" in ran.err
    assert "not here" in ran.err
    (away.folder / "hooks" / "update").unlink()
    through(world.inside("approve", world.only_run()))
    assert away.git("rev-parse", f"refs/relay-ledger/{world.only_run()}")


def test_without_a_remote_the_ref_stays_here(tmp_path: Path) -> None:
    world = World.simple(tmp_path, phases=["implement"], ship={"publish": "ref"})
    through(world.inside("run", world.spec()))
    through(world.inside("approve"))
    run = world.only_run()
    told = world.inside("trace", "--from", f"refs/relay-ledger/{run}", "--json")
    through(told)
    assert [event["leg"] for event in told.events] == ["01-implement", "02-approve", "03-ship"]

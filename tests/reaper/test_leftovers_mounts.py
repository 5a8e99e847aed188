"""A person mounted a folder of theirs in a worktree that nobody owns: neither of the two loses a file."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.host import held
from tests.loop import doomed
from tests.loop.faults import through
from tests.reaper.scenes import alerts, command, killed, own_temp, repaired, with_a_worktree_kept, worktrees
from tests.world import CHECKOUT, SAFETY, World

APART = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]


def _beside_a_mount(world: World, at: Path, *words: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Run the reaper where `precious` is mounted at a place; return what it said, and the files of both afterwards."""
    if shutil.which("unshare") is None:
        pytest.skip("`unshare` of util-linux is not here, so nothing can be mounted")
    precious = world.folder / "precious"
    (precious / "sub").mkdir(parents=True, exist_ok=True)
    for name in ("thesis", "sub/notes"):
        (precious / name).write_text("years")
    reaping = shlex.join([sys.executable, "-m", "relay", "reap", "--json", *words])
    done = subprocess.run(
        [*APART, "sh", "-euc", f"mount --bind {precious} {at}\n{reaping}"],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        check=False,
        timeout=SAFETY,
    )
    if done.stderr.startswith((b"unshare:", b"mount:")):
        pytest.skip(f"nothing can be mounted here: {done.stderr!r}")
    assert done.returncode == 0, done
    assert [(precious / name).exists() for name in ("thesis", "sub/notes")] == [True, True]
    return [json.loads(line) for line in done.stdout.splitlines()], sorted(str(path) for path in at.parent.rglob("*"))


def test_a_kept_worktree_with_a_mount_in_it_is_raised_by_a_dry_run_too_and_stays_whole(tmp_path: Path) -> None:
    world, place = with_a_worktree_kept(tmp_path)
    world.git("-C", str(place), "checkout", "-q", "--", ".")
    (place / "node_modules").mkdir()
    before = sorted(str(path) for path in place.rglob("*"))
    for words in (("--dry-run",), ()):
        events, after = _beside_a_mount(world, place / "node_modules", *words)
        assert (repaired(events), alerts(events)) == ([], ["worktree"])
        assert f"something is mounted at `{place / 'node_modules'}`" in str(events)
        assert command(events, "worktree") == f"umount {place / 'node_modules'}"
        assert after == before


def test_the_worktree_of_a_killed_leg_stays_whole_while_something_is_mounted_in_it(world: World) -> None:
    world.commit({".gitignore": "node_modules/\n"})
    pids = killed(world)
    [place] = worktrees()
    (place / "node_modules").mkdir()
    before = sorted(str(path) for path in place.rglob("*"))
    events, after = _beside_a_mount(world, place / "node_modules")
    doomed.end(pids)
    assert "worktree" not in repaired(events)
    assert after == before


@pytest.mark.parametrize("words", [("--dry-run",), ()], ids=str)
@pytest.mark.parametrize("which", ["a temporary folder", "a draft"])
def test_what_is_nobodys_with_a_mount_in_it_is_neither_announced_nor_touched(
    world: World, monkeypatch: pytest.MonkeyPatch, which: str, words: tuple[str, ...]
) -> None:
    through(world.relay("run", world.spec()))
    temp = own_temp(world, monkeypatch)
    left = held.left(temp) if which == "a temporary folder" else world.runs / ".new-0123456789ab"
    (left / "sub").mkdir(parents=True, exist_ok=True)
    (left / "file").touch()
    held.age(left)
    events, after = _beside_a_mount(world, left / "sub", *words)
    assert events == []
    assert str(left / "file") in after

"""A lock of git's while a git is still there: it closed the file, and wants it all the same when it goes on."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.loop.faults import through
from tests.reaper.scenes import again, alerts, command, reap, standing
from tests.world import SAFETY, World

LONG_AGO = 1_000_000_000


@contextmanager
def _editing(world: World, words: Sequence[str], folder: Path, **env: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Keep a git with its editor open inside a `with` block; it gets its message at the end."""
    opened, go = world.folder / "opened", world.folder / "go"
    wait = f"while ! test -e {go}; do sleep 0.05; done"
    with subprocess.Popen(
        ["git", *words],
        cwd=folder,
        env={**os.environ, **env, "GIT_EDITOR": f"sh -c 'touch {opened}; {wait}; echo thought > \"$1\"' sh"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        try:
            over = time.monotonic() + SAFETY
            while not opened.exists() and running.poll() is None and time.monotonic() < over:
                time.sleep(0.05)
            assert opened.exists(), running.communicate(timeout=SAFETY)
            yield running
        finally:
            go.touch()
            running.communicate(timeout=SAFETY)


@pytest.fixture
def lock(world: World) -> Path:
    """Make a repository with a run, and a change of the person's own that is to be committed."""
    through(world.relay("run", world.spec()))
    world.write({"README.md": "a day of work\n"})
    return world.root / ".git" / "index.lock"


@pytest.mark.parametrize("how", ["in the checkout", "named by options", "named by the environment"])
def test_a_lock_stays_and_is_not_raised_while_its_git_waits_for_an_editor(world: World, lock: Path, how: str) -> None:
    there = {"GIT_DIR": str(world.root / ".git"), "GIT_WORK_TREE": str(world.root)}
    options = [f"--git-dir={there['GIT_DIR']}", f"--work-tree={there['GIT_WORK_TREE']}"]
    words, folder, env = {
        "in the checkout": ([], world.root, {}),
        "named by options": (options, world.folder, {}),
        "named by the environment": ([], world.folder, there),
    }[how]
    with _editing(world, [*words, "commit", "-a"], folder, **env) as running:
        assert lock.exists()
        os.utime(lock, (LONG_AGO, LONG_AGO))
        again(world)
        assert standing(world) == []
    assert running.returncode == 0
    assert world.git("log", "-1", "--format=%s").strip() == "thought"
    assert world.git("status", "--porcelain").strip() == ""


def test_a_lock_that_was_raised_stays_raised_while_a_git_works_and_its_hint_breaks_nothing(
    world: World, lock: Path
) -> None:
    stale = world.root / ".git" / "packed-refs.lock"
    stale.touch()
    os.utime(stale, (LONG_AGO, LONG_AGO))
    events = reap(world)
    assert alerts(events) == ["lock"]
    assert "may be gone" in json.dumps(events)
    stale.unlink()
    with _editing(world, ["commit", "-a"], world.root) as running:
        lock.rename(stale)
        os.utime(stale, (LONG_AGO, LONG_AGO))
        again(world)
        assert standing(world) == ["lock"]
        typed = subprocess.run(
            ["sh", "-c", command(events, "lock")], stdout=subprocess.PIPE, check=False, timeout=SAFETY
        )
        assert b"git" in typed.stdout
        assert stale.exists()
        stale.rename(lock)
    assert running.returncode == 0


def test_a_lock_on_a_ref_of_relays_stays_while_a_git_works_here(world: World, lock: Path) -> None:
    ref = world.root / ".git" / "refs" / "heads" / "relay" / f"{world.only_run()}.lock"
    with _editing(world, ["commit", "-a"], world.root):
        assert lock.exists()
        ref.touch()
        os.utime(ref, (LONG_AGO, LONG_AGO))
        again(world)
        assert ref.exists()
    said = [event["what"] for event in reap(world) if event["type"] == "repaired"]
    assert said == [f"removed `{ref}`: a lock of a git that is gone, on a ref of Relay's"]


def test_a_git_that_works_elsewhere_keeps_no_lock_from_being_raised(world: World, lock: Path) -> None:
    other = world.folder / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True, timeout=SAFETY)
    lock.touch()
    os.utime(lock, (LONG_AGO, LONG_AGO))
    named = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    with _editing(world, [*named, "commit", "--allow-empty"], other):
        assert alerts(reap(world)) == ["lock"]

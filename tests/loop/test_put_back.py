"""Without a jail an agent can plant what git would run later: it is put back, kept as evidence, and said."""

import json
import os
import shlex
import signal
import time
from pathlib import Path

import pytest

from tests.loop.faults import stopped
from tests.world import FIXED, World

COMMON = "common=$(git rev-parse --git-common-dir)"
PLANTED = {
    "a hook": (f"{COMMON}; mkdir -p $common/hooks; echo evil > $common/hooks/post-commit", "hooks/post-commit"),
    "another hook for one that was there": (f"{COMMON}; echo evil > $common/hooks/pre-push", "hooks/pre-push"),
    "where hooks are": ("git config core.hooksPath /tmp/evil", "config"),
    "a repository without a checkout": ("git config core.bare true", "config"),
    "a filter": ("git config filter.own.clean ./evil", "config"),
    "another remote": ("git config url.https://evil.example/.insteadOf https://good.example/", "config"),
    "an alias": ("git config alias.status '!evil'", "config"),
    "settings that nobody can read": (f"{COMMON}; echo '[' > $common/config", "config"),
    "attributes": (
        f"{COMMON}; mkdir -p $common/info; echo '* filter=own' > $common/info/attributes",
        "info/attributes",
    ),
}


def _state(world: World) -> dict[str, str]:
    """Return what git would obey in the repository, file by file."""
    common = world.root / ".git"
    files = [common / "config", common / "info/attributes", *sorted((common / "hooks").glob("p*"))]
    return {path.relative_to(common).as_posix(): path.read_text() for path in files if path.is_file()}


def _agent(world: World, text: str) -> None:
    world.shell("implementer", f"printf {shlex.quote(FIXED)} > calc.py\n{text}", phase="implement", reply="exit")
    world.save()


@pytest.fixture
def hooked(world: World) -> World:
    """Make a world whose person has a hook of their own."""
    hook = world.root / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n# the person's own\n")
    hook.chmod(0o755)
    return world


@pytest.mark.parametrize("planted", PLANTED)
def test_what_would_run_a_program_later_is_put_back_and_kept_as_evidence(hooked: World, planted: str) -> None:
    text, name = PLANTED[planted]
    _agent(hooked, text)
    before = _state(hooked)
    ran = hooked.inside("run", hooked.spec())
    stopped(ran, 7, f"breach: {name}", f"put back: `{name}`")
    assert _state(hooked) == before
    assert os.access(hooked.root / ".git/hooks/pre-push", os.X_OK)
    evidence = hooked.runs / hooked.only_run() / "legs/01-implement/evidence" / name
    assert evidence.read_text() != before.get(name)


def test_a_setting_that_runs_nothing_may_be_the_persons_own_and_stays(hooked: World) -> None:
    _agent(hooked, "git config user.name Mallory")
    ran = hooked.inside("run", hooked.spec())
    stopped(ran, 7, "breach: config changed")
    assert "put back" not in ran.err
    assert hooked.git("config", "user.name") == "Mallory"


def test_it_is_put_back_too_when_the_runner_was_killed_before_it_looked(hooked: World) -> None:
    _agent(hooked, "git config core.hooksPath /tmp/evil\necho planted\nsleep 60")
    before = _state(hooked)
    running = hooked.start("run", hooked.spec())
    while not any("planted" in path.read_text() for path in hooked.runs.glob("*/legs/*/transcript.jsonl")):
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)
    ran = hooked.relay("resume")
    assert ran.code == 7, ran
    assert "put back: `config`" in ran.err + json.dumps(hooked.receipts())
    assert _state(hooked) == before


def test_a_copy_that_the_agent_rewrote_is_not_trusted(hooked: World) -> None:
    guarded = "$common/relay/runs/*/legs/01-implement/guarded/config"
    _agent(hooked, f"{COMMON}; git config core.hooksPath /tmp/evil; for f in {guarded}; do echo '[evil]' > $f; done")
    ran = hooked.inside("run", hooked.spec())
    stopped(ran, 7, "breach: config changed")
    assert "evil]" not in Path(hooked.root / ".git/config").read_text()

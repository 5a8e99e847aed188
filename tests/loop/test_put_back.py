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


def test_a_folder_of_hooks_that_became_a_link_takes_nothing_of_the_persons_with_it(hooked: World) -> None:
    private = hooked.folder / "private"
    private.mkdir()
    for name in ("id_rsa", "pre-push"):
        (private / name).write_text("the person's\n")
    _agent(hooked, f"{COMMON}; rm -rf $common/hooks; ln -s {private} $common/hooks")
    before = _state(hooked)
    ran = hooked.inside("run", hooked.spec())
    stopped(ran, 7, "hooks changed", "put back: `hooks`, `hooks/pre-push`")
    assert {path.name: path.read_text() for path in private.iterdir()} == dict.fromkeys(
        ("id_rsa", "pre-push"), "the person's\n"
    )
    assert not (hooked.root / ".git/hooks").is_symlink()
    assert _state(hooked) == before


def test_odd_things_among_the_hooks_hinder_no_run(hooked: World) -> None:
    hooks = hooked.root / ".git/hooks"
    (hooks / "pre-commit.d").mkdir()
    os.mkfifo(hooks / "pipe")
    (hooks / "loop").symlink_to("loop")
    _agent(hooked, "true")
    assert hooked.inside("run", hooked.spec()).code == 0


def test_an_ignored_hook_below_a_relative_path_is_named_and_put_back_in_place(hooked: World) -> None:
    hooked.commit({".gitignore": ".husky/_/\n"})
    hooked.write({".husky/_/pre-commit": "the person's\n"})
    hooked.git("config", "core.hooksPath", ".husky/_")
    _agent(hooked, f"echo evil > {hooked.root}/.husky/_/pre-commit")
    ran = hooked.inside("run", hooked.spec())
    stopped(ran, 7, "hooks path/.husky/_/pre-commit changed", "put back: `hooks path/.husky/_/pre-commit`")
    assert (hooked.root / ".husky/_/pre-commit").read_text() == "the person's\n"
    evidence = hooked.runs / hooked.only_run() / "legs/01-implement/evidence/hooks path/.husky/_/pre-commit"
    assert evidence.read_text() == "evil\n"


def test_what_the_person_set_meanwhile_stays_where_only_another_setting_is_dangerous(hooked: World) -> None:
    _agent(hooked, "git config user.name Grace; git config branch.main.description mine; git config alias.st '!evil'")
    ran = hooked.inside("run", hooked.spec())
    stopped(ran, 7, "breach: config changed", "put back: `config`")
    assert hooked.git("config", "user.name") == "Grace"
    assert hooked.git("config", "branch.main.description") == "mine"
    assert hooked.git("config", "--local", "--list").find("alias") == -1


def test_copies_that_the_agent_removed_are_missed_and_nothing_it_planted_runs(hooked: World) -> None:
    remove = "rm -rf $common/relay/runs/*/legs/01-implement/guarded"
    _agent(hooked, f"{COMMON}; {remove}; echo evil > $common/hooks/pre-push; echo evil > $common/hooks/post-merge")
    ran = hooked.inside("run", hooked.spec())
    stopped(ran, 7, "put back: `hooks/post-merge`", "not put back: `hooks/pre-push`")
    assert not (hooked.root / ".git/hooks/post-merge").exists()


def test_a_lock_on_the_ref_that_keeps_a_leg_is_named_and_costs_nothing(hooked: World) -> None:
    lock = "d=$common/refs/relay/$RELAY_RUN; mkdir -p $d; : > $d/$RELAY_LEG.lock; : > $d/$RELAY_LEG.void.lock"
    _agent(hooked, f"{COMMON}; {lock}")
    ran = hooked.inside("run", hooked.spec())
    stopped(ran, 7, f"locks/refs/relay/{hooked.only_run()}/01-implement.lock appeared")
    assert hooked.show(f"refs/relay/{hooked.only_run()}/01-implement.void", "calc.py") == FIXED

"""Which process is which: by start and boot, never by number alone; and only those that are meant are ended."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from relay.host import pids, proc
from relay.terms import Limits, Process
from tests.world import SAFETY

GENEROUS = Limits(seconds=SAFETY)


def test_this_process_is_alive_and_a_later_one_of_its_number_is_another() -> None:
    this = proc.this()
    assert this.pid == os.getpid()
    assert proc.alive(this)
    assert not proc.alive(Process(pid=this.pid, started=this.started + 1, boot=this.boot))
    assert not proc.alive(Process(pid=this.pid, started=this.started, boot="another boot"))
    assert not proc.alive(Process(pid=1, started=0, boot=this.boot))


def test_a_process_that_only_waits_to_be_reaped_is_dead() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert pids.stat(child.pid) is None


def test_survivors_are_found_by_their_nonce_and_ended(bystander: int) -> None:
    env = os.environ | {"RELAY_NONCE": "a1b2"}
    with (
        subprocess.Popen(["sleep", "300"], env=env, start_new_session=True) as child,
        subprocess.Popen(["sleep", "300"], env=env | {"RELAY_NONCE": "a1b2c3"}) as other,
    ):
        assert proc.survivors("a1b2") == [child.pid]
        proc.end([child.pid])
        assert child.wait(SAFETY) == -signal.SIGTERM
        assert other.poll() is None
        other.kill()
    assert proc.survivors("a1b2") == []
    assert proc.survivors("") == []
    assert pids.stat(bystander)


def test_a_deaf_survivor_is_killed() -> None:
    command = ["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"deaf\n"
        proc.end([child.pid])
        assert child.wait(SAFETY) == -signal.SIGKILL


def test_ending_spares_this_process_and_those_it_descends_from() -> None:
    proc.end([0, 1, os.getpid(), os.getppid()])
    assert pids.stat(os.getppid())


def test_a_nonce_that_relay_itself_inherited_marks_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bystander: int
) -> None:
    monkeypatch.setenv("RELAY_NONCE", "outer")
    with subprocess.Popen(["sleep", "300"]) as sibling:
        ended = proc.run("echo $RELAY_NONCE", cwd=str(tmp_path), env=dict(os.environ), limits=GENEROUS)
        assert sibling.poll() is None
        sibling.kill()
    assert ended.text.strip() not in {"", "outer"}
    assert pids.stat(bystander)


def test_a_process_is_known_by_its_mark_even_while_it_becomes_another_program() -> None:
    again = 'exec /bin/sh -c "$0" "$0"'
    with subprocess.Popen(["/bin/sh", "-c", again, again], env=os.environ | {"RELAY_NONCE": "a1b2"}) as restless:
        try:
            assert all(pids.carries(restless.pid, b"RELAY_NONCE=a1b2") for _ in range(1000))
        finally:
            restless.kill()

"""Ending a program: nothing it started survives, whatever ended it."""

import os
import signal
import subprocess
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from relay.errors import Interrupted, RelayError
from relay.host import pids, proc
from relay.terms import Limits, Process
from tests.world import SAFETY

GENEROUS = Limits(seconds=SAFETY)


def run(command: str | list[str], folder: Path, stdin: bytes = b"", limits: Limits = GENEROUS) -> proc.Ended:
    return proc.run(command, cwd=str(folder), env=proc.clean_env(), stdin=stdin, limits=limits)


def left(folder: Path) -> list[int]:
    """Return which of the processes that wrote their numbers into `folder` still live."""
    wrote = [int(path.read_text()) for path in folder.glob("*.pid")]
    assert wrote, "nothing wrote its number, so the test would say nothing"
    return [pid for pid in wrote if pids.stat(pid)]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


# --- by itself ----------------------------------------------------------------------------------------------------

BACKGROUND = {
    "in its group": "sleep 300 & echo $! >a.pid",
    "in a session of its own": "setsid sh -c 'echo $$ >a.pid; exec sleep 300' &"
    " while [ ! -s a.pid ]; do sleep 0.01; done",
    "without the pipe": "setsid sh -c 'echo $$ >a.pid; exec sleep 300' >/dev/null 2>&1 &"
    " while [ ! -s a.pid ]; do sleep 0.01; done",
    "deaf to every signal": "sh -c 'trap \"\" INT TERM HUP; echo $$ >a.pid; while :; do sleep 1; done' &"
    " while [ ! -s a.pid ]; do sleep 0.01; done",
    "with an empty environment": "env -i sleep 300 & echo $! >a.pid",
    "talking without end": "setsid sh -c 'echo $$ >a.pid; exec yes' & while [ ! -s a.pid ]; do sleep 0.01; done",
}


@pytest.mark.parametrize("command", BACKGROUND.values(), ids=BACKGROUND.keys())
def test_a_background_child_neither_holds_up_the_end_nor_survives(tmp_path: Path, command: str, bystander: int) -> None:
    ended = run(f"{command}; touch done", tmp_path)
    assert (ended.code, ended.ended) == (0, "exit")
    assert (tmp_path / "done").exists()
    assert ended.seconds < SAFETY / 2
    assert left(tmp_path) == []
    assert pids.stat(bystander)


def test_a_reader_that_is_nearly_done_may_finish(tmp_path: Path) -> None:
    ended = run("(sleep 0.05; echo late) & echo early", tmp_path)
    assert ended.text == "early\nlate\n"


def test_nothing_stays_open_after_a_run(tmp_path: Path) -> None:
    run("true", tmp_path)
    before = open_files()
    run("cat", tmp_path, stdin=b"x")
    run(["no-such-program"], tmp_path)
    run("sleep 300", tmp_path, limits=Limits(seconds=0.05))
    assert open_files() == before


# --- by a limit ---------------------------------------------------------------------------------------------------


def test_a_program_over_its_time_is_ended(tmp_path: Path) -> None:
    ended = run("echo begun; exec sleep 300", tmp_path, limits=Limits(seconds=0.3))
    assert (ended.ended, ended.code, ended.text) == ("timeout", -signal.SIGINT, "begun\n")


def test_a_program_deaf_to_signals_is_dead_soon_after_its_time(tmp_path: Path, bystander: int) -> None:
    command = (
        "trap '' INT TERM; echo $$ >a.pid; setsid sh -c 'echo $$ >b.pid; exec sleep 300' & while :; do sleep 1; done"
    )
    ended = run(command, tmp_path, limits=Limits(seconds=0.5))
    assert (ended.ended, ended.code) == ("timeout", -signal.SIGKILL)
    assert ended.seconds < SAFETY / 2
    assert len(list(tmp_path.glob("*.pid"))) == 2
    assert left(tmp_path) == []
    assert pids.stat(bystander)


def test_last_words_after_the_limit_are_kept(tmp_path: Path) -> None:
    command = "trap 'echo last words; exit 3' INT; echo begun; while :; do sleep 0.05; done"
    ended = run(command, tmp_path, limits=Limits(seconds=0.5))
    assert (ended.ended, ended.code, ended.text) == ("timeout", 3, "begun\nlast words\n")


def test_a_silent_program_is_ended_and_a_talking_one_is_not(tmp_path: Path) -> None:
    limits = Limits(seconds=SAFETY, idle=1)
    assert run("exec sleep 300", tmp_path, limits=limits).ended == "idle"
    talking = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo $i; sleep 0.1; done"
    assert run(talking, tmp_path, limits=limits).ended == "exit"


def test_a_flood_is_ended_at_its_limit(tmp_path: Path) -> None:
    assert run("exec yes", tmp_path, limits=Limits(seconds=SAFETY, output=1 << 20)).ended == "output"


def test_a_flood_that_ends_by_itself_is_over_the_limit_all_the_same(tmp_path: Path) -> None:
    ended = run("printf 0123456789", tmp_path, limits=Limits(seconds=SAFETY, output=9))
    assert ended.ended == "output"
    assert run("printf 012345678", tmp_path, limits=Limits(seconds=SAFETY, output=9)).ended == "exit"


# --- by an exception ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_ends_the_whole_tree_first(tmp_path: Path, signum: signal.Signals) -> None:
    command = (
        "echo $$ >a.pid; setsid sh -c 'echo $$ >b.pid; exec sleep 300' & while [ ! -s b.pid ]; do sleep 0.01; done;"
        f" kill -{signum} {os.getpid()}; exec sleep 300"
    )

    def interrupt(number: int, _: FrameType | None) -> None:
        raise Interrupted(number)

    before = signal.signal(signum, interrupt)
    try:
        with pytest.raises(Interrupted) as caught:
            run(command, tmp_path)
    finally:
        signal.signal(signum, before)
    assert caught.value.signum == signum
    assert len(list(tmp_path.glob("*.pid"))) == 2
    assert left(tmp_path) == []


def test_a_second_signal_waits_until_the_tree_has_ended(tmp_path: Path) -> None:
    me = os.getpid()
    command = f"trap '' INT; trap 'kill -INT {me}' TERM; echo $$ >a.pid; kill -INT {me}; while :; do sleep 0.05; done"

    def interrupt(number: int, _: FrameType | None) -> None:
        raise Interrupted(number)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(Interrupted):
            run(command, tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert left(tmp_path) == []


def test_a_sink_that_fails_ends_the_program_and_is_heard(tmp_path: Path) -> None:
    def full(_: bytes) -> None:
        raise RelayError("no space left")

    with pytest.raises(RelayError, match="no space left"):
        proc.run(
            "echo $$ >a.pid; echo x; sleep 300", cwd=str(tmp_path), env=proc.clean_env(), limits=GENEROUS, sink=full
        )
    assert left(tmp_path) == []


def test_a_failure_after_the_start_ends_the_program(tmp_path: Path) -> None:
    seen: list[Process] = []

    def failing(process: Process) -> None:
        seen.append(process)
        raise RelayError("cannot write start.json")

    with pytest.raises(RelayError, match=r"start\.json"):
        proc.run("sleep 300", cwd=str(tmp_path), env=proc.clean_env(), limits=GENEROUS, spawned=failing)
    assert not proc.alive(seen[0])


def test_an_interruption_in_the_middle_of_the_start_ends_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def interrupted(*args: Any, **options: Any) -> None:  # noqa: ANN401  passed on as they are
        begun.append(start(*args, **options))
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(Interrupted):
        run("exec sleep 300", tmp_path)
    with begun[0] as child:
        assert child.wait(SAFETY) == -signal.SIGTERM

"""Programs: fed, read, limited, and gone with everything they started."""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from relay.errors import Interrupted, RelayError
from relay.host import pids, proc
from relay.terms import Limits, Process
from tests.world import CHECKOUT, SAFETY

GENEROUS = Limits(seconds=SAFETY)
GIGABYTE = 1 << 30


def run(command: str | list[str], folder: Path, stdin: bytes = b"", limits: Limits = GENEROUS) -> proc.Ended:
    return proc.run(command, cwd=str(folder), env=proc.clean_env(), stdin=stdin, limits=limits)


def left(folder: Path) -> list[int]:
    """Return which of the processes that wrote their numbers into `folder` still live."""
    wrote = [int(path.read_text()) for path in folder.glob("*.pid")]
    assert wrote, "nothing wrote its number, so the test would say nothing"
    return [pid for pid in wrote if pids.stat(pid)]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def bystander() -> Iterator[int]:
    """Yield a process that has nothing to do with anything, and must live on."""
    with subprocess.Popen(["sleep", str(SAFETY)]) as child:
        yield child.pid
        alive = child.poll() is None
        child.kill()
    assert alive


# --- what a program does by itself --------------------------------------------------------------------------------


def test_both_outputs_and_the_exit_code_come_back(tmp_path: Path) -> None:
    ended = run("echo out; echo err >&2; exit 7", tmp_path)
    assert (ended.code, ended.ended, ended.text, ended.dropped) == (7, "exit", "out\nerr\n", 0)
    assert ended.sha256 == hashlib.sha256(b"out\nerr\n").hexdigest()
    assert ended.seconds > 0


def test_a_list_of_words_meets_no_shell(tmp_path: Path) -> None:
    assert run(["printf", "%s", "$HOME; *"], tmp_path).text == "$HOME; *"


def test_a_program_runs_in_its_folder(tmp_path: Path) -> None:
    assert run("pwd -P", tmp_path).text.strip() == str(tmp_path.resolve())


def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    assert run("kill -9 $$", tmp_path).code == -signal.SIGKILL


def test_a_program_that_is_not_there_has_the_code_of_a_shell(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("not a program")
    for command, code in ((["no-such-program"], 127), ([str(tmp_path / "plain")], 126), (["printf", "\0"], 126)):
        ended = run(command, tmp_path)
        assert (ended.code, ended.ended) == (code, "exit")
        assert ended.text.startswith(f"relay: cannot start `{command[0]}`: ")


def test_a_folder_that_is_not_there_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="there is no folder"):
        run("true", tmp_path / "nowhere")


def test_a_program_without_input_meets_its_end_at_once(tmp_path: Path) -> None:
    assert run("cat; echo done", tmp_path).text == "done\n"


def test_a_program_has_no_terminal(tmp_path: Path) -> None:
    assert run("if (exec </dev/tty) 2>/dev/null; then echo terminal; else echo none; fi", tmp_path).text == "none\n"


def test_megabytes_in_and_out_at_the_same_time_do_not_block(tmp_path: Path) -> None:
    sent = os.urandom(8 << 20)
    ended = run(["cat"], tmp_path, stdin=sent)
    assert ended.sha256 == hashlib.sha256(sent).hexdigest()
    assert ended.dropped == len(sent) - (1 << 20)
    assert ended.head + ended.tail == sent[: 1 << 19] + sent[-(1 << 19) :]


def test_input_that_nobody_reads_is_no_failure(tmp_path: Path) -> None:
    assert run("exec true", tmp_path, stdin=bytes(8 << 20)).code == 0


def test_output_that_is_no_text_is_shown_as_text(tmp_path: Path) -> None:
    ended = run(r"printf '\377\000\033]0;title\007\033[31mred\033[0m\r\n'", tmp_path)
    assert ended.head == b"\xff\0\x1b]0;title\x07\x1b[31mred\x1b[0m\r\n"
    assert ended.text == "\ufffdred\n"


def test_the_middle_of_long_output_is_counted(tmp_path: Path) -> None:
    ended = run("printf 0123456789", tmp_path, limits=Limits(seconds=SAFETY, keep=4))
    assert (ended.head, ended.tail, ended.dropped) == (b"01", b"89", 6)
    assert ended.text == "01\n[... 6 bytes left out ...]\n89"


def test_a_gigabyte_of_output_does_not_fill_the_memory() -> None:
    program = (
        "import resource\nfrom relay.host import proc\nfrom relay.terms import Limits\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nbefore = peak()\n"
        f"e = proc.run(['head', '-c', '{GIGABYTE}', '/dev/zero'], cwd='/', env={{}}, limits=Limits(seconds={SAFETY}))\n"
        "print(e.ended, e.code, e.dropped + len(e.head) + len(e.tail), peak() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(CHECKOUT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        timeout=SAFETY,
    )
    ended, code, total, kibibytes = done.stdout.split()
    assert (ended, code, total) == ("exit", "0", str(GIGABYTE))
    assert int(kibibytes) < 64 << 10


def test_the_sink_hears_everything_in_order(tmp_path: Path) -> None:
    heard: list[bytes] = []
    ended = proc.run("echo a; echo b", cwd=str(tmp_path), env=proc.clean_env(), limits=GENEROUS, sink=heard.append)
    assert b"".join(heard) == ended.head == b"a\nb\n"


def test_the_process_is_told_as_soon_as_it_runs(tmp_path: Path) -> None:
    told: list[tuple[Process, bool]] = []
    command = 'while [ ! -e go ]; do sleep 0.01; done; echo "$$"'

    def spawned(process: Process) -> None:
        told.append((process, proc.alive(process)))
        (tmp_path / "go").touch()

    ended = proc.run(command, cwd=str(tmp_path), env=proc.clean_env(), limits=GENEROUS, spawned=spawned)
    assert [(process.pid, alive) for process, alive in told] == [(int(ended.text), True)]
    assert not proc.alive(told[0][0])


# --- what it leaves behind ----------------------------------------------------------------------------------------

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


# --- limits -------------------------------------------------------------------------------------------------------


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


# --- exceptions ---------------------------------------------------------------------------------------------------


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


# --- which process is which ---------------------------------------------------------------------------------------


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


# --- the environment ----------------------------------------------------------------------------------------------


def test_what_leads_elsewhere_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    local = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True)
    names = [*local.stdout.split(), "GIT_TRACE", "GIT_TRACE2_EVENT", "GIT_CONFIG_KEY_0", "GIT_LITERAL_PATHSPECS"]
    names += ["RELAY_NONCE", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "NODE_PATH"]
    for name in names:
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -i key")
    env = proc.clean_env({"RELAY_RUN": "r"})
    assert [name for name in names if name in env] == []
    assert env["GIT_SSH_COMMAND"] == "ssh -i key"
    assert env["RELAY_RUN"] == "r"
    assert env["HOME"] == os.environ["HOME"]


def test_the_path_loses_only_the_environment_that_relay_runs_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin:/usr/bin")
    assert proc.clean_env()["PATH"] == "/usr/bin"
    monkeypatch.setenv("PATH", f"/first:{sys.prefix}/bin:/usr/bin")
    assert proc.clean_env()["PATH"] == f"/first:{sys.prefix}/bin:/usr/bin"
    monkeypatch.setenv("VIRTUAL_ENV", "/project/.venv")
    monkeypatch.setenv("PATH", "/project/.venv/bin:/usr/bin")
    assert proc.clean_env()["PATH"] == "/project/.venv/bin:/usr/bin"

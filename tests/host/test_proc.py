"""Running a program: what goes in, what comes out, and what it sees."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import proc
from relay.terms import Limits, Process
from tests.world import CHECKOUT, SAFETY

GENEROUS = Limits(seconds=SAFETY)
GIGABYTE = 1 << 30


def run(command: str | list[str], folder: Path, stdin: bytes = b"", limits: Limits = GENEROUS) -> proc.Ended:
    return proc.run(command, cwd=str(folder), env=proc.clean_env(), stdin=stdin, limits=limits)


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

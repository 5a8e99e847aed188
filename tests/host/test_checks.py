"""Checks: what a command did is a fact, also when it did not end by itself."""

import hashlib
import os
from pathlib import Path

import pytest

from relay.host import checks, pids
from relay.terms import Check
from tests.world import SAFETY


def run(command: str, folder: Path, seconds: float = SAFETY) -> tuple[Check, str]:
    return checks.run(command, folder, by="c1", env={"LEG": "01-implement"}, seconds=seconds)


def test_a_check_says_what_ran_and_what_came_of_it(tmp_path: Path) -> None:
    check, text = run("echo found $LEG; exit 3", tmp_path)
    assert text == "found 01-implement\n"
    assert (check.by, check.command, check.exit, check.ended) == ("c1", "echo found $LEG; exit 3", 3, "exit")
    assert check.output_sha256 == hashlib.sha256(b"found 01-implement\n").hexdigest()
    assert check.newly_red


def test_a_check_runs_in_its_folder_with_no_foreign_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    _, text = run('pwd -P; echo "${GIT_DIR-none}"', tmp_path)
    assert text == f"{tmp_path.resolve()}\nnone\n"


SURROUNDINGS = {
    "HOME": "/home/me",
    "XDG_CACHE_HOME": "/home/me/.cache",
    "CARGO_HOME": "/home/me/cargo",
    "PYENV_ROOT": "/home/me/pyenv",
    "NVM_DIR": "/home/me/nvm",
    "GOPATH": "/home/me/go",
    "LC_TIME": "C",
    "SSL_CERT_FILE": "/etc/ssl/cert.pem",
    "CFLAGS": "-O2",
    "https_proxy": "http://proxy.example:8080",
    "NO_PROXY": "127.0.0.1",
}
KEPT_BACK = {
    "ANTHROPIC_API_KEY": "one",
    "AWS_SECRET_ACCESS_KEY": "two",
    "DATABASE_URL": "three",
    "SSH_AUTH_SOCK": "/run/agent",
    "KUBECONFIG": "/home/me/kube",
    "HTTP_PROXY": "http://me:hidden@proxy.example:8080",
    "PYTHONPATH": "/elsewhere",
    "GIT_DIR": "/elsewhere",
    "RELAY_HOME": "/elsewhere",
    "EDITOR": "vi",
}


def test_a_command_in_the_open_finds_its_home_and_its_tools_and_none_of_the_persons_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (SURROUNDINGS | KEPT_BACK).items():
        monkeypatch.setenv(name, value)
    _, text = run("env", tmp_path)
    seen = dict(line.split("=", 1) for line in text.splitlines())
    assert {name: seen.get(name) for name in SURROUNDINGS} == SURROUNDINGS
    assert not KEPT_BACK.keys() & seen.keys()
    assert (seen["LEG"], seen["PATH"]) == ("01-implement", os.environ["PATH"])


def test_what_is_named_goes_before_what_is_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEG", "another")
    monkeypatch.delenv("HOME")
    assert run('echo "$LEG ${HOME:+found}"', tmp_path)[1] == "01-implement found\n"


def test_a_check_over_its_time_is_red_even_if_it_claims_success(tmp_path: Path) -> None:
    check, text = run("trap 'exit 0' INT; echo begun; while :; do sleep 0.05; done", tmp_path, seconds=0.5)
    assert (check.exit, check.ended, text) == (124, "timeout", "begun\n")


def test_a_killed_check_has_the_number_of_the_signal(tmp_path: Path) -> None:
    assert run("kill -9 $$", tmp_path)[0].exit == -9


def test_a_command_that_is_not_there_is_just_a_code(tmp_path: Path) -> None:
    assert run("no-such-program", tmp_path)[0].exit == 127


def test_a_server_that_a_check_left_running_is_gone(tmp_path: Path) -> None:
    command = "setsid sh -c 'echo $$ >pid; exec sleep 300' >/dev/null 2>&1 & while [ ! -s pid ]; do sleep 0.01; done"
    check, _ = run(command, tmp_path)
    assert check.exit == 0
    assert pids.stat(int((tmp_path / "pid").read_text())) is None


def test_two_runs_of_a_check_have_the_same_hash(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(os.urandom(1 << 20))
    assert run("cat big", tmp_path)[0].output_sha256 == run("cat big", tmp_path)[0].output_sha256

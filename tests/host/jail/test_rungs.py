"""Which jail holds here is found by running it, and said; it is never silently weaker."""

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.errors import Exit, RelayError
from relay.host.jail import rungs
from relay.host.jail.rungs import Cause, Rung
from tests.host.jail import cell

SAID = {  # as bwrap said it where it was seen, and what must stand in the message and the hint
    "bwrap: setting up uid map: Permission denied": ("AppArmor", "/etc/apparmor.d/bwrap"),
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user "
    "namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'.": (
        "container forbids",
        "seccomp",
    ),
    "bwrap: Can't mount proc on /newroot/proc: Operation not permitted": ("/proc", "systempaths"),
    "bwrap: setting up uid map: Operation not permitted": ("SETFCAP", "ordinary user"),
    "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)": (
        "in a jail itself",
        "raise the limit",
    ),
    "bwrap: Unknown option --disable-userns": ("older than 0.8", "0.8 or newer"),
    "bwrap: execvp prlimit: No such file or directory": ("prlimit", "util-linux"),
}


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    rungs.probe.cache_clear()
    yield
    rungs.probe.cache_clear()


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Put a `bwrap` on PATH that says what the real one would say elsewhere, and counts how often it is called."""
    folder.mkdir(exist_ok=True)
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\necho called >> {folder}/calls\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder / "calls"


def test_every_known_cause_has_an_example() -> None:
    assert {rungs.explain(said) for said in SAID} == set(rungs.KNOWN)


@pytest.mark.parametrize("said", SAID)
def test_a_known_failure_is_refused_with_cause_and_remedy(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "bin", monkeypatch, f'echo "{said}" >&2; exit 1')
    with pytest.raises(RelayError) as caught:
        rungs.choose("required")
    cause, remedy = SAID[said]
    assert caught.value.exit_code is Exit.USAGE
    assert cause in caught.value.message
    assert remedy in caught.value.hint


def test_an_unknown_failure_is_told_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path / "bin", monkeypatch, "echo bwrap: the moon is full; exit 1")
    with pytest.raises(RelayError, match="the moon is full"):
        rungs.choose("required")


def test_a_missing_bubblewrap_is_named_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RelayError, match="bubblewrap is not installed") as caught:
        rungs.choose("required")
    assert "apt install bubblewrap" in caught.value.hint


def test_auto_goes_on_without_a_jail_and_says_so_aloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    rung, said = rungs.choose("auto")
    assert rung == Rung(name="off")
    assert said.startswith("no jail holds here: bubblewrap is not installed; ")
    assert "apt install bubblewrap" in said


@pytest.mark.parametrize("mode", ["off", "external"])
def test_what_the_person_declares_is_taken_and_said_and_nothing_is_run(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = stand_in(tmp_path / "bin", monkeypatch, "exit 1")
    rung, said = rungs.choose(mode)
    assert (rung.name, rung.holds) == (mode, False)
    assert "no jail" in said
    assert not calls.exists()


def test_a_program_that_only_claims_to_have_run_is_no_jail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path / "bin", monkeypatch, "exit 0")
    assert isinstance(rungs.probe(), Cause)


def test_the_machine_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path / "bin", monkeypatch, "exit 1")
    assert rungs.choose("auto") == rungs.choose("auto")
    assert calls.read_text(encoding="utf-8") == "called\n"


def test_a_bwrap_in_the_folder_one_stands_in_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "exit 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".:")
    assert rungs.probe() == rungs.MISSING


def test_an_unknown_machine_has_no_jail(monkeypatch: pytest.MonkeyPatch) -> None:
    cell.rung_of(os.geteuid())
    rungs.probe.cache_clear()
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    found = rungs.probe()
    assert isinstance(found, Cause)
    assert "riscv64" in found.cause


@pytest.mark.parametrize("user", cell.USERS)
def test_where_a_jail_holds_it_is_taken_and_named(user: str) -> None:
    uid = cell.uid_of(user)
    cell.rung_of(uid)
    for mode in ("auto", "required"):
        rung, said = cell.as_user(uid, functools.partial(rungs.choose, mode))
        assert rung.holds
        assert said.startswith("commands are jailed by bubblewrap")

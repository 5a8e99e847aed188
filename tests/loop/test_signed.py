"""What goes out is signed as the person's settings ask; a key that cannot be used is said, and nothing ever waits."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loop.faults import nothing_started, refused, stopped, through, untouched
from tests.world import FIXED, World

QUIET = ("--batch", "--pinentry-mode", "loopback")


def accepted(folder: Path) -> World:
    """Make a world whose run is accepted."""
    world = World.simple(folder, phases=["implement"])
    through(world.inside("run", world.spec()))
    return world


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder for GnuPG, whose agent ends with the test."""
    home = Path(f"/tmp/relay-gpg-{os.getpid()}")  # noqa: S108 - a socket's path may have 107 letters
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    yield home
    subprocess.run(["gpgconf", "--kill", "all"], check=False, env={**os.environ, "GNUPGHOME": str(home)})
    shutil.rmtree(home, ignore_errors=True)  # the agent takes its sockets away while it ends


def made(passphrase: str) -> None:
    """Make a key of Ada's."""
    user = "Ada <ada@example.org>"
    subprocess.run(
        ["gpg", *QUIET, "--passphrase", passphrase, "--quick-generate-key", user, "ed25519", "sign", "never"],
        check=True,
        capture_output=True,
    )


def outcomes(world: World) -> list[str]:
    """Return what became of each shipment."""
    return [receipt["effect"]["outcome"] for receipt in world.receipts() if receipt["act"] == "ship"]


def test_with_a_key_that_is_open_the_commit_is_signed(tmp_path: Path, keyring: Path) -> None:
    made("")
    world = accepted(tmp_path)
    world.git("config", "commit.gpgSign", "true")
    through(world.inside("approve"))
    assert world.git("log", "-1", "--format=%G?", "main") in {"G", "U"}
    assert world.git("log", "-1", "--format=%an <%ae>", "main") == "Ada <ada@example.org>"
    assert world.receipts()[-1]["effect"]["signed"] == "yes"
    assert keyring.exists()


def test_with_a_key_that_wants_a_passphrase_nothing_waits_and_nothing_goes_out(tmp_path: Path, keyring: Path) -> None:
    made("a long passphrase")
    (keyring / "gpg-agent.conf").write_text(f"pinentry-program {keyring}/pinentry\n")
    (keyring / "pinentry").write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nsleep 600\n")
    (keyring / "pinentry").chmod(0o755)
    subprocess.run(["gpgconf", "--kill", "all"], check=True)
    world = accepted(tmp_path / "w")
    world.git("config", "commit.gpgSign", "true")
    with untouched(world):
        stopped(world.inside("approve"), 4, "cannot be signed, as `commit.gpgSign` asks", "unlock the key")
    assert not (tmp_path / "asked").exists()
    world.git("config", "commit.gpgSign", "false")
    through(world.inside("approve"))
    assert outcomes(world) == ["failed", "shipped"]
    assert world.git("log", "-1", "--format=%G?", "main") == "N"


@pytest.mark.parametrize("passphrase", ["", "a long passphrase"])
def test_with_ssh_the_commit_is_signed_or_it_is_said(tmp_path: Path, passphrase: str) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(key)], check=True)
    world = accepted(tmp_path / "w")
    for name, value in (("commit.gpgSign", "true"), ("gpg.format", "ssh"), ("user.signingKey", str(key))):
        world.git("config", name, value)
    if passphrase:
        with untouched(world):
            stopped(world.inside("approve"), 4, "cannot be signed", "ssh-add")
        return
    through(world.inside("approve"))
    assert "gpgsig -----BEGIN SSH SIGNATURE-----" in world.git("cat-file", "commit", "main")
    assert world.show("main", "calc.py") == FIXED


def test_a_key_that_cannot_sign_is_said_before_anything_is_spent_on_a_run(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "a long passphrase", "-f", str(key)], check=True)
    world = World.simple(tmp_path / "w", phases=["implement"])
    for name, value in (("commit.gpgSign", "true"), ("gpg.format", "ssh"), ("user.signingKey", str(key))):
        world.git("config", name, value)
    with untouched(world):
        refused(world.inside("run", world.spec()), 4, "as `commit.gpgSign` asks", "git config commit.gpgSign false")
    nothing_started(world)
    checked = world.inside("doctor")
    assert "cannot be signed, as `commit.gpgSign` asks" in checked.out

    world.git("config", "commit.gpgSign", "false")
    through(world.inside("run", world.spec()))


def test_a_key_that_signs_lets_a_run_begin_and_leaves_no_ref(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    world = World.simple(tmp_path / "w", phases=["implement"])
    for name, value in (("commit.gpgSign", "true"), ("gpg.format", "ssh"), ("user.signingKey", str(key))):
        world.git("config", name, value)
    before = world.refs()
    assert "so will every commit that ships" in world.inside("doctor").out
    assert world.refs() == before
    through(world.inside("run", world.spec()))
    run = world.only_run()
    assert set(world.refs()) - set(before) == {f"refs/relay/{run}/01-implement", f"refs/heads/relay/{run}"}

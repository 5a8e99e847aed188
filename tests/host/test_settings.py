"""Settings are put back one by one: what could start a program or lead elsewhere, and nothing that is the person's."""

from pathlib import Path

import pytest

from relay.host.tripwire import settings
from tests.host.desk import Desk, make


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return make(tmp_path)


def test_only_what_is_dangerous_is_put_back_and_the_persons_changes_stay(desk: Desk) -> None:
    desk.config("remote.origin.url", "https://good.example/")
    desk.config("--add", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    desk.config("--add", "remote.origin.fetch", "+refs/notes/*:refs/notes/*")
    desk.config("alias.st", "status")
    desk.keep()
    before = desk.config("--local", "--list")
    desk.config("user.name", "Grace")
    desk.config("branch.main.remote", "origin")
    desk.config("branch.main.merge", "refs/heads/main")
    desk.config("core.hooksPath", "/evil")
    desk.config("remote.origin.url", "https://evil.example/")
    desk.config("--add", "remote.origin.fetch", "+refs/heads/evil:refs/heads/main")
    desk.config("alias.st", "!evil")
    assert desk.put_back() == (("config",), ())
    harmless = ["branch.main.remote=origin", "branch.main.merge=refs/heads/main"]
    expected = [*before.replace("user.name=Ada", "user.name=Grace").splitlines(), *harmless]
    assert sorted(desk.config("--local", "--list").splitlines()) == sorted(expected)
    assert "/evil" in (desk.evidence / "config").read_text()


def test_harmless_changes_alone_put_nothing_back(desk: Desk) -> None:
    desk.keep()
    desk.config("user.email", "new@example.org")
    desk.config("color.ui", "never")
    assert desk.put_back() == ((), ())
    assert not desk.evidence.exists()


@pytest.mark.parametrize(
    "key",
    [
        *("tar.x.command", "gc.recentObjectsHook", "branch.main.pushRemote", "push.default", "push.gpgSign"),
        *(
            "remote.origin.fetch",
            "init.templateDir",
            "user.signingKey",
            "pull.twohead",
            "stash.x",
            "rebase.instructionFormat",
        ),
        *(
            "branch.main.mergeOptions",
            "core.pager",
            "core.sshCommand",
            "branch.main.remote",
            "log.mailmap",
            "notes.rewriteRef",
        ),
    ],
)
def test_a_setting_that_could_start_a_program_or_lead_elsewhere_is_put_back(desk: Desk, key: str) -> None:
    desk.keep()
    desk.config(key, "https://evil.example/")
    assert desk.put_back() == (("config",), ())
    assert "evil.example" not in (desk.common / "config").read_text()


def test_settings_that_are_gone_or_cannot_be_read_come_back_whole(desk: Desk) -> None:
    desk.keep()
    before = (desk.common / "config").read_bytes()
    (desk.common / "config").write_text("[broken")
    assert desk.put_back() == (("config",), ())
    (desk.common / "config").unlink()
    assert desk.put_back() == (("config",), ())
    assert (desk.common / "config").read_bytes() == before


def test_an_order_that_matters_comes_back_with_the_whole(desk: Desk) -> None:
    was = b"[core]\n\thooksPath = a\n[include]\n\tpath = x\n"
    now = b"[user]\n\tname = x\n[include]\n\tpath = x\n[core]\n\thooksPath = a\n"
    assert settings.mended(desk.repo, was, now) == was


def test_settings_with_odd_names_and_values_are_mended_or_come_back_whole(desk: Desk) -> None:
    was = b'[a "b.c=d\\"e"]\n\tx = "1\\n2"\n\ty\n'
    now = was + b"[-x]\n\ta = 1\n[--file]\n\tb = 2\n[user]\n\tname = n\n"
    assert settings.mended(desk.repo, was, now) == was
    kept = settings.mended(desk.repo, was, was.replace(b"1\\n2", b"3") + b"[user]\n\tname = n\n")
    assert kept is not None
    assert (b"1\\n2" in kept, b"name = n" in kept) == (True, True)

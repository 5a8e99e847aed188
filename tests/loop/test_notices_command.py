"""The person's command for notices: it rings wherever their home is, and its secrets stand in no log."""

from pathlib import Path

import pytest
import tomli_w

from relay.host import files
from tests.loop.faults import through
from tests.world import World

TOPIC = "hunter2-topic-value"
HOOK = "https://hooks.example/T00/B00/XyZ123456"


def _wanted(**table: object) -> None:
    """Write the person's own config.toml."""
    path = files.config_home() / "relay" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tomli_w.dumps({"notify": table}))


def _log(world: World) -> str:
    return (world.root / ".git" / "relay" / "notices" / "log").read_text()


@pytest.mark.parametrize("noise", [0, 170])
def test_what_the_command_was_lent_stands_neither_in_the_log_nor_on_the_terminal_when_it_fails(
    world: World, monkeypatch: pytest.MonkeyPatch, noise: int
) -> None:
    monkeypatch.setenv("TOPIC", TOPIC)
    monkeypatch.setenv("HOOK", HOOK)
    _wanted(command=f"echo T=$TOPIC at $HOOK; printf %{noise}s end | tr ' ' .; exit 1", env=["TOPIC", "HOOK"])
    ran = world.inside("run", world.spec())
    through(ran)
    for said in (ran.err, _log(world)):
        assert "`notify.command` exited 1: " in said
        assert "[redacted HOOK]" in said
        assert not [part for part in (TOPIC, HOOK, HOOK[-8:]) if part in said], "half of a secret is one too"
    assert noise or "T=[redacted TOPIC] at" in _log(world)


@pytest.mark.parametrize("home", ["relative", "{gone}", "/etc/passwd"])
def test_it_rings_where_home_is_no_folder(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    _wanted(command=f"pwd >> {tmp_path}/rang")
    monkeypatch.setenv("HOME", home.format(gone=tmp_path / "gone"))
    ran = world.inside("run", world.spec())
    through(ran)
    assert "a notice was not sent" not in ran.err
    assert (tmp_path / "rang").read_text() == "/\n"

"""The person's own file of variables: every scheduler reads the same lines of it, and all others are named.

An editor or a shell leaves more in such a file than `NAME=value`: `export`, blanks, the line ends of another system.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from relay.schedule import script
from tests.schedule import machines, records
from tests.schedule.test_systemd import MANAGER
from tests.world import SAFETY, World

MARK = b"\xef\xbb\xbf"
"""The byte-order mark with which some editors begin a file."""

ODD = """FIRST=1\r
# a comment
  ; another one
export MY_KEY=sk-0123456789
  SPACED=1\t
K2 = v w
CR=abc\r
QUOTED='x y' \r
EMPTY=
\t
sk-0123456789
B-AD=1
LAST="=é\""""
EXPECTED = {"FIRST": "1", "SPACED": "1", "K2": "v w", "CR": "abc", "QUOTED": "x y", "EMPTY": "", "LAST": "=é"}
UNREAD = [4, 11, 12]


def _given(lines: list[str]) -> dict[str, str]:
    """Return what of the file stands in an environment as `env` prints it."""
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    return {name: value for name, value in found.items() if name in EXPECTED or "KEY" in name or "B-AD" in name}


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("mark", [b"", MARK])
def test_what_editors_and_shells_leave_in_the_file_is_read_and_every_line_that_is_not_is_named_in_the_log(
    tmp_path: Path, mark: bytes, shell: str
) -> None:
    program = machines.needs(shell)
    (tmp_path / "env").write_bytes(mark + ODD.encode())
    job = records.job(tmp_path, "env")
    (tmp_path / "night.sh").write_bytes(script.text(job, ()))
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    subprocess.run([program, tmp_path / "night.sh"], env=env, check=True, timeout=SAFETY)
    first, *given = Path(job.log).read_text(encoding="utf-8").splitlines()
    assert first == f"relay: {tmp_path / 'env'}: not NAME=value, so not read: line 4 11 12"
    assert _given(given) == EXPECTED
    assert script.variables((mark + ODD.encode()).decode()) == (EXPECTED, UNREAD)


def test_systemd_reads_the_same_lines(world: World) -> None:
    machines.needs("systemctl")
    if not machines.SYSTEMD:
        pytest.skip("systemd itself is not installed")
    units = Path(os.environ["XDG_CONFIG_HOME"]) / "systemd" / "user"
    units.mkdir(parents=True)
    for name, mark in (("plain", b""), ("marked", MARK)):
        file = world.root / name
        file.write_bytes(mark + ODD.encode())
        text = f"[Service]\nType=oneshot\nEnvironmentFile={file}\nExecStart=sh -c 'env >{file}.out'\n"
        (units / f"{name}.service").write_text(text)
    machines.alone(MANAGER.format(systemd=machines.SYSTEMD) + "systemctl --user start plain marked", world.root)
    for name in ("plain", "marked"):
        read_by_us, _ = script.variables((world.root / name).read_text(encoding="utf-8"), marked=name == "plain")
        assert _given((world.root / f"{name}.out").read_text(encoding="utf-8").splitlines()) == read_by_us


def _file() -> Path:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "relay" / "env"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    return path


def _warned(world: World) -> list[dict[str, Any]]:
    """Return what the doctor has to say of the file's lines."""
    events = world.inside("--json", "doctor", "--as-scheduled").events
    assert events
    assert "sk-" not in str(events)
    return [event for event in events if "not read" in event["text"]]


def test_the_doctor_names_the_lines_that_a_night_does_not_read_and_shows_none_of_them(world: World) -> None:
    assert world.inside("schedule", "install", "--with", "launchd").code == 0
    path = _file()
    path.write_bytes(MARK + ODD.encode())
    [said] = _warned(world)
    assert said["text"] == f"lines 4, 11, 12 of `{path}`: not NAME=value, so not read at night"
    assert (said["level"], "without `export`" in said["hint"]) == ("warn", True)
    path.write_text("KEY=1\n" + "# none\n" + "export A=1\n" * 8)
    assert _warned(world)[0]["text"].startswith(f"lines 3, 4, 5, 6, 7 and 3 more of `{path}`")
    path.write_bytes(MARK + b"KEY=1\r\nMORE = 2\n")
    assert _warned(world) == []


def test_of_systemd_the_doctor_says_that_a_first_line_behind_a_mark_is_not_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = machines.bare(world.folder / "bare", monkeypatch)
    machines.programs(tools, systemctl="")
    assert world.inside("schedule", "install", "--with", "systemd").code == 0
    path = _file()
    path.write_bytes(MARK + b"KEY=1\nMORE=2\n")
    assert [said["text"] for said in _warned(world)] == [f"line 1 of `{path}`: not NAME=value, so not read at night"]

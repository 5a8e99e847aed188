"""The property list says what the cron line says, and is one; launchd itself runs on no machine of ours."""

import plistlib
from pathlib import Path
from typing import Any

import pytest

from relay.errors import RelayError
from relay.schedule import due, launchd
from tests.schedule import machines, records


def _list(folder: Path, at: str = "17 4 * * *") -> dict[str, Any]:
    texts = launchd.texts(records.job(folder, "relay", "nightly", at=at))
    [data] = [data for path, data in texts.items() if path.suffix == ".plist"]
    found: dict[str, Any] = plistlib.loads(data)
    return found


def test_the_property_list_survives_being_read(tmp_path: Path) -> None:
    found = _list(tmp_path)
    assert found["Label"] == "dev.relay.relay-nightly-project-1a2b3c4d"
    assert found["StartCalendarInterval"] == [{"Hour": 4, "Minute": 17}]
    assert (found["AbandonProcessGroup"], found["ExitTimeOut"], found["ProcessType"]) == (False, 120, "Background")
    [shell, script] = found["ProgramArguments"]
    assert shell == "/bin/sh"
    assert Path(script).is_absolute()


def test_a_home_with_odd_letters_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / f"{machines.ODD} \\n & <b>"
    monkeypatch.setenv("HOME", str(home))
    texts = launchd.texts(records.job(home, "relay"))
    assert all(path.is_relative_to(home) for path in texts)
    assert Path(_list(home)["ProgramArguments"][1]) in texts


@pytest.mark.parametrize(
    ("text", "count", "one"),
    [
        ("@hourly", 1, {"Minute": 0}),
        ("* * * * *", 1, {}),
        ("0 4 * * mon-fri", 5, {"Weekday": 1, "Hour": 4, "Minute": 0}),
        ("0 4 1,15 6 *", 2, {"Day": 15, "Month": 6, "Hour": 4, "Minute": 0}),
        ("0 4 13 * fri", 2, {"Weekday": 5, "Hour": 4, "Minute": 0}),
        ("*/15 1-4 * * *", 16, {"Hour": 3, "Minute": 45}),
    ],
)
def test_times_are_counted_up(text: str, count: int, one: dict[str, int]) -> None:
    found = launchd.intervals(due.read(text))
    assert len(found) == count
    assert one in found


@pytest.mark.parametrize("text", ["*/2 1-4 * * *", "0 4 */2 * fri"])
def test_what_it_cannot_say_is_refused_with_a_simpler_way(text: str) -> None:
    with pytest.raises(RelayError, match="launchd") as refused:
        launchd.intervals(due.read(text))
    assert "--at" in refused.value.hint

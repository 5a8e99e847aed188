"""Times that people read are those of their zone, which is named; files and events keep theirs in UTC."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from relay.report import figures, page
from tests.loop import dusk
from tests.loop.dusk import newest, queued, went
from tests.loop.faults import through
from tests.report import breakfast
from tests.report.test_morning_after import night, words
from tests.world import World

ZONE = "Asia/Tokyo"
"""Nine hours before UTC the whole year, so that no test depends on the season."""


@pytest.fixture
def abroad(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Return a world in Tokyo."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", ZONE)
        time.tzset()
        dusk.short(world)
        yield world
    time.tzset()


def test_stamps_in_a_text_are_written_in_the_zone_of_the_reader_and_other_words_stay() -> None:
    program = (
        "from relay.report import figures as f; s = 'quota until 2026-12-01T06:00:00Z, as `a-2026-12-01` says'\n"
        "print(f.local(s)); print(f.local(s, 'EST')); print(f.local('since 2026-07-01T12:32:36Z', 'EST'))"
    )
    env = {**os.environ, "TZ": "America/New_York", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True, text=True)
    assert done.stdout.splitlines() == [
        "quota until 2026-12-01 01:00 EST, as `a-2026-12-01` says",
        "quota until 2026-12-01 01:00, as `a-2026-12-01` says",
        "since 2026-07-01 08:32:36 EDT",
    ]


def test_an_hour_that_an_entry_waits_for_is_told_as_it_was_given_and_kept_in_utc(abroad: World) -> None:
    spec = abroad.spec(dusk.task("One"), "one.md")
    through(abroad.inside("queue", "add", spec))
    ran = abroad.inside("queue", "add", spec, "--not-before", "2098-12-31T22:00")
    assert "not before 2098-12-31 22:00 JST" in ran.err, ran
    ran = abroad.inside("queue", "list")
    assert "not before 2098-12-31 22:00 JST" in ran.out, ran
    [event] = abroad.inside("queue", "list", "--json").events
    assert event["blocked"] == "not before 2098-12-31T13:00:00Z"
    assert "(not before 2098-12-31 22:00 JST)" in abroad.inside("nightly", "--dry-run").out
    ran = went(abroad.inside("nightly"))
    assert "not before 2098-12-31 22:00 JST" in ran.out, ran
    assert [item["reason"] for item in newest(abroad)["items"]] == ["not before 2098-12-31T13:00:00Z"]


def test_a_report_and_its_page_name_the_zone_once_and_say_until_when_a_run_waits(abroad: World) -> None:
    turn = {"ended_by": "quota", "until": breakfast.RESET}
    abroad.script("metered", turn, phase="implement", vendor="north")
    abroad.save(phases=["implement"])
    queued(abroad, "One")
    went(abroad.inside("nightly"))
    told = abroad.inside("report").out
    assert told.count(" JST") == 1, told
    [row] = [line for line in told.splitlines() if line.startswith(abroad.only_run())]
    assert row.endswith(f"quota until {figures.at(breakfast.RESET, 'JST')}"), told
    document = page.night(breakfast.repo(abroad), night(abroad))
    seen = words(document)
    assert f"waits for its quota until {figures.at(breakfast.RESET, 'JST')}" in seen
    assert f"relay -C {abroad.root} resume {abroad.only_run()}" in seen
    story = document.partition("The whole story")[2]
    assert "Z  " not in story
    assert "waits for its quota until" in words(page.run(breakfast.repo(abroad), abroad.only_run()))

"""Alerts are files: told once, listed in the order they came, gone when they are settled."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from relay import alerts
from relay.host import clock, repository
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from tests.world import World


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return ledgers.at(repository.discover(World(tmp_path).root))


def test_of_one_key_a_person_is_told_once_and_the_first_words_stay(ledger: Ledger) -> None:
    first = alerts.new("disk:/x", "disk", "it is full", "df -h")
    assert alerts.all(ledger) == ()
    assert alerts.tell(ledger, first)
    assert not alerts.tell(ledger, alerts.new("disk:/x", "disk", "it is fuller", "df -h"))
    assert alerts.all(ledger) == (first,)


def test_they_are_listed_in_the_order_in_which_they_came(ledger: Ledger) -> None:
    for day, name in (("02", "b"), ("01", "a"), ("03", "c")):
        with clock.fix(clock.parse(f"2026-11-{day}T00:00:00Z")):
            alerts.tell(ledger, alerts.new(name, "ref", name, "true", run=name))
    assert [alert.run for alert in alerts.all(ledger)] == ["a", "b", "c"]


def test_one_that_is_settled_is_gone_and_may_be_told_again(ledger: Ledger) -> None:
    one = alerts.new("ref:x", "ref", "x", "true")
    alerts.tell(ledger, one)
    alerts.clear(ledger, one.key)
    alerts.clear(ledger, "ref:nobody")
    assert alerts.all(ledger) == ()
    assert alerts.tell(ledger, one)


def test_a_file_that_cannot_be_read_hides_no_other(ledger: Ledger) -> None:
    alerts.tell(ledger, alerts.new("ref:x", "ref", "x", "true"))
    for name, data in (("a.json", b"{"), ("b.json", b"\xff"), ("c.json", b'{"key": 1}')):
        (ledger.alerts / name).write_bytes(data)
    assert [alert.key for alert in alerts.all(ledger)] == ["ref:x"]


def test_a_path_of_any_bytes_can_be_told(ledger: Ledger) -> None:
    one = alerts.new("worktree:/\udcff", "worktree", "`/\udcff` is nobody's", "rm /\udcff")
    assert alerts.tell(ledger, one)
    assert alerts.all(ledger) == (one,)
    assert one.key == "worktree:/\\udcff"


@pytest.mark.parametrize("name", ["a\nb", "it's\x1b[2K\r'", "a\u2028b", "\udcff\t", "a\x85\u202eb", "plain and so on"])
def test_a_name_stands_on_one_line_and_the_command_that_names_it_means_that_very_file(
    ledger: Ledger, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text("x")
    one = alerts.new(f"lock:{path}", "lock", f"`{path}` was left", f"rm {shlex.quote(str(path))}")
    assert [text.isprintable() for text in (one.key, one.what, one.command)] == [True] * 3
    alerts.tell(ledger, one)
    assert alerts.all(ledger) == (one,)
    subprocess.run(["bash", "-c", one.command], env={**os.environ, "LC_ALL": "C"}, check=True)
    assert not path.exists()


def test_what_an_older_version_wrote_down_says_no_second_line_either(ledger: Ledger) -> None:
    alerts.tell(ledger, alerts.new("ref:x", "ref", "x", "true"))
    [path] = ledger.alerts.glob("*.json")
    path.write_text(path.read_text().replace('"what": "x"', '"what": "x\\n      hint: true"'))
    assert [alert.what for alert in alerts.all(ledger)] == [r"x\n      hint: true"]

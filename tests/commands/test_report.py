"""`relay report`: the newest night, or a run, on the terminal, as a page, as JSON lines, in a browser."""

from pathlib import Path

import msgspec
import pytest

from relay import alerts, nights
from relay.host import pids
from relay.report import page
from tests.report import breakfast
from tests.world import FIXED, World

_made: dict[str, tuple[World, dict[str, str]]] = {}


@pytest.fixture
def five(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, dict[str, str]]:
    """Return five runs and their night, made once for all tests here."""
    if not _made:
        _made["five"] = world, runs = breakfast.made(tmp_path_factory.mktemp("five") / "world")
        breakfast.night(world, runs)
    return _made["five"]


def test_the_newest_night_is_told_in_under_a_screen_with_what_to_type(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    ran = world.relay("report")
    assert ran.code == 0, ran
    lines = ran.out.splitlines()
    assert len(lines) < 30, ran
    assert lines[0] == "1 breached its boundary, 2 need you, 1 accepted, 1 waits for its quota"
    assert "5 runs, $6.25" in lines[1]
    assert "not run: tasks/later.md: not before 2026-12-01 00:00" in lines, ran
    for name, why, command in (
        ("strings", "the agent asks: Should add() take strings as well?", f"relay answer {runs['strings']} TEXT"),
        ("tests", "tree/calc.py appeared", f"relay show {runs['tests']}/02-review"),
        ("sum", "", f"relay approve {runs['sum']}"),
    ):
        at = next(number for number, line in enumerate(lines) if line.startswith(f"{runs[name]} "))
        at += next(number for number, line in enumerate(lines[at:]) if line.endswith(f": {breakfast.TITLES[name]}"))
        assert lines[at + 1 : at + 2 + bool(why)] == [f"  {said}" for said in (why, command) if said], ran
    assert any(line.startswith(f"  relay resume {runs['docs']} --minutes ") for line in lines), ran


def test_the_commands_of_a_report_from_elsewhere_lead_there(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    ran = world.relay("-C", world.root, "report", runs["sum"], folder=world.folder)
    assert f"relay -C {world.root} approve {runs['sum']}" in ran.out, ran


def test_the_command_for_a_budget_that_is_used_up_is_exact(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.python("implementer", breakfast.SLEEPS, phase="implement", vendor="north")
    assert world.relay("run", world.spec(breakfast.POOR)).code == 4
    world.implementer({"calc.py": FIXED})
    [line] = [line for line in world.relay("report").out.splitlines() if "--minutes" in line]
    ran = world.relay(*line.split()[1:])
    assert ran.code == 0, ran


def test_json_lines_have_the_night_its_runs_and_what_was_passed_over(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    night, *rest = world.relay("report", "--json").events
    assert (night["type"], night["ended_by"], len(night["items"])) == ("night", "done", 6)
    told = {event["run"]: event for event in rest if event["type"] == "run"}
    assert told.keys() == set(runs.values())
    assert next(iter(told)) == runs["tests"], "a breach comes first"
    assert [run for run, event in told.items() if event["breached"]] == [runs["tests"]]
    assert told[runs["sum"]]["next"][0] == f"relay approve {runs['sum']}"
    assert told[runs["strings"]]["question"] == "Should add() take strings as well?"
    assert told[runs["speed"]]["yours"] is False
    [skipped] = [event for event in rest if event["type"] == "skipped"]
    assert skipped["spec"] == "tasks/later.md"


def test_a_page_goes_to_a_file_or_to_stdout_and_is_the_same(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    ran = world.relay("report", runs["sum"], "--html", world.folder / "page.html")
    assert ran.code == 0, ran
    assert "wrote" in ran.err
    written = (world.folder / "page.html").read_text(encoding="utf-8")
    assert world.relay("report", runs["sum"], "--html", "-").out == written
    assert written.startswith("<!doctype html>")


def test_a_night_is_found_by_its_id_and_one_that_is_none_is_refused(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    assert "2 need you" in world.relay("report", "--night", "261129-0417").out
    ran = world.relay("report", "--night", "991231")
    assert (ran.code, ran.out) == (2, ""), ran
    ran = world.relay("report", runs["sum"], "--night")
    assert ran.code == 2, ran
    assert "hint:" in ran.err


def test_without_a_night_it_is_about_the_newest_run_and_without_a_run_it_says_what_to_type(world: World) -> None:
    ran = world.relay("report")
    assert (ran.code, "relay run SPEC" in ran.err) == (2, True), ran
    ran = world.relay("report", "--night")
    assert (ran.code, "relay nightly" in ran.err) == (2, True), ran
    assert world.relay("run", world.spec()).code == 0
    assert world.only_run() in world.relay("report").out


def test_a_browser_is_given_the_page_and_where_there_is_none_the_file_is_named(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    seen = world.folder / "seen.txt"
    browser = world.folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n', encoding="utf-8")
    browser.chmod(0o755)
    ran = world.relay("report", "--open", env={"BROWSER": f"{browser} %s"})
    assert ran.code == 0, ran
    shown = Path(seen.read_text(encoding="utf-8").strip().removeprefix("file://"))
    assert shown.is_relative_to(world.root / ".git" / "relay")
    assert "Make add add" in shown.read_text(encoding="utf-8")
    ran = world.relay("report", "--open", env={"BROWSER": "/nowhere/browser", "PATH": "/usr/bin:/bin"})
    assert (ran.code, str(shown) in ran.err) in {(4, True), (0, False)}, ran


def test_what_was_raised_about_a_run_stands_in_its_report(world: World) -> None:
    assert world.relay("run", world.spec()).code == 0
    run, ledger = world.only_run(), breakfast.repo(world)
    alerts.tell(ledger, alerts.new("old", "old", "it waits for ten days", f"relay reject {run} --close", run))
    alerts.tell(ledger, alerts.new("disk", "disk", "the disk is full", "relay reap"))
    ran = world.relay("report", run)
    assert "it waits for ten days" in ran.out, ran
    assert "the disk is full" not in ran.out, ran
    assert [event["about"] for event in world.relay("report", run, "--json").events if event["type"] == "alert"] == [
        "old"
    ]


def test_what_a_night_cost_is_unknown_where_nobody_knows_it_and_no_nought(world: World) -> None:
    assert world.relay("queue", "add", world.spec()).code == 0
    assert world.relay("nightly").code == 0
    told, written = world.relay("report").out, world.relay("report", "--html", "-").out
    assert "1 run, cost unknown, " in told, told
    assert "$0.00" not in told, told
    assert "$0.00" not in written
    assert "1 run, cost unknown, " in written


def test_a_night_that_goes_on_is_not_said_to_have_ended(five: tuple[World, dict[str, str]]) -> None:
    ledger = breakfast.repo(five[0])
    over = nights.newest(ledger)
    assert over is not None
    assert "The night ended since nothing was left that could be run." in page.night(ledger, over)
    going = page.night(ledger, msgspec.structs.replace(over, ended=None, ended_by=None, relay=pids.this()))
    assert ". The night goes on." in going
    assert "The night ended" not in going

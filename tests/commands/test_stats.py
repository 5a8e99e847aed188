"""`relay stats`: figures over all runs, as tables, as JSON lines, as a page."""

from pathlib import Path

from tests.report import breakfast
from tests.world import World


def test_all_runs_are_counted_in_tables_json_lines_and_a_page(tmp_path: Path) -> None:
    world, runs = breakfast.made(tmp_path / "world")
    ran = world.relay("stats")
    assert ran.code == 0, ran
    for said in (
        "5 runs: 1 accepted, 2 needs-human, 1 breach, 1 waiting",
        "settled: 1 of 2 that are decided, 50 %; 3 not decided yet",
        "rounds: 1.2 on average; 1: 4 runs; 2: 1 run",
        "legs that did not end by a reply: breach 1, budget 1, quota 1",
        f"{runs['tests']}/02-review  tree/calc.py appeared",
    ):
        assert said in ran.out, ran
    told, *rest = world.relay("stats", "--json").events
    assert (told["type"], told["runs"], told["settled_rate"], told["cost_unknown"]) == ("stats", 5, 0.5, 9)
    assert {event["type"] for event in rest} == {"phase", "agent", "tally", "run", "breach"}
    assert sum(event["seconds"] for event in rest if event["type"] == "phase") > 0
    assert sum(event["legs"] for event in rest if event["type"] == "agent") == told["legs"] == 10
    ran = world.relay("stats", "--html", tmp_path / "stats.html")
    assert ran.code == 0, ran
    page = (tmp_path / "stats.html").read_text(encoding="utf-8")
    assert page.count("<g><title>") == 5
    assert page == world.relay("stats", "--html", "-").out


def test_without_a_run_there_is_nothing_to_count_and_it_says_what_to_type(world: World) -> None:
    ran = world.relay("stats")
    assert (ran.code, ran.out) == (0, ""), ran
    assert "hint: relay run SPEC" in ran.err

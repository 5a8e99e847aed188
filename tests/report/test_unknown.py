"""What nobody knows is said to be unknown, and makes a lower bound of every sum that it is a part of."""

from pathlib import Path

import pytest

from relay.report import figures
from tests.loop.faults import through
from tests.world import SPEC, World


@pytest.fixture
def torn(tmp_path: Path) -> tuple[World, str]:
    """Make two accepted runs, and tear a receipt of the second; return that one."""
    world = World.simple(tmp_path)
    through(world.relay("run", world.spec()))
    first = world.only_run()
    through(world.relay("run", world.spec(SPEC, "second.md")))
    [run] = {path.name for path in world.runs.iterdir()} - {first}
    (world.runs / run / "legs" / "02-review" / "receipt.json").write_text("{", encoding="utf-8")
    return world, run


def test_a_run_that_cannot_be_read_costs_an_unknown_amount_and_took_an_unknown_time(torn: tuple[World, str]) -> None:
    world, run = torn
    ran = world.relay("report", run)
    assert "  unknown  unknown time  " in ran.out, ran
    assert "cost unknown, unknown time of agents" in world.relay("report", run, "--html", "-").out
    assert "$0.00" not in ran.out, ran
    [told] = world.relay("report", run, "--json").events
    assert told["cost_complete"] is False


def test_the_sum_of_all_runs_says_that_one_of_them_is_not_in_it(torn: tuple[World, str]) -> None:
    world, _ = torn
    [total, *_] = world.relay("stats", "--json").events
    assert (total["legs"], total["cost_unknown"], total["tokens_unknown"]) == (3, 4, 4)
    ran = world.relay("stats")
    assert "in all: at least " in ran.out, ran
    assert "of agents, cost unknown, tokens unknown" in ran.out, ran
    assert "at least " in world.relay("stats", "--html", "-").out.split('class="summary"')[1].split("</p>")[0]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("legs/02-review/receipt.json", "{", "`legs/02-review/receipt.json` cannot be read: "),
        ("legs/01-implement/receipt.json", None, "the chain of receipts breaks at `legs/02-review/receipt.json"),
        ("spec.md", "another", " is not what it was at the start: `spec.md`"),
    ],
)
def test_the_reason_why_a_run_cannot_be_read_names_the_file(
    world: World, name: str, content: str | None, says: str
) -> None:
    through(world.relay("run", world.spec()))
    path = world.runs / world.only_run() / name
    path.write_text(content, encoding="utf-8") if content is not None else path.unlink()
    ran = world.relay("report", world.only_run())
    [row, *_] = [line for line in ran.out.splitlines() if line.startswith(world.only_run())]
    assert says in row, ran


def test_tokens_that_nobody_counted_are_no_nought(world: World) -> None:
    through(world.relay("run", world.spec()))
    ran = world.relay("stats")
    assert "cost unknown, tokens unknown" in ran.out, ran
    assert " 0 tokens" not in ran.out, ran
    [phase] = [line for line in ran.out.splitlines() if line.startswith("implement  ")]
    assert phase.split()[-1] == "unknown"
    page = world.relay("stats", "--html", "-").out
    assert "cost unknown, tokens unknown." in page
    assert '<td class="figure">unknown</td>' in page


def test_a_sum_of_tokens_is_a_lower_bound_where_some_were_not_counted() -> None:
    assert figures.Spent(tokens=12_000, uncounted=1).volume == "at least 12k tokens"
    assert figures.Spent(tokens=12_000).volume == "12k tokens"
    assert figures.Spent().volume == "0 tokens", "nothing took any"


def test_before_the_first_run_the_page_of_all_runs_says_that_there_is_nothing_yet(world: World) -> None:
    ran = world.relay("stats", "--html", world.folder / "stats.html")
    through(ran)
    page = (world.folder / "stats.html").read_text(encoding="utf-8")
    assert "There is no run yet, so there is nothing to count." in page
    assert f"relay -C {world.root} run SPEC" in page
    assert "decided" not in page

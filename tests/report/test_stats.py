"""What is counted over all runs is what their receipts say."""

from pathlib import Path

from relay.record import ledger as ledgers
from relay.report import columns, page, stats
from tests.report import breakfast
from tests.world import World


def test_five_runs_are_counted_by_what_they_came_to(tmp_path: Path) -> None:
    world, runs = breakfast.made(tmp_path)
    ledger = breakfast.repo(world)
    counted = stats.count(ledger, ledgers.runs(ledger))
    assert counted.outcomes == {"accepted": 1, "needs-human": 3, "waiting": 1}
    assert (counted.settled, counted.decided, counted.settled_rate) == (1, 2, 0.5)
    assert counted.rounds == {1: 4, 2: 1}
    assert counted.endings == {"reply": 7, "breach": 1, "budget": 1, "quota": 1}
    assert {use.name: (use.spent.legs, use.judge) for use in counted.phases} == {
        "implement": (6, False),
        "review": (3, True),
        "acceptance": (1, True),
    }
    assert counted.review_share is not None
    judged = sum(use.spent.seconds for use in counted.phases if use.judge)
    assert abs(counted.review_share - judged / counted.spent.seconds) < 1e-9
    assert [(one.agent, one.named, one.located, one.unfounded) for one in counted.tallies] == [
        ("review-judge", 1, 1, 0)
    ]
    assert {one.run: one.score for one in counted.partial} == {runs["tests"]: "1/1"}
    assert counted.breaches == ((f"{runs['tests']}/02-review", "tree/calc.py appeared"),)
    drawn = columns.draw(counted.accounts)
    assert drawn is not None
    assert len(drawn.columns) == 5
    assert [name for name, _, _ in drawn.phases] == ["implement", "review", "acceptance"]
    assert "1 accepted, 2 needs-human, 1 breach, 1 waiting" in page.stats(ledger, counted)


def test_findings_without_evidence_are_counted_against_their_reviewer(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.reviser("review", path="calc.py", quote="return a")
    found = (
        "reply(verdict='revise', findings=[dict(severity='major', title=t, path='calc.py', line=1, quote=q, why='') "
    )
    found += "for t, q in (('real', 'def add'), ('false', 'no such line'))]) if turn == 1 else reply(verdict='approve')"
    world.python("review-judge", found, phase="review", vendor="south")
    assert world.relay("run", world.spec()).code in {0, 4}
    [tally] = stats.count(breakfast.repo(world), [world.only_run()]).tallies
    assert (tally.named, tally.located, tally.unfounded) == (2, 1, 1)


def test_one_run_has_no_plot_and_none_has_no_figures(world: World) -> None:
    counted = stats.count(breakfast.repo(world), [])
    assert (counted.settled_rate, counted.mean_rounds, counted.review_share) == (None, None, None)
    assert columns.draw(counted.accounts) is None
    assert world.relay("run", world.spec()).code == 0
    assert columns.draw(stats.count(breakfast.repo(world), [world.only_run()]).accounts) is None

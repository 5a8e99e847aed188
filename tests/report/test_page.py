"""The page of a night says the truth of five runs that ended in five ways, first what needs a person."""

import re
from html import unescape
from pathlib import Path

import pytest

from relay import nights
from relay.record import ledger as ledgers
from relay.report import morning, page, sheet
from relay.terms import Item
from tests.forge import TOKEN
from tests.forge.desk import Desk
from tests.report import breakfast
from tests.world import FIXED, World

NAGS = """
lines = pathlib.Path("calc.py").read_text(encoding="utf-8").splitlines()
def found(severity, title, at):
    return {"severity": severity, "title": title, "path": "calc.py", "line": at + 1, "quote": lines[at], "why": "so"}
small = [found("minor", "a taste", at) for at in range(3, 17)]
reply(verdict="revise", findings=[found("major", "this blocks", 2), *small])
"""
"""A judge that finds fifteen things in each round."""

_made: dict[str, tuple[World, dict[str, str]]] = {}


@pytest.fixture
def five(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, dict[str, str]]:
    """Return the five runs, made once for all tests here, which only read them."""
    if not _made:
        _made["five"] = breakfast.made(tmp_path_factory.mktemp("five") / "world")
    return _made["five"]


def words(document: str) -> str:
    """Return what a reader sees, one blank between words."""
    body = document.partition("<body>")[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_a_night_is_told_in_one_page_first_what_needs_a_person(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    text = page.night(breakfast.repo(world), breakfast.night(world, runs))
    seen = words(text)
    assert "1 breached its boundary, 2 need you, 1 accepted, 1 waits for its quota" in seen
    assert (
        "5 runs, $6.25, 1 h 02 min of agents, 1.6M tokens. The night ended since nothing was left that could be run."
        in seen
    )
    needs, rest = seen.split("The purse")
    at = f"relay -C {world.root}"
    for command in (
        f"{at} answer {runs['strings']} TEXT",
        f"{at} show {runs['tests']}/02-review",
        f"{at} resume {runs['tests']}",
        f"{at} approve {runs['sum']}",
        f"{at} resume {runs['docs']} --minutes 1",
    ):
        assert command in needs, command
    assert "Should add() take strings as well?" in needs
    assert "tree/calc.py appeared" in needs
    assert "Make it quick needs" not in needs, "a run that waits goes on by itself"
    assert "money $6.25 of $10.00" in rest
    assert "time 2 h 35 min of 6 h 00 min" in rest
    assert "tasks/later.md not before 2026-12-01 00:00" in rest


def test_a_run_is_told_with_its_legs_findings_criteria_change_and_notes(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    text = page.run(breakfast.repo(world), runs["sum"])
    seen = words(text)
    for leg in ("01-implement", "02-review", "03-implement", "04-review", "05-acceptance"):
        assert text.count(leg) > 2, leg
    assert "calc.py +1 \u22121" in seen
    assert "new, located, blocks fixed" in seen, "a finding over the rounds"
    assert "this is wrong calc.py:2" in seen
    assert "c1 the sum is right: grep -q 'return a + b' calc.py relay" in seen
    assert '<tr class="added"><td class="number"></td><td class="number">2</td>' in text
    assert "## Recovery steps" in seen
    assert "outcome: accepted" in seen
    assert text.count('<rect class="leg') == 5


def test_a_page_asks_nothing_of_a_network_and_needs_no_script(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    text = page.night(breakfast.repo(world), breakfast.night(world, runs))
    head, _, body = text.partition("</style>")
    assert "default-src 'none'; style-src 'sha256-" in head
    assert not re.search(r"<script|<img|<link|<iframe|@import|src=|url\((?!#)|https?://", head + body)
    assert not re.search(r"\sstyle=", body), "the policy allows the one style sheet alone"


def test_every_link_of_a_page_leads_to_a_place_on_it(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    text = page.night(breakfast.repo(world), breakfast.night(world, runs))
    targets = re.findall(r'href="#([^"]+)"', text)
    assert set(targets) == set(runs.values())
    assert all(f'id="{target}"' in text for target in targets)


def test_a_run_that_cannot_be_read_is_named_and_hides_no_other(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    ledger = breakfast.repo(world)
    for name in ("sum", "docs"):
        assert world.relay("run", world.spec(breakfast.spec(name), f"{name}.md")).code == 0
    whole, broken = ledgers.runs(ledger)
    (ledger.folder(broken) / "spec.md").write_text("changed", encoding="utf-8")
    night = breakfast.night(world, {"sum": whole, "docs": broken, "gone": "261129-0000-gone"})
    seen = words(page.night(ledger, night))
    assert "2 cannot be read, 1 accepted" in seen
    assert "a frozen file of run" in seen
    assert f"relay -C {world.root} verify {broken}" in seen
    assert f"relay -C {world.root} approve {whole}" in seen


def test_a_note_that_was_changed_or_lost_is_shown_as_such(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    assert world.relay("run", world.spec()).code == 0
    first, second, _ = world.legs()
    (first / "note.md").write_text("I was never here", encoding="utf-8")
    (second / "note.md").unlink()
    seen = words(page.run(breakfast.repo(world), world.only_run()))
    assert "this note is not the one that its receipt names by hash" in seen
    assert "the note of `02-review` is lost" in seen


def test_a_night_in_which_nothing_ran_or_that_was_killed_says_so(world: World) -> None:
    ledger = breakfast.repo(world)
    seen = words(page.night(ledger, breakfast.night(world, {}, items=())))
    assert "Nothing ran 0 runs" in seen
    cut = breakfast.night(world, {}, items=(), ended=None, ended_by=None)
    assert morning.of_night(ledger, cut).ended == "it was cut short"
    [_, killed] = nights.settle(ledger)[-1:] * 2
    assert morning.of_night(ledger, killed).ended == "it was killed"


def test_a_run_that_a_night_took_up_twice_is_told_once_with_all_it_cost(five: tuple[World, dict[str, str]]) -> None:
    world, runs = five
    items = [Item(did=did, run=runs["sum"], microusd=1_000_000, seconds=60.0) for did in ("started", "resumed")]
    told = morning.of_night(breakfast.repo(world), breakfast.night(world, runs, items=tuple(items)))
    assert [one.run for one in told.accounts] == [runs["sum"]]
    assert told.items[runs["sum"]].microusd == told.spent.microusd == 2_000_000


def test_where_a_proposal_stands_is_text_to_copy_and_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "*")
    desk = Desk(tmp_path)
    with desk.hub:
        world = desk.accepted().world
        assert world.inside("approve").code == 0
        text = page.run(breakfast.repo(world), world.only_run())
    assert '<code class="copy">https://hub.example.org/acme/shop/pull/1</code>' in text
    assert 'href="http' not in text


def test_of_very_many_findings_the_open_ones_are_listed_and_the_rest_is_counted(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    world.python("review-judge", NAGS, phase="review", vendor="south")
    extra = ["".join(f"x{turn}_{at} = {at}\n" for at in range(15)) for turn in range(9)]
    world.implementer(*({"calc.py": f"{FIXED}{lines}"} for lines in extra))
    world.phases["review"]["rounds"] = 9
    world.save()
    ran = world.relay("run", world.spec())
    assert ran.code == 4, ran
    run = world.only_run()
    text = page.run(breakfast.repo(world), run)
    [table] = re.findall(r'<table class="findings">.*?</table>', text, re.DOTALL)
    assert table.count("<tr>") == 1 + sheet.STORIES
    assert 2 < table.count("<th>") <= 2 + sheet.JUDGES
    assert '<span class="bad">open' in table
    assert f"not shown here: relay -C {world.root} show {run} findings" in words(text)
    assert len(text) < 2_000_000

"""The small words of a page and its tables are true: headers, colours, code, spans, what a picture shows."""

import re

import pytest

from relay import alerts
from relay.report import figures, page
from relay.terms import Item
from tests.loop.faults import through
from tests.report import breakfast
from tests.report.test_morning_after import words
from tests.world import FIXED, World


@pytest.fixture
def rejected(world: World) -> World:
    """Return a world whose one run was accepted and then sent back by a person; nobody knows what it cost."""
    through(world.relay("run", world.spec()))
    through(world.relay("reject", world.only_run(), "--why", "not like this"))
    return world


def test_what_a_person_did_is_neither_good_nor_bad_in_colour(rejected: World) -> None:
    document = page.run(breakfast.repo(rejected), rejected.only_run())
    assert '<span class="plain">reject</span>' in document
    assert '<span class="good">done</span>' in document


def test_a_cost_that_nobody_knows_is_unknown_in_a_column_and_not_there_above_a_bar(rejected: World) -> None:
    document = page.run(breakfast.repo(rejected), rejected.only_run())
    assert '<td class="figure">unknown</td>' in document
    assert '<td class="figure">cost unknown</td>' not in document
    labels = re.findall(r'<text class="wide[^>]*>([^<]*)</text>', document)
    assert labels
    assert not any("$" in label for label in labels), labels
    rows = [line for line in rejected.relay("stats").out.splitlines() if line.startswith("implement  ")]
    assert [line for line in rows if " unknown " in line] == rows
    assert not any("cost unknown" in line for line in rows)


def test_a_picture_without_money_has_no_room_for_it(rejected: World) -> None:
    rejected.implementer({"calc.py": FIXED})
    through(rejected.relay("run", rejected.spec(name="second.md")))
    document = rejected.relay("stats", "--html", "-").out
    assert "time upward." in document
    assert "money" not in document.partition("<figure")[2].partition("</figure>")[0]


def test_what_stands_in_backticks_in_relays_own_words_is_code_and_still_no_markup(rejected: World) -> None:
    ledger, run = breakfast.repo(rejected), rejected.only_run()
    evil = "`main` changed `<script>alert(1)</script>` & more"
    alerts.tell(ledger, alerts.new("disk", "disk", evil, "relay reap"))
    night = breakfast.night(rejected, {"sum": run}, items=(Item(did="skipped", spec="x.md", reason="after `y`"),))
    document = page.night(ledger, night)
    assert (
        "<p><code>main</code> changed <code>&lt;script&gt;alert(1)&lt;/script&gt;</code> &amp; more <small>" in document
    )
    assert "after <code>y</code></li>" in document
    odd = alerts.new("lock", "lock", "one ` alone <b>", "relay reap")
    alerts.tell(ledger, odd)
    assert "one ` alone &lt;b&gt;" in page.night(ledger, night)


def test_a_run_that_was_shipped_needs_nothing_and_its_outcome_says_where_it_is(world: World) -> None:
    through(world.relay("run", world.spec()))
    through(world.relay("approve"))
    [row] = [line for line in world.relay("report").out.splitlines() if line.startswith(world.only_run())]
    assert "  shipped into main  " in row
    assert "it is in" not in row


def test_of_a_few_minutes_the_seconds_are_told() -> None:
    told = [figures.span(seconds) for seconds in (0, 9.96, 59.6, 79, 127, 600, 3840)]
    assert told == ["0 s", "10.0 s", "1 min", "1 min 19 s", "2 min 07 s", "10 min", "1 h 04 min"]


def test_while_no_run_is_decided_no_share_is_told(world: World) -> None:
    world.script("asks", {"reply": {"status": "blocked", "question": "Why?"}}, phase="implement", vendor="north")
    world.save()
    assert world.relay("run", world.spec()).code == 4
    assert "settled: 0 of 0 that are decided, -; 1 not decided yet\n" in world.relay("stats").out
    seen = words(world.relay("stats", "--html", "-").out)
    assert "1 run: 1 needs-human. None is decided yet. A run took 1.0 rounds on average." in seen
    [event] = [one for one in world.relay("stats", "--json").events if one["type"] == "stats"]
    assert (event["decided"], event["undecided"], event["settled_rate"]) == (0, 1, None)

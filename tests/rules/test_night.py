"""What a night decides: the order of the queue, what is due, when the purse is used up, and what it cut short."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from relay.errors import RelayError
from relay.rules import night
from relay.rules.night import UNBOUND, Allowance, Past
from relay.terms import Entry, Limits, Usage
from tests.receipts import told, work

NOW = datetime(2026, 11, 29, 2, 30, tzinfo=UTC)


def entry(name: str, place: int = 1, **more: object) -> Entry:
    return Entry(**{"id": name, "spec": f"{name}.md", "sha256": "1", "added": "", "place": place, **more})  # type: ignore[arg-type]


def past(run: str, outcome: str, **more: str) -> Past:
    return Past(run=run, outcome=outcome, **{"sha256": "0", **more})


def test_what_matters_more_goes_first_and_of_the_same_what_came_first() -> None:
    given = [entry("c", 3), entry("a", 9, priority=1), entry("b", 2), entry("d", 2, priority=-1)]
    assert [one.id for one in night.ordered(given)] == ["a", "b", "c", "d"]


def test_an_entry_waits_for_its_hour_to_the_second() -> None:
    later = night.candidate(entry("a", not_before="2026-11-29T02:30:01Z"), NOW, (), ())
    assert (later.blocked, later.waits) == ("not before 2026-11-29T02:30:01Z", True)
    assert not night.candidate(entry("a", not_before="2026-11-29T02:30:00Z"), NOW, (), ()).blocked


@pytest.mark.parametrize(
    ("pasts", "queued", "why", "waits"),
    [
        ([], (), "after `b.md`, which is neither queued nor a run", False),
        ([], ("b.md",), "after `b.md`, which is queued", True),
        ([past("r1", "accepted", source="b.md")], (), "after `r1`, which is accepted", True),
        ([past("r1", "needs-human", source="b.md")], (), "after `r1`, which is needs-human", True),
        ([past("r1", "not-accepted", source="b.md")], (), "after `r1`, which is not-accepted", False),
        ([past("r1", "shipped", source="b.md")], (), "", False),
        ([past("r1", "shipped", source="b.md")], ("b.md",), "after `b.md`, which is queued", True),
        (
            [past("r1", "shipped", source="b.md"), past("r2", "open", source="b.md")],
            (),
            "after `r2`, which is open",
            True,
        ),
        ([past("b.md", "shipped"), past("r2", "open", source="b.md")], ("b.md",), "", False),
    ],
)
def test_what_comes_after_another_waits_until_that_is_shipped(
    pasts: list[Past], queued: tuple[str, ...], why: str, *, waits: bool
) -> None:
    found = night.candidate(entry("a", after="b.md"), NOW, queued, pasts)
    assert (found.blocked, found.waits) == (why, waits)


def test_a_listed_spec_runs_once_for_each_of_its_texts_and_never_beside_a_run_of_an_older_one() -> None:
    assert night.listed("a.md", "1", ()) == night.Candidate(spec="a.md", sha256="1")
    for outcome in ("accepted", "not-accepted", "open"):
        assert night.listed("a.md", "1", [past("r", outcome, sha256="1", source="elsewhere.md")]) is None
    for outcome in night.OVER:
        again = night.listed("a.md", "2", [past("r", outcome, sha256="1", source="a.md")])
        assert again is not None
        assert not again.blocked
    held = night.listed("a.md", "2", [past("r", "needs-human", sha256="1", source="a.md")])
    assert held is not None
    assert "`r` of the text before is needs-human" in held.blocked


def test_a_purse_shrinks_by_what_legs_used_and_says_which_of_its_limits_is_reached() -> None:
    had = Allowance(microusd=1_000, tokens=100, until=NOW)
    legs = told(work(cost_microusd=400, usage=Usage(input=30, output=20)), work(cost_microusd=None))
    left = had.after(legs)
    assert (left.microusd, left.tokens) == (600, 50)
    before = NOW - timedelta(seconds=1)
    assert left.over(before) is None
    assert left.over(NOW) == "until"
    assert Allowance(until=NOW + timedelta(milliseconds=600)).over(NOW) == "until", "moments are whole seconds"
    assert had.after(told(work(cost_microusd=1_000))).over(before) == "usd"
    assert had.after(told(work(usage=Usage(input=99, output=1)))).over(before) == "tokens"
    assert UNBOUND.after(legs).over(NOW) is None


def test_a_leg_gets_no_more_than_the_night_has_left_and_a_second_at_least() -> None:
    own = Limits(seconds=3600, tokens=50)
    given = Allowance(microusd=7, tokens=80, until=NOW + timedelta(minutes=1)).bound(own, NOW)
    assert (given.seconds, given.tokens, given.microusd) == (60, 50, 7)
    assert Allowance(until=NOW).bound(own, NOW).seconds == 1
    assert UNBOUND.bound(own, NOW) == own


OWN = Limits(seconds=60, turns=5, tokens=100)
GIVEN = Limits(seconds=30, turns=5, tokens=40, microusd=9)


@pytest.mark.parametrize(
    ("ended_by", "usage", "cost", "given", "why"),
    [
        ("timeout", Usage(), 0, GIVEN, "the night's end came"),
        ("timeout", Usage(), 0, OWN, ""),
        ("budget", Usage(input=40), 0, GIVEN, "the night's tokens are used up"),
        ("budget", Usage(input=10), 9, GIVEN, "the night's money is used up"),
        ("budget", Usage(input=10), None, GIVEN, "cannot be kept where nobody knows the price"),
        ("budget", Usage(turns=5), 3, GIVEN, ""),
        ("budget", Usage(input=100), 3, OWN, ""),
        ("reply", Usage(input=40), 9, GIVEN, ""),
        ("crash", Usage(input=40), 9, GIVEN, ""),
    ],
)
def test_only_a_bound_of_the_night_that_was_reached_makes_a_leg_no_fault_of_its_run(
    ended_by: str, usage: Usage, cost: int | None, given: Limits, why: str
) -> None:
    said = night.cut(ended_by, usage, cost, OWN, given)  # type: ignore[arg-type]
    assert (why in said) if why else not said


def test_only_a_reset_before_the_end_of_the_night_is_waited_for() -> None:
    hour = timedelta(hours=1)
    waiting = {"a": NOW + 2 * hour, "b": NOW + hour}
    assert night.asleep(waiting, NOW + 3 * hour) == NOW + hour
    assert night.asleep(waiting, NOW + hour) is None
    assert night.asleep(waiting, None) is None
    assert night.asleep({}, NOW + hour) is None


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from _clocks(monkeypatch, "Europe/Berlin")


@pytest.fixture
def auckland(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from _clocks(monkeypatch, "Pacific/Auckland")


def _clocks(monkeypatch: pytest.MonkeyPatch, zone: str) -> Iterator[None]:
    """Have the clocks of a zone on the wall, and the machine's own again afterwards."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("text", "now", "moment"),
    [
        ("22:00", "2026-11-29T02:30", "2026-11-29T21:00"),
        ("03:30", "2026-11-29T02:30", "2026-11-30T02:30"),  # it is just that hour: the next one is meant
        ("03:31", "2026-11-29T02:30", "2026-11-29T02:31"),
        ("07:00", "2026-10-24T21:00", "2026-10-25T06:00"),  # the night in which an hour comes twice
        ("07:00", "2027-03-27T21:00", "2027-03-28T05:00"),  # and the one in which an hour is missing
        ("02:30", "2027-03-27T21:00", "2027-03-28T01:30"),
        ("02:45", "2026-10-25T00:10", "2026-10-25T00:45"),  # at the first 02:10 the first 02:45 is meant
        ("02:45", "2026-10-25T00:50", "2026-10-25T01:45"),
        ("02:45", "2026-10-25T01:10", "2026-10-25T01:45"),  # and at the second one the second
        ("02:45", "2026-10-25T01:45", "2026-10-26T01:45"),
        ("2026-10-25T02:45", "2026-10-24T20:00", "2026-10-25T00:45"),
        ("2026-10-25T02:45", "2026-10-25T01:10", "2026-10-25T01:45"),
        ("2026-10-25T02:45", "2026-10-25T02:00", "2026-10-25T00:45"),
        ("02:30", "2027-03-28T00:45", "2027-03-28T01:30"),
        ("02:30", "2027-03-28T01:30", "2027-03-29T00:30"),
        ("12:00", "2028-02-28T23:30", "2028-02-29T11:00"),
        ("2026-12-01", "2026-11-29T02:30", "2026-11-30T23:00"),
        ("2026-12-01T22:00", "2026-11-29T02:30", "2026-12-01T21:00"),
        ("2026-12-01T22:00Z", "2026-11-29T02:30", "2026-12-01T22:00"),
    ],
)
def test_a_time_that_a_person_writes_is_local_and_lies_ahead(text: str, now: str, moment: str) -> None:
    found = night.moment(text, datetime.fromisoformat(f"{now}:00+00:00"))
    assert found == datetime.fromisoformat(f"{moment}:00+00:00")


@pytest.mark.usefixtures("auckland")
@pytest.mark.parametrize(
    ("text", "now", "moment"),
    [
        ("20:00Z", "2026-11-30T19:00", "2026-11-30T20:00"),  # where it is the next day already
        ("18:00Z", "2026-11-30T19:00", "2026-12-01T18:00"),
        ("08:30", "2026-11-30T19:00", "2026-11-30T19:30"),
    ],
)
def test_an_hour_with_a_zone_is_the_next_one_there(text: str, now: str, moment: str) -> None:
    found = night.moment(text, datetime.fromisoformat(f"{now}:00+00:00"))
    assert found == datetime.fromisoformat(f"{moment}:00+00:00")


@pytest.mark.parametrize("text", ["", "tonight", "25:00", "7", "2026-02-30", "22:00:99"])
def test_what_is_no_time_is_refused_with_what_would_be_one(text: str) -> None:
    with pytest.raises(RelayError) as caught:
        night.moment(text, NOW)
    assert "22:00" in caught.value.hint

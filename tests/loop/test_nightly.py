"""A night: what waits goes on, then the queue is taken, one at a time; one record, one page, one notice."""

import json
import time
from pathlib import Path

from relay.errors import Exit
from relay.host import repository
from relay.record import ledger as ledgers
from tests.loop import dusk
from tests.loop.doomed import await_that
from tests.loop.dusk import Bell, items, newest, queued, runs, task, went
from tests.loop.faults import refused, stopped, through, untouched
from tests.service import Fault, Script, Service, Turn, Usage, do, nonce
from tests.world import SAFETY, World

DEAR = Usage(input=800_000, output=10)
"""What costs 1.60 dollars at two dollars for a million."""
DONE = do.reply({"status": "done", "summary": "mended"})
SCRIPT: Script = {
    "phase `review`": [do.reply({"verdict": "approve", "nonce": nonce})],
    "phase `acceptance`": [do.reply({"verdict": "approve", "nonce": nonce})],
    "Ask first": [do.reply({"status": "blocked", "summary": "?", "question": "Which sum is meant?"})],
    "Break out": [do.run("git config user.name Mallory"), DONE],
    "Spend it all": [Turn(do.run("true"), usage=DEAR), Turn(do.run("true"), usage=DEAR), DONE],
    "Wait for it": [Fault("quota", resets_at=time.time() + 4 * 3600)],
    "": [do.edit("calc.py", "a - b", "a + b"), DONE],
}
TITLES = ("Make it right", "Ask first", "Break out", "Spend it all", "Wait for it")


def modelled(world: World, service: Service, **tables: object) -> None:
    """Line up models that cost money."""
    line = {"backend": "openai", "base_url": f"{service.url}/v1", "price": [2.0, 10.0]}
    world.agents = {
        "gpt": {**line, "model": "gpt-6-sol"},
        "qwen": {**line, "model": "qwen3-coder", "api": "chat", "vendor": "qwen"},
    }
    world.phases = {"implement": {"agent": "gpt"}, "review": {"agent": "qwen"}, "acceptance": {"agent": "qwen"}}
    world.save(**tables)


def test_a_night_of_five_gives_one_record_one_page_and_one_notice_that_say_the_truth_and_the_next_does_nothing_twice(
    world: World, tmp_path: Path
) -> None:
    bell = Bell(tmp_path)
    with Service(SCRIPT) as service:
        modelled(world, service, budget={"usd": 1.5, "reserve": 0})
        queued(world, *TITLES)
        ran = went(world.relay("nightly"))
        assert len(service.requests) > len(TITLES)
        assert items(world) == [
            ("started", "make-it-right", "accepted"),
            ("started", "ask-first", "needs-human"),
            ("started", "break-out", "needs-human"),
            ("started", "spend-it-all", "needs-human"),
            ("started", "wait-for-it", "waiting"),
        ]
        night = newest(world)
        asked, breach, spent, waits = (item["reason"] for item in night["items"][1:])
        assert "asks" in asked
        assert "config" in breach
        assert "spent" in spent
        assert waits.startswith("quota until 20")
        assert night["items"][3]["microusd"] == 1_600_100
        assert (night["ended_by"], night["scheduled"], night["reason"]) == ("done", False, "")
        assert all(len(list((world.runs / item["run"]).glob("legs/*/receipt.json"))) for item in night["items"])

        said = ran.out + (world.root / ".git" / "relay" / "nights" / f"{night['id']}.html").read_text()
        for word in ("accepted", "needs-human", "waiting", *(item["run"] for item in night["items"])):
            assert word in said
        assert len(ran.out.splitlines()) < 24
        assert "5 runs: 1 accepted, 2 needs-human, 1 breach, 1 waiting" in ran.out
        assert f"relay approve {night['items'][0]['run']}" in ran.out
        assert bell.events == ["night"], "none of the five sent one of its own"
        assert len(bell.text.splitlines()) < 24
        for item in night["items"]:
            assert item["run"] in bell.text
        assert f"next: relay -C {world.root} report --night" in bell.text

        asked_before = len(service.requests)
        went(world.relay("nightly", "--scheduled"))
        assert items(world) == [("skipped", "wait-for-it", "waiting")]
        assert (len(service.requests), len(runs(world))) == (asked_before, len(TITLES))
        assert newest(world)["alerts"] == []
        assert bell.events == ["night"], "what time alone will settle rings no bell"


def test_what_waits_goes_on_before_the_queue_is_taken(world: World) -> None:
    stopped(world.inside("run", world.spec(name="begun.md"), "--until", "implement"), 0)
    queued(world, "Next one")
    went(world.inside("nightly"))
    assert items(world) == [("resumed", "begun", "accepted"), ("started", "next-one", "accepted")]
    legs = world.receipts(newest(world)["items"][0]["run"])
    assert [leg["phase"] for leg in legs] == ["implement", "review", "acceptance"]
    seconds = newest(world)["items"][0]["seconds"]
    assert abs(seconds - sum(leg["seconds"] for leg in legs[1:])) < 0.01, "the first leg was no part of this night"


def test_what_a_person_has_to_look_at_is_left_alone(world: World) -> None:
    dusk.short(world, "exit 1")
    stopped(world.inside("run", world.spec()), 5)
    before = world.receipts()
    went(world.inside("nightly"))
    assert (world.receipts(), newest(world)["items"]) == (before, [])


def test_a_night_touches_nothing_of_the_persons(world: World) -> None:
    queued(world, "One", "Two")
    with untouched(world):
        went(world.inside("nightly"))


def test_specs_that_relay_toml_lists_are_taken_from_the_base_whatever_is_checked_out(world: World) -> None:
    dusk.short(world)
    world.commit({"tasks/b.md": task("B"), "tasks/a.md": task("A"), "tasks/no.md": "# Nothing to check\n"})
    world.save(base="main", queue="tasks/*.md", phases=["implement"])
    world.git("switch", "-qc", "elsewhere")
    went(world.inside("nightly"))
    assert items(world) == [
        ("started", "a", "accepted"),
        ("started", "b", "accepted"),
        ("skipped", "no", ""),
    ]
    went(world.inside("nightly"))
    assert items(world) == [("skipped", "no", "")]
    assert runs(world) == ["a", "b"]


def test_an_entry_that_comes_after_another_is_taken_in_the_same_night_once_that_is_shipped(world: World) -> None:
    dusk.short(world)
    world.save(phases=["implement"], ship={"approval": "auto"})
    first = world.spec(task("First"), "first.md")
    queued(world, "First")
    second = world.spec(task("Second").replace("a + b", "a +  *b"), "second.md")
    through(world.inside("queue", "add", second, "--after", first, "--priority", "9"))
    went(world.inside("nightly"))
    assert items(world) == [("started", "first", "shipped"), ("started", "second", "shipped")]


def test_an_agent_that_is_missing_leaves_its_specs_in_the_queue_with_the_reason(world: World) -> None:
    dusk.short(world)
    world.agents["worker"]["command"] = ["/nowhere/agent"]
    world.save(phases=["implement"])
    queued(world, "One", "Two")
    went(world.inside("nightly"))
    assert items(world) == [("skipped", "one", ""), ("skipped", "two", "")]
    assert "agent `worker`: the program `/nowhere/agent`" in newest(world)["items"][0]["reason"]
    dusk.short(world)
    went(world.inside("nightly"))
    assert items(world) == [("started", "one", "accepted"), ("started", "two", "accepted")]


def test_a_config_that_is_refused_ends_the_night_before_it_begins_with_a_record_and_a_notice(
    world: World, tmp_path: Path
) -> None:
    bell = Bell(tmp_path)
    queued(world, "One")
    world.write({"relay.toml": "base = 'main'\n"})
    ran = world.inside("nightly", "--scheduled")
    assert ran.code == Exit.USAGE, ran
    assert newest(world)["ended_by"] == "preflight"
    assert "relay.toml" in newest(world)["reason"]
    assert (bell.events, runs(world)) == (["night"], [])
    world.git("checkout", "relay.toml")
    went(world.inside("nightly", "--until", "07:00", "--hours", "8"))
    assert items(world) == [("started", "one", "accepted")]


def test_a_spec_that_is_gone_when_its_turn_comes_is_skipped_and_the_next_is_taken(world: World) -> None:
    dusk.short(world)
    queued(world, "One", "Two")
    (world.folder / "specs" / "one.md").unlink()
    went(world.inside("nightly"))
    assert items(world) == [("skipped", "one", ""), ("started", "two", "accepted")]
    assert "there is no spec" in newest(world)["items"][0]["reason"]


def test_two_nights_at_once_are_one_night_and_a_record_of_the_other(world: World) -> None:
    seen = dusk.slow(world)
    queued(world, "One")
    first = world.start("nightly")
    await_that(seen.exists, "the first night took nothing")
    refused(world.inside("nightly", "--scheduled"), Exit.HELD, "`relay nightly` already holds", "since")
    seen.touch()
    held = [night for night in dusk.records(world) if night["ended_by"] == "held"]
    assert [(night["scheduled"], night["items"]) for night in held] == [(True, [])]
    assert f"process {first.pid}, since" in held[0]["reason"]
    first.terminate()
    first.communicate(timeout=SAFETY)
    assert runs(world) == ["one"]


def test_a_night_does_not_begin_beside_a_run_of_a_person(world: World) -> None:
    seen = dusk.slow(world)
    running = world.start("run", world.spec())
    await_that(seen.exists, "the run did not begin")
    refused(world.inside("nightly"), Exit.HELD, f"`run {world.only_run()}`", "already holds")
    assert (newest(world)["ended_by"], newest(world)["ended"] is not None) == ("held", True)
    running.terminate()
    running.communicate(timeout=SAFETY)


def test_a_dry_run_says_what_a_night_would_do_and_writes_nothing(world: World) -> None:
    stopped(world.inside("run", world.spec(name="begun.md"), "--until", "implement"), 0)
    queued(world, "One")
    through(world.inside("queue", "add", world.spec(task("Late"), "late.md"), "--not-before", "2999-01-01"))
    before = sorted((path, path.lstat().st_mtime_ns) for path in (world.root / ".git" / "relay").rglob("*"))
    ran = world.inside("nightly", "--dry-run", "--json")
    through(ran)
    assert [(line["did"], Path(line["spec"]).stem) for line in ran.events] == [
        ("resumed", "begun"),
        ("started", "one"),
        ("skipped", "late"),
    ]
    assert sorted((path, path.lstat().st_mtime_ns) for path in (world.root / ".git" / "relay").rglob("*")) == before


def test_what_an_unhurried_schedule_finds_nothing_to_do_for_is_silent_and_a_person_is_told(
    world: World, tmp_path: Path
) -> None:
    bell = Bell(tmp_path)
    went(world.inside("nightly", "--scheduled"))
    assert (bell.events, newest(world)["ended_by"]) == ([], "done")
    went(world.inside("nightly"))
    assert bell.events == ["night"]
    assert "nothing ran" in bell.text


def test_a_bug_in_one_run_is_reported_and_the_night_goes_on(world: World) -> None:
    stopped(world.relay("run", world.spec(name="begun.md"), "--until", "implement"), 0)
    [run] = ledgers.runs(ledgers.at(repository.discover(world.root)))
    legs = world.runs / run / "legs"
    start = json.loads((legs / "01-implement" / "start.json").read_bytes()) | {"leg": "09-review", "phase": "review"}
    (legs / "09-review").mkdir()
    (legs / "09-review" / "start.json").write_text(json.dumps(start | {"kind": "judge", "started": "nonsense"}))
    (legs / "09-review" / "transcript.jsonl").write_text("")
    queued(world, "One")
    ran = world.relay("nightly")
    assert ran.code == 0, ran
    assert items(world) == [("resumed", "begun", "open"), ("started", "one", "accepted")]
    broken = newest(world)["items"][0]
    assert "this is a bug in relay: ValueError" in broken["reason"]
    assert Path(broken["reason"].split("`")[1]).is_file()
    assert broken["microusd"] == broken["seconds"] == 0


def test_an_hour_that_nobody_can_read_is_refused_and_is_no_night(world: World) -> None:
    refused(world.inside("nightly", "--until", "dawn"), 2, "`dawn` is not a time")
    refused(world.inside("nightly", "--until", "2026-01-01T07:00"), 2, "that is over")
    assert dusk.records(world) == []


def test_every_night_can_be_read_by_a_program(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    ran = went(world.inside("nightly", "--json", "--usd", "3"))
    [item] = [event for event in ran.events if event["type"] == "item"]
    [night] = [event for event in ran.events if event["type"] == "night"]
    assert (item["outcome"], item["night"], night["ended_by"]) == ("accepted", night["id"], "done")
    assert newest(world)["purse"]["usd"] == 3

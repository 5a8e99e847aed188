"""What bounds a night: money, tokens, time and a full disk; what they cut short is nobody's fault, and goes on."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from relay.errors import Exit, RelayError
from relay.host import clock
from relay.nightly import purse
from relay.rules.night import UNBOUND
from relay.terms import Nightly
from tests.loop import dusk
from tests.loop.doomed import await_that
from tests.loop.dusk import items, newest, queued, records, runs, went
from tests.loop.faults import stopped
from tests.service import Script, Service, Turn, Usage, do, nonce
from tests.world import CHECKOUT, FIXED, SAFETY, World

DEAR = Usage(input=8_000, output=10)
SCRIPT: Script = {
    "phase `review`": [do.reply({"verdict": "approve", "nonce": nonce})],
    "phase `acceptance`": [do.reply({"verdict": "approve", "nonce": nonce})],
    "": [
        Turn(do.run("sed -i 's/a - b/a + b/' calc.py"), usage=DEAR),
        do.reply({"status": "done", "summary": "mended"}),
    ],
}


@pytest.mark.parametrize(
    ("option", "limit", "why"),
    [("--usd", "1", "the night's money is used up"), ("--tokens", "1000", "the night's tokens are used up")],
)
def test_a_purse_that_is_empty_ends_the_night_and_what_it_cut_goes_on_in_the_next(
    world: World, option: str, limit: str, why: str
) -> None:
    with Service(SCRIPT) as service:
        line = {"backend": "openai", "base_url": f"{service.url}/v1", "model": "gpt-6-sol", "price": [200.0, 1000.0]}
        world.agents = {"gpt": line, "qwen": {**line, "vendor": "qwen", "model": "qwen3-coder"}}
        world.phases = {"implement": {"agent": "gpt"}, "review": {"agent": "qwen"}, "acceptance": {"agent": "qwen"}}
        world.save()
        queued(world, "One", "Two")
        ran = went(world.inside("nightly", option, limit))
        limited = option.removeprefix("--")
        assert newest(world)["ended_by"] == limited
        assert items(world) == [("started", "one", "open"), ("skipped", "two", "waiting")]
        first, second = newest(world)["items"]
        assert (first["reason"], first["microusd"]) == (why, 1_610_000)
        assert second["reason"] == f"the night came to its limit first: {limited}"
        assert [leg["ended_by"] for leg in world.receipts()] == ["interrupted"]
        assert f"it ended by {limited}" in ran.out
        went(world.inside("nightly"))
        assert items(world) == [("resumed", "one", "accepted"), ("started", "two", "accepted")]
        assert [leg["ended_by"] for leg in world.receipts(first["run"])] == ["interrupted", *["reply"] * 3]


def test_money_cannot_be_bounded_where_nobody_knows_the_price_and_the_night_says_so_once(world: World) -> None:
    with Service(SCRIPT) as service:
        line = {"backend": "openai", "base_url": f"{service.url}/v1", "model": "nobody-knows-it"}
        world.agents = {"gpt": line, "qwen": {**line, "vendor": "qwen", "model": "qwen3-coder"}}
        world.phases = {"implement": {"agent": "gpt"}, "review": {"agent": "qwen"}, "acceptance": {"agent": "qwen"}}
        world.save()
        queued(world, "One", "Two")
        went(world.inside("nightly", "--usd", "1"))
        assert items(world) == [("started", "one", "open"), ("started", "two", "open")]
        assert "which cannot be kept where nobody knows the price" in newest(world)["items"][0]["reason"]
        assert newest(world)["ended_by"] == "done"


def test_an_end_that_comes_in_the_middle_of_a_leg_cuts_it_without_fault(world: World) -> None:
    seen = dusk.slow(world)
    queued(world, "One", "Two")
    went(world.inside("nightly", "--hours", "0.001"))
    assert (newest(world)["ended_by"], seen.exists()) == ("hours", True)
    assert items(world) == [("started", "one", "open"), ("skipped", "two", "waiting")]
    [leg] = world.receipts()
    assert (leg["ended_by"], leg["problem"]) == ("interrupted", "the night's end came")
    went(world.inside("nightly"))
    assert items(world) == [("resumed", "one", "accepted"), ("started", "two", "accepted")]


def test_a_time_limit_of_the_phase_itself_is_still_a_fault(world: World) -> None:
    dusk.slow(world)
    world.phases["implement"]["minutes"] = 0.02
    world.save(phases=["implement"])
    queued(world, "One", "Two")
    went(world.inside("nightly", "--hours", "1"))
    assert items(world) == [("started", "one", "needs-human"), ("started", "two", "accepted")]
    assert world.receipts(newest(world)["items"][0]["run"])[0]["ended_by"] == "timeout"


def test_a_quota_that_is_there_again_before_the_end_is_waited_for(world: World) -> None:
    done = {"write": {"calc.py": FIXED}, "reply": {"status": "done"}}
    world.script("implementer", {"ended_by": "quota"}, phase="implement", vendor="north")
    world.save(phases=["implement"])
    with clock.fix(clock.now() - timedelta(minutes=15) + timedelta(seconds=4)):  # so it resets in four seconds
        stopped(world.inside("run", world.spec()), 5, "waiting")
    world.script("implementer", done, phase="implement", vendor="north")
    went(world.inside("nightly"))
    [item] = newest(world)["items"]
    assert (item["did"], item["outcome"]) == ("skipped", "waiting"), "a night without an end waits for nothing"
    ran = world.inside("nightly", "--hours", "1")
    went(ran)
    assert ran.err.count("waiting for a quota until ") == 1
    assert items(world) == [("resumed", "task", "accepted")]


def test_a_signal_ends_the_sleep_of_a_night(world: World) -> None:
    world.script("implementer", {"ended_by": "quota"}, phase="implement", vendor="north")
    world.save(phases=["implement"])
    queued(world, "One")
    running = world.start("nightly", "--hours", "1")
    await_that(lambda: records(world) and newest(world)["items"] and items(world)[0][2] == "waiting", "it waits")
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    running.terminate()
    running.communicate(timeout=SAFETY)
    signal.signal(signal.SIGTERM, before)
    assert running.returncode == 128 + signal.SIGTERM
    assert (newest(world)["ended_by"], items(world)) == ("signal", [("started", "one", "waiting")])


def test_what_was_asked_for_goes_before_what_is_written_and_of_two_ends_the_first_counts() -> None:
    given = purse.of(Nightly(usd=5, until="07:00", hours=8), Nightly(usd=1, hours=2))
    assert given == Nightly(usd=1, hours=2, until="07:00")
    now = clock.parse("2026-11-29T02:30:00Z")
    allowed = purse.allowance(given, now)
    assert (allowed.microusd, allowed.until, allowed.ends) == (1_000_000, now + timedelta(hours=2), "hours")
    assert purse.allowance(Nightly(until="03:00", hours=2), now).ends == "until"
    assert purse.allowance(Nightly(), now) == UNBOUND
    with pytest.raises(RelayError, match="that is over"):
        purse.allowance(Nightly(until="2026-11-28T07:00"), now)


def test_the_purse_of_relay_toml_holds_where_nothing_else_is_asked_for(world: World) -> None:
    dusk.slow(world)
    world.save(phases=["implement"], nightly={"hours": 0.001, "usd": 7})
    queued(world, "One")
    went(world.inside("nightly", "--usd", "3"))
    assert newest(world)["purse"] == {"usd": 3, "tokens": None, "hours": 0.001, "until": None}
    assert newest(world)["ended_by"] == "hours"


def test_a_night_needs_no_home_no_terminal_and_no_path_but_crons(world: World) -> None:
    dusk.short(world)
    queued(world, "One")
    state = {name: os.environ[name] for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM")}
    done = subprocess.run(
        [sys.executable, "-m", "relay", "nightly", "--scheduled"],
        cwd=world.root,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONPATH": str(CHECKOUT), **state},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=SAFETY,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr
    assert items(world) == [("started", "one", "accepted")]
    assert b"\x1b" not in done.stdout + done.stderr
    assert (newest(world)["scheduled"], runs(world)) == (True, ["one"])


def test_a_full_disk_ends_a_night_before_it_begins(world: World, tmp_path: Path) -> None:
    state = tmp_path / "small"
    state.mkdir()
    queued(world, "One")
    script = f"mount -t tmpfs -o size=1m small {state} && exec {sys.executable} -m relay nightly"
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "XDG_STATE_HOME": str(state)},
        capture_output=True,
        check=False,
        timeout=SAFETY,
    )
    if b"unshare" in done.stderr or b"mount:" in done.stderr:
        pytest.skip("no mount namespace can be made here")
    assert done.returncode == Exit.HUMAN, done.stderr
    assert (newest(world)["ended_by"], runs(world)) == ("preflight", [])
    assert "free at" in newest(world)["reason"]

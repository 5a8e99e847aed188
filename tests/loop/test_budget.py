"""A run whose budget is used up says what it spent and what is kept, and what it tells to type lets it go on."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from relay.host import clock
from tests.loop.dusk import newest, queued, went
from tests.loop.faults import stopped, through
from tests.service import Script, Service, Turn, Usage, do, nonce
from tests.world import SPEC, Ran, World

CENTS = Usage(input=45_000, output=0)
"""What a turn uses: nine cents, at two dollars for a million tokens."""

DONE = do.reply({"status": "done", "summary": "mended"}).but(usage=CENTS)
APPROVES = do.reply({"verdict": "approve", "nonce": nonce})
MENDS = Turn(do.run("sed -i 's/a - b/a + b/' calc.py"), usage=CENTS)


def _works(turns: int) -> list[Turn]:
    """Work for so many turns, the reply is the last, and for as many in each session that begins afresh."""
    return [MENDS, *(Turn(do.run(f"echo {number}"), usage=CENTS) for number in range(turns - 2)), DONE]


@contextmanager
def _served(world: World, script: Script, agent: dict[str, Any] | None = None, **tables: object) -> Iterator[None]:
    """Line up a model that costs money, and judges that cost none."""
    judges: Script = {"phase `review`": [APPROVES], "phase `acceptance`": [APPROVES]}
    with Service({**judges, **script}) as service:
        line = {"backend": "openai", "base_url": f"{service.url}/v1", "model": "gpt-6-sol"}
        gpt = {**line, "price": [2.0, 10.0]} if agent is None else {**line, **agent}
        world.agents = {"gpt": gpt, "qwen": {**line, "model": "qwen3-coder", "vendor": "qwen", "price": [0, 0]}}
        world.phases = {"implement": {"agent": "gpt"}, "review": {"agent": "qwen"}, "acceptance": {"agent": "qwen"}}
        world.save(**tables)
        yield


def _hint(ran: Ran) -> str:
    """Return the first line that is told to type."""
    [hint] = [line.removeprefix("hint: ") for line in ran.err.splitlines() if line.startswith("hint: ")]
    return hint


def _typed(world: World, command: str) -> Ran:
    """Type a command as it was printed."""
    program, *words = shlex.split(command)
    assert program == "relay", command
    return world.relay(*words)


def test_a_leg_that_the_budget_ends_tells_what_the_run_spent_and_what_is_kept_for_its_judges(world: World) -> None:
    with _served(world, {"": _works(8)}, budget={"usd": 0.5}):
        ran = world.relay("run", world.spec())
        why = "the run spent $0.45 of its budget of $0.50, of which $0.12 is kept for review and acceptance"
        stopped(ran, 4, why)
        assert world.receipts()[0]["problem"] == why
        assert _hint(ran) == f"relay resume {world.only_run()} --usd 1"
        [command] = world.relay("report", "--json", world.only_run()).events[0]["next"]
        assert command == _hint(ran)
        assert "leaves $0.68 for implement; or as much as you like" in _page(world)
        through(_typed(world, command))
    assert [leg.get("phase") for leg in world.receipts()] == ["implement", None, "implement", "review", "acceptance"]


def _page(world: World) -> str:
    return world.relay("report", world.only_run(), "--html", "-").out


def test_each_raise_lets_the_next_leg_come_farther_than_the_one_that_was_stopped_and_is_told_in_cents(
    world: World,
) -> None:
    with _served(world, {"": _works(6)}, budget={"usd": 0.2}):
        ran, told = world.relay("run", world.spec()), []
        while ran.code == 4:
            told.append(_hint(ran).partition("--usd ")[2])
            ran = _typed(world, _hint(ran))
        through(ran)
    assert told == ["0.4", "0.54", "0.96"]
    spent = [leg["cost_microusd"] for leg in world.receipts() if leg.get("phase") == "implement"]
    assert spent == [180_000, 270_000, 450_000, 540_000]


def test_work_that_only_the_reserve_would_pay_is_told_as_that(world: World) -> None:
    finding = {"severity": "major", "title": "no", "path": "calc.py", "line": 2, "quote": "a + b", "why": "it is wrong"}
    revises = do.reply({"verdict": "revise", "nonce": nonce, "findings": [finding]})
    with _served(world, {"phase `review`": [revises], "": _works(4)}, budget={"usd": 0.47}):
        ran = world.relay("run", world.spec())
        why = "the run spent $0.36 of its budget of $0.47, of which $0.12 is kept for review and acceptance"
        stopped(ran, 4, why)
        assert [leg["ended_by"] for leg in world.receipts()] == ["reply", "reply"]
        assert world.relay("status", "--json").events[0]["needs"] == why
        _typed(world, _hint(ran))
    assert [leg["ended_by"] for leg in world.receipts() if leg.get("phase") == "implement"] == ["reply"] * 2


@pytest.mark.parametrize(
    ("bound", "flag"),
    [({"turns": 4}, "--turns 2"), ({"usd": 0.3}, "--usd 0.15"), ({"tokens": 150_000}, "--tokens 75000")],
)
def test_a_bound_of_an_agents_own_is_raised_by_what_is_printed(
    world: World, bound: dict[str, float], flag: str
) -> None:
    with _served(world, {"": _works(5)}, {"price": [2.0, 10.0], **bound}):
        ran = world.relay("run", world.spec())
        stopped(ran, 4)
        assert _hint(ran) == f"relay resume {world.only_run()} {flag}"
        through(_typed(world, _hint(ran)))


def test_a_bound_on_money_that_cannot_be_kept_is_not_said_to_be_lifted_by_more_of_it(world: World) -> None:
    with _served(world, {"": _works(1)}, {"model": "nobody-knows-it"}, budget={"usd": 1}):
        ran = world.relay("run", world.spec())
        stopped(ran, 4, "the price of this model is not known", "`price`")
        run = world.only_run()
        shown, closed = (f"relay show {run}/01-implement", f"relay reject {run} --close --why 'nobody knows its price'")
        assert ran.err.splitlines()[-2:] == [f"hint: {shown}", f"      {closed}"]
        assert _typed(world, shown).code == 0
        assert _typed(world, closed).code == 1
        assert world.relay("status", "--json").events[0]["outcome"] == "not-accepted"


def test_the_end_of_a_night_the_reaper_the_report_and_the_page_print_one_command_that_can_be_typed(
    world: World,
) -> None:
    with _served(world, {"": _works(8)}, budget={"usd": 0.5}):
        queued(world, "One")
        said = [went(world.relay("nightly")).out]
        wanted = f"relay resume {world.only_run()} --usd 1"
        said.append((world.root / ".git" / "relay" / "nights" / f"{newest(world)['id']}.html").read_text())
        with clock.fix(clock.parse("2099-01-01T00:00:00Z")):
            told = [
                world.inside(*verb) for verb in (["reap", "--json"], ["reap", "-v"], ["report"], ["report", "--json"])
            ]
        said += [ran.out + ran.err for ran in told]
        resume = wanted.removeprefix("relay ")  # whoever reads a page may stand elsewhere
        assert [text for text in said if resume not in text] == []
        assert [text for text in said if f"{world.only_run()} --" in text.replace(resume, "")] == []
        through(_typed(world, wanted))


def test_minutes_that_are_used_up_are_told_like_money(world: World) -> None:
    world.shell("implementer", "sleep 60", phase="implement", reply="exit")
    world.save(phases=["implement"])
    ran = world.relay("run", world.spec(f"+++\nbudget = {{ minutes = 0.01 }}\n+++\n{SPEC}"))
    stopped(ran, 4, "min of its budget of 0.01 min, of which 0.0025 min is kept for judges")
    assert _hint(ran) == f"relay resume {world.only_run()} --minutes 1"


def test_a_bound_on_money_that_does_not_hold_a_command_is_said_before_anything_is_spent(world: World) -> None:
    spec = world.spec(f"+++\nbudget = {{ usd = 1 }}\n+++\n{SPEC}", "capped.md")
    said = "warning: `usd` does not bound `implementer`, `review-judge`, `acceptance-judge`: "
    for ran in (world.relay("run", spec, "--dry-run"), world.relay("run", spec)):
        through(ran)
        assert said in ran.err, ran
    assert ran.err.index(said) < ran.err.index("01-implement")
    assert said not in world.relay("run", world.spec(), "--dry-run").err
    world.shell("implementer", "true", phase="implement", reply="exit")
    world.save()
    ran = world.relay("run", spec, "--dry-run")
    assert "warning: `usd` does not bound `review-judge`, `acceptance-judge`: " in ran.err, (
        "one without a vendor is free"
    )

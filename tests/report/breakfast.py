"""A night to tell of: five runs that ended in five ways, made by the real command line, and their night's record."""

import datetime as dt
from pathlib import Path
from typing import Final

import msgspec

from relay import nights
from relay.host import clock, repository
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Item, Night, Nightly
from tests.world import FIXED, SPEC, World

WRONG: Final = "def add(a, b):\n    return b\n"
BEGAN: Final = dt.datetime(2026, 11, 29, 4, 17, tzinfo=dt.UTC)
ENDED: Final = dt.datetime(2026, 11, 29, 6, 52, tzinfo=dt.UTC)
RESET: Final = "2099-11-29T09:00:00Z"
"""When the quota of the run that waits is there again: after every test."""

ASKS: Final = 'reply(status="blocked", question="Should add() take strings as well?")\n'
INTRUDES: Final = 'write({"calc.py": "mine now"})\nreply(verdict="approve")\n'
SLEEPS: Final = "import time\ntime.sleep(600)\n"
POOR: Final = f"+++\nbudget = {{ minutes = 0.01 }}\n+++\n{SPEC}"
TITLES: Final = {
    "sum": "Make add add",
    "strings": "Add strings too",
    "tests": "Cover the calculator",
    "docs": "Write the manual",
    "speed": "Make it quick",
}
"""The runs by the names of their specs, and what their specs are titled."""


def repo(world: World) -> Ledger:
    """Return the ledger of a world."""
    return ledgers.at(repository.discover(world.root))


def spec(name: str, text: str = SPEC) -> str:
    """Return a spec under its own title."""
    return text.replace("Make add add", TITLES[name])


def made(folder: Path) -> tuple[World, dict[str, str]]:
    """Make the runs: accepted after a repair, asking, breached, out of money, waiting; return their ids by name."""
    world = World.simple(folder)
    world.implementer({"calc.py": WRONG}, {"calc.py": FIXED})
    world.reviser("review", path="calc.py", quote="return b")
    found = {"sum": _ran(world, "sum", 0)}
    world.python("implementer", ASKS, phase="implement", vendor="north")
    found["strings"] = _ran(world, "strings", 4)
    world.implementer({"calc.py": FIXED})
    world.python("review-judge", INTRUDES, phase="review", vendor="south")
    found["tests"] = _ran(world, "tests", 7)
    world.python("implementer", SLEEPS, phase="implement", vendor="north")
    found["docs"] = _ran(world, "docs", 4, POOR)
    world.script("implementer", {"ended_by": "quota", "until": RESET}, phase="implement", vendor="north")
    world.save()
    found["speed"] = _ran(world, "speed", 5)
    return world, found


def _ran(world: World, name: str, code: int, text: str = SPEC) -> str:
    """Run a spec to the end that is expected of it, and return its run."""
    before = set(ledgers.runs(repo(world)))
    ran = world.relay("run", world.spec(spec(name, text), f"{name}.md"))
    assert ran.code == code, ran
    [run] = set(ledgers.runs(repo(world))) - before
    return run


def night(world: World, runs: dict[str, str], **changes: object) -> Night:
    """Write the record of the night in which these runs were made."""
    ledger = repo(world)
    with clock.fix(BEGAN):
        begun = nights.begin(ledger, Nightly(usd=10, tokens=5_000_000, hours=6, until="07:00"), scheduled=True)
    items = [Item(did="started", run=run, microusd=1_250_000, tokens=310_000, seconds=742.0) for run in runs.values()]
    items.append(Item(did="skipped", spec="tasks/later.md", reason="not before 2026-12-01T00:00:00Z"))
    fields = {"items": tuple(items), "ended": clock.stamp(ENDED), "ended_by": "done", "relay": None} | changes
    over = msgspec.structs.replace(begun, **fields)
    nights.write(ledger, over)
    return over

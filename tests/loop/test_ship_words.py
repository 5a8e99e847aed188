"""What a shipment says: the person's words as they are, Relay's own, and agents' words, of which none acts."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from relay.host import repository
from relay.record import ledger as ledgers
from relay.ways import words
from relay.ways.base import Words
from tests.loop.faults import through
from tests.ways.test_inert import ACTS, BARE, HOSTILE
from tests.world import BROKEN, FIXED, World

SPEC = """# Make add add, closes #7

It subtracts: see @ada, and <!-- nobody reads this -->
/merge is what a person may write.

## Acceptance

- the sum is right, says | @ada & #8: `grep -q 'return a + b' calc.py || false`
- it reads well
"""


SHOWN = [text.replace("\0", "") for text in HOSTILE if len(text) < 1000]
"""What fits into a reply; a NUL does not even get as far as this."""


def said(folder: Path, texts: Sequence[str], spec: str = SPEC) -> World:
    """Make a world whose agents say `texts` wherever they may say something, and whose run is accepted."""
    world = World(folder, {"calc.py": BROKEN})
    text = "\n\n".join(texts)
    reply = {"status": "done", "summary": text, "decisions": [{"what": text, "why": text}], "risks": [text]}
    wrong = "def add(a, b):\n    return b - a\n"
    turns = [{"write": {"calc.py": code}, "reply": reply} for code in (wrong, FIXED)]
    world.script("worker", *turns, phase="implement", vendor="north")
    finding = {"severity": "major", "path": "calc.py", "line": 2, "quote": "return b - a", "why": text}
    first = {"verdict": "revise", "summary": text, "findings": [{"title": one, **finding} for one in texts]}
    met = {"id": "c2", "met": True, "path": "calc.py", "quote": "return a + b"}
    then = {"verdict": "approve", "summary": text, "criteria": [met]}
    world.script("reader", {"reply": first}, {"reply": then}, phase="review", vendor="south")
    world.save(phases=["implement", "review"])
    through(world.inside("run", world.spec(spec)))
    return world


def page(world: World) -> Words:
    """Write the page of a proposal of the only run."""
    ledger = ledgers.at(repository.discover(world.root))
    run = world.only_run()
    return words.proposal(ledger, ledgers.read_plan(ledger, run), ledgers.receipts(ledger, run))


def test_the_commit_says_what_the_agent_said_and_only_relays_trailers_are_found_in_it(tmp_path: Path) -> None:
    shown = "\n".join(SHOWN)
    world = said(tmp_path, [shown])
    through(world.inside("approve"))
    whole = world.git("log", "-1", "--format=%B", "main")
    title, *body = whole.splitlines()
    assert title == "Make add add, closes #7", "the person may close what the person numbers"
    quoted = [line for line in body if line.startswith(">")]
    assert len(quoted) > len(shown.splitlines()) / 2
    assert not [(sign, line) for sign in ACTS for line in quoted if re.search(sign, line)]
    parse = ["git", "interpret-trailers", "--parse"]
    trailers = subprocess.run(parse, input=whole, capture_output=True, check=True, text=True, cwd=world.root).stdout
    own = [f"Relay-Run: {world.only_run()}", "Accepted-by: reader (scripted)"]
    assert trailers.splitlines() == own
    assert [line for line in body if line and line not in quoted] == own


def test_on_the_page_the_person_speaks_freely_and_nobody_else(tmp_path: Path) -> None:
    body = page(said(tmp_path, SHOWN)).body
    assert not [line for line in body.splitlines() if line.startswith("/")]
    about = SPEC.split("\n\n")[1]
    assert "\n".join(f"> {line}" for line in about.splitlines()) in body
    summary, rest = body.split("\n\n## Why\n", maxsplit=1)
    rows = [re.split(r"(?<!\\)\|", line) for line in rest.splitlines() if line.startswith("|")]
    titles = re.findall(r"(?m)^- \S+ \(major, located, `calc.py:2`\): (.*) - \*\*[a-z, ]+\*\*$", rest)
    assert len(titles) == len(SHOWN)
    assert [len(row) for row in rows] == [7] * 4, "nothing breaks the table"
    assert all(line.startswith(">") for line in summary.splitlines())
    for text in (
        *(line[1:] for line in summary.splitlines()),
        *titles,
        *(cell for row in rows[2:] for cell in row[2:3]),
    ):
        assert not [sign for sign in (*ACTS, *BARE) if re.search(sign, text)], text


def test_a_page_that_would_be_too_long_is_cut_before_what_relay_says_of_it_itself(tmp_path: Path) -> None:
    spec = SPEC.replace("It subtracts", "It subtracts.\n" + "And it subtracts again.\n" * 4000)
    world = said(tmp_path, ["short"], spec)
    body = page(world).body
    assert len(body) <= 65_536
    assert "**Cut here: it was too long for a page.**" in body
    assert "## How it came to be" in body
    assert body.endswith(f"`relay trace {world.only_run()}`\n")
